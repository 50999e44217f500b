// Integers of all widths: what of them needs a sign, and what carries out of a narrow one.
#include <cuda_runtime.h>

template <typename T, typename Unsigned>
__device__ unsigned all_of(unsigned a, unsigned b) {
    const T x = T(a * 2654435761u >> 3), y = T(b ^ a << 7), one = T(1);
    const int by = b % (8 * sizeof(T));
    unsigned sum = unsigned(T(x + y)) * 3 ^ unsigned(T(x - y)) * 5 ^ unsigned(T(x * y)) * 7;
    if (y != 0 && y != T(-1)) sum ^= unsigned(T(x / y)) * 11 ^ unsigned(T(x % y)) * 13;
    sum += unsigned(T(Unsigned(x) << by)) ^ unsigned(T(x >> by)) * 17 ^ unsigned(Unsigned(x) >> by) * 19;
    sum ^= (x < y) | (x <= y) << 1 | (x == y) << 2 | (Unsigned(x) < Unsigned(y)) << 3 | (x > one) << 4;
    sum += unsigned(x < y ? x : y) ^ unsigned(x & y) * 23 ^ unsigned(x | y) * 29 ^ unsigned(T(x ^ ~y)) * 31;
    sum ^= unsigned((long long)(x) * 37 >> 16) + unsigned((unsigned long long)(Unsigned(y)) * 41 >> 16);
    sum += __float_as_uint(float(x)) + __float_as_uint(float(Unsigned(y) & 0x7fff));
    return sum;
}

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    const unsigned a = in[threadIdx.x], b = in[threadIdx.x + 64];
    unsigned *to = out + threadIdx.x * 16;
    to[0] = all_of<signed char, unsigned char>(a, b), to[1] = all_of<unsigned char, unsigned char>(a, b);
    to[2] = all_of<short, unsigned short>(a, b), to[3] = all_of<unsigned short, unsigned short>(a, b);
    to[4] = all_of<int, unsigned>(a, b), to[5] = all_of<unsigned, unsigned>(a, b);
    to[6] = all_of<long long, unsigned long long>(a, b);
    to[7] = all_of<unsigned long long, unsigned long long>(a, b);
    to[8] = __popc(a) | __clz(b) << 8 | __ffs(a) << 16;
    to[9] = __brev(a) ^ __byte_perm(a, b, 0x3715);
    to[10] = __mulhi(int(a), int(b)) ^ __umulhi(a, b);
    to[11] = __funnelshift_l(a, b, a) ^ __funnelshift_r(a, b, b & 31);
    to[12] = min(int(a), int(b)) ^ max(a, b) ^ (a > b ? 0x55 : 0xaa);
    const unsigned long long wide = (unsigned long long)a << 32 | b;
    to[13] = unsigned(wide >> (a & 63)) ^ unsigned(wide << (b & 31) >> 32) ^ unsigned(wide / (b | 1));
    bool flag = a & 1;
    for (unsigned bit = 0; bit < 5; ++bit) flag = (flag ^ bool(b >> bit & 1)) | (flag && (a >> bit & 2));
    to[14] = flag ? a : -int(flag) + b;
    to[15] = (a << 9 | a >> 23) + (unsigned short)(a << 3 | (unsigned short)(b) >> 13);
}
