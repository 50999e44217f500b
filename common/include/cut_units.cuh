// Stage no_scratch_pass teaches how the last units are cut, so that all blocks end at one time.
#pragma once

#include "backward_mainloop.cuh"

// What a piece of a unit has summed up of its dK and dV, as the consumers' registers hold it.
template <int d_head>
struct Sums {
    float4 dV[d_head / 8][128 * consumers], dK[d_head / 8][128 * consumers];
    int there, unused[3];  // 1: the numbers are complete
};

// The row tiles of a unit's queries that one block works on, in each head of Q: all, or a part of them.
template <int d_head>
struct Piece {
    int first, end;
    int weight;          // of all row tiles, how many
    int before;          // pieces with row tiles before the first one, whose sums lie at `taken`
    Sums<d_head> *left;  // where this piece leaves its sums; null: it has the unit's last row tile, and takes the others
    Sums<d_head> *taken;
};

// How the last units are cut: their row tiles, unit after unit, are divided into as many ranges as there are blocks.
template <int d_head>
struct Cuts {
    int whole;           // units that are handed out whole, before the ranges
    int ranges;          // 0: no unit is cut
    int first;           // cut unit. Of those between it and `whole` each range has one
    Sums<d_head> *sums;  // one for each range

    // A range's first row tile, counted from the first cut unit's.
    __device__ int begin(int range, int all) const { return range * (all / ranges) + min(range, all % ranges); }
};

// Waits until the sums are there.
template <int d_head>
__device__ __forceinline__ void wait_sums(const Sums<d_head> &sums, int lane) {
    if (lane == 0) {
        while (ptx::load_relaxed(&sums.there) == 0) __nanosleep(100);
        ptx::load_acquire(&sums.there);
    }
    __syncwarp();
}

// Adds this thread's sums to dK or dV, and leaves zeros.
template <int count>
__device__ __forceinline__ void take_sums(float (&X)[4 * count], float4 (&sums)[count][128 * consumers]) {
    const int thread = ptx::thread_number();
#pragma unroll
    for (int i = 0; i < count; ++i) {
        const float4 four = sums[i][thread];
        X[4 * i] += four.x;
        X[4 * i + 1] += four.y;
        X[4 * i + 2] += four.z;
        X[4 * i + 3] += four.w;
        sums[i][thread] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}
template <int count>
__device__ __forceinline__ void leave_sums(const float (&X)[4 * count], float4 (&sums)[count][128 * consumers]) {
    const int thread = ptx::thread_number();
#pragma unroll
    for (int i = 0; i < count; ++i)
        sums[i][thread] = make_float4(X[4 * i], X[4 * i + 1], X[4 * i + 2], X[4 * i + 3]);
}
