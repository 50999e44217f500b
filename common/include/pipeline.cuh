// Stage warp_specialization teaches this queue of tiles between a producer and its consumers.
#pragma once

#include "ptx_hopper.cuh"

// The position of a producer or a consumer in a queue of `stages` buffers: the buffer, and the phase of its barriers. A
// barrier distinguishes a phase from the next one by its parity, so one bit is enough.
template <int stages>
struct PipelineState {
    uint32_t stage = 0;
    uint32_t phase = 0;

    __device__ void advance() {
        ++stage;
        if (stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// The two barriers of each buffer of a queue, in shared memory. The function names are those of CUTLASS.
template <int stages>
struct Pipeline {
    uint64_t full[stages];   // completes a phase when all bytes of a tile have arrived
    uint64_t empty[stages];  // completes a phase when every consumer warp has read the tile

    __device__ void init(int consumer_warps) {
        for (int stage = 0; stage < stages; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);  // the producer arrives once, and TMA counts the bytes
            ptx::mbarrier_init(&empty[stage], consumer_warps);
        }
    }

    // The producer waits until the consumers have read the buffer's previous tile. It waits for the opposite parity,
    // which a fresh barrier counts as complete: a buffer that was never filled is free.
    __device__ void producer_acquire(const PipelineState<stages> &state) {
        ptx::mbarrier_wait(&empty[state.stage], state.phase ^ 1);
    }

    // A consumer waits until the tile has arrived.
    __device__ void consumer_wait(const PipelineState<stages> &state) {
        ptx::mbarrier_wait(&full[state.stage], state.phase);
    }

    // A consumer warp releases the buffer and moves on to the next one. All of its lanes must have read the tile.
    __device__ void consumer_release(PipelineState<stages> &state, int lane) {
        if (lane == 0) ptx::mbarrier_arrive(&empty[state.stage]);
        state.advance();
    }
};
