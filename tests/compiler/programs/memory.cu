// All spaces of memory; structures as parameters, copied, and taken apart; accesses of two and four elements.
#include <cuda_runtime.h>

struct Inner {
    unsigned char tag;
    short small;
    double number;
};
struct Parameter {
    unsigned first;
    Inner inner[2];
    unsigned long long last;
};

__device__ unsigned counter[3] = {7, 0, 0x80000001};
__device__ Inner made = {3, -5, 0.1};
__constant__ float table[5] = {0.5f, -1.5f, 3.0f, 1e-20f, 8.0f};
__constant__ unsigned char letters[] = "letters of a constant";
extern __shared__ __align__(16) unsigned char dynamic[];

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    __shared__ unsigned tile[64][3];
    __shared__ float4 wide[16];
    const unsigned t = threadIdx.x, a = in[t], b = in[t + 64];
    unsigned *to = out + t * 16;
    for (int i = 0; i < 3; ++i) tile[t][i] = a + i * b;
    reinterpret_cast<unsigned short *>(dynamic)[t] = (unsigned short)(a);
    reinterpret_cast<float *>(wide)[t] = int(b) * 0.5f;
    __syncthreads();
    to[0] = tile[63 - t][t % 3], to[1] = reinterpret_cast<unsigned short *>(dynamic)[t ^ 5];
    const float4 four = wide[t % 16];
    to[2] = __float_as_uint(four.x) ^ __float_as_uint(four.y) ^ __float_as_uint(four.z) ^ __float_as_uint(four.w);
    unsigned own[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) own[i] = a >> i;
    own[b & 7] = b;
    to[3] = own[a & 7] + own[(a >> 3) & 7];
    to[4] = __float_as_uint(table[a % 5]) + letters[b % 21];
    to[5] = counter[a % 3] + made.tag + made.small + unsigned(made.number * 1e6);
    Parameter p = {a, {{1, -2, 0.25}, {4, short(b), a * 0.5}}, b * 3ull};
    const Parameter copy = p;
    Inner &chosen = p.inner[a & 1];
    chosen.small += 3;
    to[6] = p.inner[0].small + p.inner[1].small * 2 + copy.inner[1].tag + unsigned(p.last) + copy.first;
    const uint4 whole = reinterpret_cast<const uint4 *>(in)[t % 32];
    *reinterpret_cast<uint4 *>(to + 8) = make_uint4(whole.w, whole.x + 1, whole.y, whole.z * 2);
    *reinterpret_cast<uint2 *>(to + 12) = *reinterpret_cast<const uint2 *>(in + 2 * t);
    const unsigned *chosen_space = (a & 1) ? &tile[t][0] : in + t;  // shared or global
    to[14] = *chosen_space;
    volatile unsigned *seen = to;
    seen[15] = a, seen[15] = seen[15] + 1;
    to[7] = static_cast<unsigned>(chosen.number * 4);
}
