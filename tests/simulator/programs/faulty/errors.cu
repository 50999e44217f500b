// Kernels that end themselves, or never end: a program with the fault, and without it by -DMENDED.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <assert.h>
#include <cstdio>

#include "../programs.h"

// An assert that does not hold.
namespace assertion {

__global__ void picky(float *out, const float *in, float most) {
    assert(in[threadIdx.x] <= most);  //! assertion: in[threadIdx.x] <= most
    out[threadIdx.x] = 1;
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    picky<<<1, 64>>>(b, a, 100);
#else
    picky<<<1, 64>>>(b, a, 30);
#endif
    return ended();
}

}  // namespace assertion

// Waits for a flag that nobody sets.
namespace endless_loop {

__global__ void wait(volatile float *flag, float *out) {
#ifdef MENDED
    if (threadIdx.x == 32) *flag = 1;
#endif
    while (*flag == 0) {  //! deadlock: reads 0 again and again | of the 16384 bytes allocated at
    }
    out[threadIdx.x] = 1;
}

int main() {
    const auto [b, a] = arrays();
    cudaMemset(a, 0, 4);
    wait<<<1, 64>>>(a, b);
    return ended();
}

}  // namespace endless_loop

// The kernel gives up by itself.
namespace trap {

__global__ void picky(float *out, const float *in) {
#ifdef MENDED
    if (in[threadIdx.x] < 0) __trap();
#else
    if (in[threadIdx.x] > 30) __trap();  //! trap: trap
#endif
    out[threadIdx.x] = 1;
}

int main() {
    const auto [b, a] = arrays();
    picky<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace trap

// All blocks wait for each other, in a launch that does not promise that they run together.
namespace trap_not_cooperative {

__global__ void mirrored(float *out, const float *in) {
    const auto grid = cooperative_groups::this_grid();
    const int i = int(grid.thread_rank());
    out[i] = in[i];
    grid.sync();  //! trap: needs a launch by cudaLaunchCooperativeKernel
    out[i + 64] = out[63 - i];
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    void *arguments[] = {(void *)&b, (void *)&a};
    cudaLaunchCooperativeKernel(mirrored, 2, 32, arguments);
#else
    mirrored<<<2, 32>>>(b, a);
#endif
    return ended();
}

}  // namespace trap_not_cooperative

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(assertion),
                         PROGRAM(endless_loop),
                         PROGRAM(trap),
                         PROGRAM(trap_not_cooperative),
                     });
}
