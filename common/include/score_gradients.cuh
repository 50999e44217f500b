// Stage backward_wgmma teaches how S becomes P, and dP becomes dS, in registers and transposed.
#pragma once

#include "accumulator.cuh"
#include "backward_passes.cuh"
#include "numbers.cuh"
#include "ptx.cuh"

// Sets S to -infinity where a query must not see a key. warp_key is the first of the warp's 16 keys. If the tile's
// first query sees the last of them, every query sees them all, and there is nothing to do.
template <int Br>
__device__ __forceinline__ void mask(float (&S)[Br / 2], int warp_key, int first_query, int causal_offset, int Nkv,
                                     int lane) {
    if (warp_key + 16 <= min(Nkv, first_query + 1 + causal_offset)) return;
#pragma unroll
    for (int x = 0; x < Br / 2; ++x) {
        const int key = warp_key + accumulator_row(x, lane);
        const int query = first_query + accumulator_column(x, lane);
        if (key >= min(Nkv, query + 1 + causal_offset)) S[x] = -INFINITY;
    }
}

// P = 2^(scale_log2 S - log_sum_exp) in fp32 in the place of S, and rounded as wgmma's operand A. The log-sum-exp of a
// row that sees no key, or is past the end of Q, is infinity: its P is 0.
template <typename T, int Br>
__device__ __forceinline__ void exponentiate(float (&S)[Br / 2], uint32_t (&P)[Br / 16][4], const float *log_sum_exp,
                                             float scale_log2, int lane) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
        float row[4];
        read_statistics(row, log_sum_exp, q, lane);
#pragma unroll
        for (int x = 0; x < 8; ++x) S[8 * q + x] = ptx::exp2(fmaf(S[8 * q + x], scale_log2, -row[x / 4 * 2 + x % 2]));
#pragma unroll
        for (int i = 0; i < 4; ++i) P[q][i] = pack<T>(S[8 * q + 2 * i], S[8 * q + 2 * i + 1]);
    }
}

// dS = P (dP - D), rounded as wgmma's operand A.
template <typename T, int Br>
__device__ __forceinline__ void differentiate(const float (&P)[Br / 2], float (&dP)[Br / 2], uint32_t (&dS)[Br / 16][4],
                                              const float *D, int lane) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
        float row[4];
        read_statistics(row, D, q, lane);
#pragma unroll
        for (int x = 0; x < 8; ++x) dP[8 * q + x] = P[8 * q + x] * (dP[8 * q + x] - row[x / 4 * 2 + x % 2]);
#pragma unroll
        for (int i = 0; i < 4; ++i) dS[q][i] = pack<T>(dP[8 * q + 2 * i], dP[8 * q + 2 * i + 1]);
    }
}
