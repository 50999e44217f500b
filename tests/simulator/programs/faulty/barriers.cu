// Barriers and warp-synchronous instructions that not all come to: a program with the fault, and without it by
// -DMENDED.
#include <cuda_runtime.h>

#include <cstdio>

#include "../programs.h"

// A named barrier waits for 96 threads and 64 come.
namespace deadlock_count {

#ifdef MENDED
#define COUNT 64
#else
#define COUNT 96
#endif
__global__ void meet(float *out) {
    asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");  //! deadlock or divergent_barrier: barrier
    out[threadIdx.x] = 1;
}

int main() {
    const auto [b, a] = arrays();
    meet<<<1, 64>>>(b);
    return ended();
}

}  // namespace deadlock_count

// Two warps hand each other the turn, at a barrier for each. One passes the last turn on without having waited for it:
// where it is the faster one, both its arrivals count for one turn of the other.
namespace divergent_arrival_too_early {

__device__ void wait_for_turn(int warp) {
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp) : "memory");  //~ the other's arrival
}

__device__ void pass_turn_on(int warp) {
    asm volatile("bar.arrive %0, 64;" ::"r"(2 - warp) : "memory");  //! divergent_barrier: nothing orders that
}

__global__ void turns(float *out, const float *in) {
    __shared__ float sum;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (warp == 1) pass_turn_on(warp);  // the first turn is warp 0's
    for (int turn = 0; turn < 4; ++turn) {
        bool waits = true;
#ifndef MENDED
        waits = warp == 1 || turn < 3;
#endif
        if (waits) wait_for_turn(warp);
        if (threadIdx.x % 32 == 0 && turn < 3) sum += in[turn];
        __syncwarp();
        pass_turn_on(warp);
    }
    if (warp == 0) wait_for_turn(warp);  // no arrival is left over
    __syncthreads();
    out[threadIdx.x] = sum;
}

int main() {
    const auto [b, a] = arrays();
    turns<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace divergent_arrival_too_early

// The halves of a warp wait at different barriers.
namespace divergent_barrier {

__global__ void halves(float *out, const float *in) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x % 32 < 16) {
#ifndef MENDED
        asm volatile("bar.sync 1, 64;" ::: "memory");  //! divergent_barrier: barrier
#endif
        out[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        out[threadIdx.x] = 2;
#ifndef MENDED
        asm volatile("bar.sync 2, 64;" ::: "memory");  //~ or here
#endif
    }
}

int main() {
    const auto [b, a] = arrays();
    halves<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace divergent_barrier

// Half of the warp leaves, the rest shuffles with all of it.
namespace missing_lanes {

__global__ void sums(float *out, const float *in) {
    if (threadIdx.x >= 16) return;
    float v = in[threadIdx.x];
#ifdef MENDED
    for (int d = 8; d; d /= 2) v += __shfl_down_sync(0x0000ffff, v, d);
#else
    for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);  //! missing_lanes: exited
#endif
    if (threadIdx.x == 0) *out = v;
}

int main() {
    const auto [b, a] = arrays();
    sums<<<1, 32>>>(b, a);
    return ended();
}

}  // namespace missing_lanes

// The block has 40 threads. The lanes that its second warp lacks go into the sum.
namespace missing_lanes_read {

__global__ void sums(float *out, const float *in) {
    const int t = threadIdx.x;
    float v = in[t];
    for (int d = 16; d; d /= 2) {
        // clang-format off
        const float other = __shfl_down_sync(0xffffffff, v, d);  //! missing_lanes: reads lane | which takes no part | is stored to global memory at
        // clang-format on
#ifdef MENDED
        if (t + d < blockDim.x)
#endif
            v += other;
    }
    if (t % 32 == 0) out[t / 32] = v;  //~ where it matters
}

int main() {
    const auto [b, a] = arrays();
    sums<<<1, 40>>>(b, a);
    return ended();
}

}  // namespace missing_lanes_read

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(deadlock_count),
                         PROGRAM(divergent_arrival_too_early),
                         PROGRAM(divergent_barrier),
                         PROGRAM(missing_lanes),
                         PROGRAM(missing_lanes_read),
                     });
}
