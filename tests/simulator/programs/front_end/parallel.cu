// Cooperative groups, warp intrinsics, atomics, half and bfloat16, double, 64-bit and 128-bit accesses, math functions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

__global__ void groups(float *out, const float *in, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    float sum = 0;
    for (int i = block.thread_rank(); i < n; i += block.size()) sum += in[i];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(out, sum);
    block.sync();
    cg::this_grid().sync();
}

__global__ void warps(unsigned *out, unsigned value) {
    const unsigned mask = __ballot_sync(~0u, threadIdx.x & 1);
    value += __shfl_xor_sync(~0u, value, 3) + __shfl_up_sync(~0u, value, 1) + __any_sync(mask, value > 3);
    value ^= __match_any_sync(~0u, value & 3);
    __syncwarp();
    out[threadIdx.x] = value + __syncthreads_count(value) + __ffs(value) + __clz(value) + __umulhi(value, 77);
    atomicMax(out, value), atomicExch(out + 1, value), atomicCAS(out + 2, value, 5u), atomicInc(out + 3, 7);
    __threadfence();
}

__global__ void numbers(__half *halves, __nv_bfloat16 *brains, double *doubles, float4 *vectors, long long *words) {
    const int i = threadIdx.x;
    halves[i] = __hfma(halves[i], halves[i + 1], __float2half(1.25f));
    reinterpret_cast<__half2 *>(halves)[i] =
        __hadd2(reinterpret_cast<__half2 *>(halves)[i + 4], __half2half2(halves[i]));
    brains[i] = __float2bfloat16(__bfloat162float(brains[i]) * 3);
    doubles[i] = sqrt(doubles[i]) / (doubles[i + 1] + exp(doubles[i + 2]));
    float4 v = vectors[i];
    v.x = sinf(v.x), v.y = expf(v.y), v.z = logf(v.z) + powf(v.w, 1.5f), v.w = rsqrtf(v.w) + __fdividef(v.x, v.y);
    vectors[i] = v;
    words[i] = words[i] / (words[i + 1] | 1) + __double2ll_rn(doubles[i]) + clock64() % 3;
}
