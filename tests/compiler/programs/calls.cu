// Functions that are not inlined: structures in and out, narrow parameters, a call of itself.
#include <cuda_runtime.h>

struct Pair {
    unsigned a;
    float b;
    unsigned long long c;
    unsigned char d;
};

__device__ __noinline__ Pair made(unsigned a, unsigned char narrow, bool flag) {
    return {a * 3, flag ? 1.5f : -2.0f, a * 5ull, (unsigned char)(narrow + 1)};
}
__device__ __noinline__ unsigned summed(Pair one, const Pair &other, short by) {
    one.a += by;
    return one.a + other.a + unsigned(one.b * 4) + unsigned(other.c) + one.d;
}
__device__ __noinline__ unsigned counted(unsigned n) {
    return n < 2 ? n : counted(n - 1) + counted(n - 2);
}
__device__ __noinline__ void written(unsigned *to, bool odd) {
    *to = odd ? 7 : 8;
}
__device__ __noinline__ bool is_small(signed char x) {
    return x < 5;
}

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    const unsigned a = in[threadIdx.x], b = in[threadIdx.x + 64];
    unsigned *to = out + threadIdx.x * 16;
    const Pair one = made(a, (unsigned char)(b), a & 1), other = made(b, 9, b > a);
    to[0] = one.a, to[1] = __float_as_uint(one.b), to[2] = unsigned(one.c), to[3] = one.d;
    to[4] = summed(one, other, short(a)), to[5] = one.a;
    to[6] = counted(a % 9);
    unsigned own = 0;
    written(&own, b & 1);
    to[7] = own;
    written(to + 8, a & 1);
    to[9] = is_small((signed char)(a)) | is_small((signed char)(b)) << 1;
}
