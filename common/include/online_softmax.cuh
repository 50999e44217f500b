// Stage wgmma has this online softmax, which is that of stage fast_softmax on wgmma's accumulators.
#pragma once

#include "accumulator.cuh"
#include "numbers.cuh"
#include "ptx.cuh"

// The online softmax of a thread's two rows.
template <typename T, int Bc>
struct OnlineSoftmax {
    float scale_log2;                           // exp(scale x) = 2^(scale_log2 x)
    float row_max[2] = {-INFINITY, -INFINITY};  // of S, not scaled
    float row_sum[2] = {};                      // of P over all tiles so far, in this lane's columns only
    float rescale[2];                           // the factor for older sums and for O when the maximum grows

    // Takes the new maximum of each row and turns S into P, not yet rounded.
    __device__ __forceinline__ void exponentiate(float (&S)[Bc / 2]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float new_max = row_max[row];
#pragma unroll
            for (int x = 2 * row; x < Bc / 2; x += 4) new_max = fmaxf(new_max, fmaxf(S[x], S[x + 1]));
            new_max = row_reduce_max(new_max);
            const float top = new_max == -INFINITY ? 0.0f : new_max;  // the row may not have seen any key yet
            const float shift = top * scale_log2;
            rescale[row] = ptx::exp2((row_max[row] - top) * scale_log2);
            row_max[row] = new_max;

            float sum = 0.0f;  // of this lane's columns only
#pragma unroll
            for (int x = 2 * row; x < Bc / 2; x += 4) {
                S[x] = ptx::exp2(S[x] * scale_log2 - shift);  // one multiply-add and one ex2
                S[x + 1] = ptx::exp2(S[x + 1] * scale_log2 - shift);
                sum += S[x] + S[x + 1];
            }
            row_sum[row] = row_sum[row] * rescale[row] + sum;
        }
    }

    // Multiplies O by what older outputs shrink by. If no row of the warp has a new maximum, O stays as it is.
    template <int registers>
    __device__ __forceinline__ void rescale_O(float (&O)[registers]) const {
        if (!__any_sync(0xffffffff, rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
#pragma unroll
        for (int x = 0; x < registers; ++x) O[x] *= rescale[x / 2 % 2];
    }

    // Rounds P to 16 bits. 16 columns of S have the layout of wgmma's operand A, so P never leaves its lanes.
    __device__ __forceinline__ void round_P(const float (&S)[Bc / 2], uint32_t (&P)[Bc / 16][4]) const {
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i) P[k][i] = pack<T>(S[8 * k + 2 * i], S[8 * k + 2 * i + 1]);
    }

    // Reduces the sums over the four lanes of each row, after the last tile.
    __device__ __forceinline__ RowStatistics finalize() const {
        RowStatistics rows;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            rows.shift[row] = row_max[row] * scale_log2;
            rows.sum[row] = row_reduce_sum(row_sum[row]);
            rows.inverse[row] = rows.sum[row] > 0.0f ? 1.0f / rows.sum[row] : 0.0f;
        }
        return rows;
    }
};
