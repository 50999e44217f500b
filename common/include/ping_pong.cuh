// Stage ping_pong teaches these turns of the consumer warpgroups at the tensor cores.
#pragma once

#include "ptx_hopper.cuh"

// The turns of the consumer warpgroups. Each warpgroup has a named barrier, which completes when its 128 threads wait
// at it and the 128 threads of the previous warpgroup have arrived: they have passed the turn on. Barrier 0 belongs to
// __syncthreads().
template <int consumers>
struct PingPong {
    int warpgroup;

    __device__ int own_barrier() const { return 1 + warpgroup; }
    __device__ int next_barrier() const { return 1 + (warpgroup + 1) % consumers; }

    // Waits until the previous warpgroup has passed the turn on.
    __device__ void take_turn() const { ptx::barrier_sync(own_barrier(), 256); }

    // Passes the turn on to the next warpgroup without waiting for it.
    __device__ void pass_turn() const { ptx::barrier_arrive(next_barrier(), 256); }

    // Gives warpgroup 0 the first turn, as if the last warpgroup had passed it on.
    __device__ void begin() const {
        if (warpgroup == consumers - 1) pass_turn();
    }

    // Takes the last turn that was passed on, so that no arrival is left at a barrier.
    __device__ void end() const {
        if (warpgroup == 0) take_turn();
    }
};
