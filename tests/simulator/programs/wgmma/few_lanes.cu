// Mistakes with wgmma that a few threads make, and none of them the first one.
//
//     few_lanes NAME 0|1        runs NAME's kernel, as it is or mended
//
// The marks are those of faults.cu.
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "wgmma.h"

// clang-format off
#define KERNEL(name) template <bool mended> __global__ void __launch_bounds__(128) name(float *out, const uint4 *in)
#define FILL __shared__ alignas(128) uint4 a[kBytesA / 16], b[kBytesB / 16]; const unsigned t = threadIdx.x; \
    float d[4] = {}; a[t] = in[t]; if (t < 16) b[t] = in[128 + t];
#define STORE for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];

KERNEL(one_warp_does_not_fence) {
    FILL  //~ one_warp_does_not_fence
    if (mended || t >= 32) FENCE_PROXY();
    __syncthreads();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! one_warp_does_not_fence proxy_fence: without a fence.proxy.async behind it
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(operand_overwritten_by_one_lane) {
    FILL
    FENCE_PROXY();
    __syncthreads();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ operand_overwritten_by_one_lane
    COMMIT();
    if constexpr (mended) { WAIT(0); __syncthreads(); }
    if (t == 37)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SHARED(a + t)), "l"(in) : "memory");  //! operand_overwritten_by_one_lane async_pending or shared_race: may still be reading or nothing orders the two
    WAIT(0);
    asm volatile("cp.async.wait_all;" ::: "memory");
    STORE
}
// clang-format on

template <typename Kernel>
static int run(int argc, char **argv, Kernel faulty, Kernel mended) {
    float *out;
    uint4 *in;
    cudaMalloc(&out, 128 * 4 * sizeof(float));
    cudaMalloc(&in, 256 * sizeof(uint4));
    return run_fault(
        argc, argv, out, 128 * 4 * sizeof(float), [&](bool numbers) { put_numbers(in, 256 * sizeof(uint4), numbers); },
        [&](bool is_mended) { (is_mended ? mended : faulty)<<<1, 128>>>(out, in); });
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (!std::strcmp(argv[1], "one_warp_does_not_fence"))
        return run(argc, argv, one_warp_does_not_fence<false>, one_warp_does_not_fence<true>);
    if (!std::strcmp(argv[1], "operand_overwritten_by_one_lane"))
        return run(argc, argv, operand_overwritten_by_one_lane<false>, operand_overwritten_by_one_lane<true>);
    return 2;
}
