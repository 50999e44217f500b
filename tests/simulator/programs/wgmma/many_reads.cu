// A tile that is overwritten although nothing orders that with a wgmma's read of it, long before: many reads of another
// tile, each waited for, lie between the two.
//
//     many_reads NAME 0|1        runs the kernel, as it is or mended
//
// The marks are those of faults.cu.
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "wgmma.h"

// clang-format off
template <bool mended>
__global__ void __launch_bounds__(256) refilled_after_many_reads(float *out, const uint4 *in) {
    __shared__ alignas(128) uint4 a[kBytesA / 16], b[kBytesB / 16], other[kBytesB / 16];
    const unsigned t = threadIdx.x;
    float d[4] = {};
    if (t < 128) a[t] = in[t];
    if (t < 16) b[t] = other[t] = in[128 + t];
    FENCE_PROXY();
    __syncthreads();
    if (t < 128) {
        FENCE();
        MMA(d, describe(a), describe(b), 1);  //~ refilled_after_many_reads
        COMMIT();
        WAIT(0);
        for (int i = 0; i < 80; ++i) {
            FENCE();
            MMA(d, describe(a), describe(other), 1);
            COMMIT();
            WAIT(0);
        }
        for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];
    }
    if constexpr (mended) __syncthreads();
    int turns = 0;
    if (t >= 128)  // until the reads are over
        for (int i = 0; i < 100000; ++i) asm volatile("add.s32 %0, %0, 1;" : "+r"(turns));
    if (t >= 128) b[t % 16] = in[turns - 100000];  //! refilled_after_many_reads shared_race: nothing orders the two
}
// clang-format on

int main(int argc, char **argv) {
    if (argc < 3 || std::strcmp(argv[1], "refilled_after_many_reads")) return 2;
    float *out;
    uint4 *in;
    cudaMalloc(&out, 256 * 4 * sizeof(float));
    cudaMalloc(&in, 256 * sizeof(uint4));
    return run_fault(
        argc, argv, out, 256 * 4 * sizeof(float), [&](bool numbers) { put_numbers(in, 256 * sizeof(uint4), numbers); },
        [&](bool mended) {
            (mended ? refilled_after_many_reads<true> : refilled_after_many_reads<false>)<<<1, 256>>>(out, in);
        });
}
