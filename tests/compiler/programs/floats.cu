// Numbers of 16 to 64 bits: arithmetic, comparisons with NaN, conversions with their rounding.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ unsigned compared(float a, float b) {
    return (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | !(a < b) << 4 | !(a >= b) << 5 | (a > b) << 6;
}

__device__ unsigned bits_of(__half x) {
    return *reinterpret_cast<unsigned short *>(&x);
}
__device__ unsigned bits_of(__nv_bfloat16 x) {
    return *reinterpret_cast<unsigned short *>(&x);
}

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    const unsigned p = in[threadIdx.x], q = in[threadIdx.x + 64];
    const float a = __uint_as_float(p), b = __uint_as_float(q);
    const float x = int(p) * 1e-3f, y = int(q) * 0.25f;
    unsigned *to = out + threadIdx.x * 16;
    to[0] = compared(a, b) | compared(a, NAN) << 8 | compared(x, y) << 16;
    to[1] = __float_as_uint(x + y) ^ __float_as_uint(x * y) ^ __float_as_uint(x - 3.5f);
    to[2] = __float_as_uint(x / y);
    to[3] = __float_as_uint(fmaf(x, y, 1.0f)) ^ __float_as_uint(sqrtf(fabsf(x)));
    to[4] = __float_as_uint(fmaxf(x, y)) ^ __float_as_uint(fminf(x, NAN)) ^ __float_as_uint(-y);
    to[5] = __float_as_uint(floorf(x)) ^ __float_as_uint(ceilf(y)) ^ __float_as_uint(truncf(x));
    to[6] = int(x) ^ unsigned(fabsf(x)) ^ unsigned((long long)(y * 1e3f)) ^ __float2int_rn(x);
    const double d = x, e = y;
    to[7] = unsigned((long long)((d * e + d / e) * 1e3)) ^ __float_as_uint(float(d * 1.1));
    to[8] = bits_of(__float2half_rn(x)) | bits_of(__float2half_rn(a)) << 16;
    to[9] = bits_of(__float2bfloat16_rn(x)) | bits_of(__float2bfloat16_rn(y)) << 16;
    const __half2 pair = __floats2half2_rn(x, y);
    to[10] = *reinterpret_cast<const unsigned *>(&pair);
    const float2 back = __half22float2(pair);
    to[11] = __float_as_uint(back.x) ^ __float_as_uint(back.y);
    const __nv_bfloat162 other = __floats2bfloat162_rn(y, x);
    to[12] = *reinterpret_cast<const unsigned *>(&other);
    to[13] = __float_as_uint(__bfloat1622float2(other).y) ^ __float_as_uint(__half2float(__float2half_rn(y)));
    to[14] = __float_as_uint(float(p)) ^ __float_as_uint(float((unsigned char)(q))) ^ __float_as_uint(float(short(p)));
    to[15] = __float_as_uint(a != a ? 0.0f : x < y ? 1.5f : -INFINITY);
}
