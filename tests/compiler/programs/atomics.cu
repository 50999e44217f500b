// Atomic operations on shared and global memory whose result does not depend on their order, fences, votes, shuffles.
#include <cuda_runtime.h>

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    __shared__ unsigned sums[4];
    __shared__ unsigned long long wide;
    __shared__ int least;
    const unsigned t = threadIdx.x, a = in[t];
    if (t < 4) sums[t] = 0;
    if (t == 0) wide = 1, least = 1 << 30;
    __syncthreads();
    atomicAdd(&sums[a & 3], a), atomicXor(&sums[(a & 3) ^ 1], 0u), atomicMin(&least, int(a)),
        atomicOr(&wide, 1ull << t);
    unsigned *to = out + t * 16, *common = out + 64 * 15;
    atomicMax(common + 16 + 1, a), atomicAnd(common + 16 + 2, a | 0xff), atomicSub(common + 16 + 3, a);
    atomicAdd(reinterpret_cast<float *>(common + 16 + 4), 0.5f);
    __threadfence();
    __syncthreads();
    if (t < 16) to[0] = sums[t & 3], to[1] = least, to[2] = unsigned(wide >> t), to[3] = unsigned(wide >> 32);
    if (t < 16) to[4] = atomicCAS(to + 8, 0u, a), to[5] = atomicCAS(to + 8, a, 5u), to[6] = atomicExch(to + 8, 9u);
    const int count = __syncthreads_count(a & 1);
    const unsigned votes = __ballot_sync(0xffffffff, a & 2);
    const unsigned any = __any_sync(0xffffffff, a == 3), all = __all_sync(0xffffffff, a != 3);
    const float f = __shfl_xor_sync(0xffffffff, float(a & 255), 5);
    const unsigned up = __shfl_up_sync(0xffffffff, a, 3), down = __shfl_down_sync(0xffffffff, a, 3, 8);
    const unsigned from = __shfl_sync(0xffffffff, a, t * 7 % 32), most = __reduce_max_sync(0xffffffff, a);
    if (t < 16) to[9] = votes, to[10] = any | all << 1 | count << 2, to[11] = up ^ down * 3, to[12] = from ^ most;
    if (t < 16) to[13] = __float_as_uint(f);
}
