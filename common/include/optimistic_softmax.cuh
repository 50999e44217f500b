// Stage optimistic_max teaches this online softmax, which bets on an old maximum.
#pragma once

#include "accumulator.cuh"
#include "numbers.cuh"
#include "ptx_hopper.cuh"

// The online softmax of a thread's two rows. The shift comes from an earlier tile: the code bets that no new score lies
// far above it. If one does, a lane's sum of P becomes too large. The code then takes the row's maximum, raises the
// shift, and computes P again. S may be a tile or some of its columns: each call places one bet.
template <typename T>
struct OptimisticSoftmax {
    static constexpr float lowest = -0x1p127f;  // below all scores, but finite: -infinity - shift is not NaN
    // The shift is raised to the row's maximum plus the headroom, so P is at most 2^-headroom and later scores may be
    // larger. fp16 gets little headroom, because it loses precision below 2^-14.
    static constexpr float headroom = std::is_same_v<T, __half> ? 3 : 32;
    static constexpr float largest_sum = std::is_same_v<T, __half> ? 0x1p15f : 0x1p64f;  // a larger sum loses the bet

    float scale_log2;  // exp(scale x) = 2^(scale_log2 x)
    int lane;
    float shift[2];
    float row_sum[2];            // of P over all tiles so far, in this lane's columns only
    float new_sum[2];            // of P over the current columns; infinite means a lost bet
    float rescale[2];            // the factor for older sums and for O when the shift is raised
    bool maximum_first = false;  // this warp raises the shift before it computes P, not after

    // A query tile's first columns. There is no shift to bet on yet, so the maximum comes first. O is not touched.
    template <int elements>
    __device__ __forceinline__ void begin(const float (&S)[elements], uint32_t (&P)[elements / 8][4]) {
        shift[0] = shift[1] = lowest;
        new_sum[0] = new_sum[1] = INFINITY;
        maximum_first = false;
        raise_shift(S, 0);
        exponentiate(S, P);
        row_sum[0] = new_sum[0];
        row_sum[1] = new_sum[1];
    }

    // All other columns: places the bet, and repairs P, O and the sums if any lane of the warp loses it.
    template <int elements, int registers>
    __device__ __forceinline__ void advance(const float (&S)[elements], uint32_t (&P)[elements / 8][4],
                                            float (&O)[registers], int tiles_done) {
        const bool lost = exponentiate(S, P);
        if (__any_sync(0xffffffff, lost)) {
            // A warp that loses this early will lose again, unless its rows had seen no key and had no shift yet.
            if (tiles_done <= 8) maximum_first |= __all_sync(0xffffffff, fminf(shift[0], shift[1]) > lowest);
            ptx::wgmma_wait<0>(O, P);  // a product with other columns of P may still be running
            raise_shift(S, 0);
            rescale_O(O);
            exponentiate(S, P);
        }
        row_sum[0] += new_sum[0];
        row_sum[1] += new_sum[1];
    }

    // Raises the shift before P of a tile is computed, where P would exceed 2^headroom: far below a lost bet.
    template <int elements, int registers>
    __device__ __forceinline__ void look_first(const float (&S)[elements], uint32_t (&P)[elements / 8][4],
                                               float (&O)[registers]) {
        new_sum[0] = new_sum[1] = INFINITY;
        raise_shift(S, 2 * headroom);
        ptx::wgmma_wait<0>(O, P);
        if (__any_sync(0xffffffff, fminf(rescale[0], rescale[1]) < 1.0f)) rescale_O(O);
    }

    // Reduces the sums over the four lanes of each row, after the query tile's last columns.
    __device__ __forceinline__ RowStatistics finalize() const {
        RowStatistics rows;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            rows.shift[row] = shift[row];
            rows.sum[row] = row_reduce_sum(row_sum[row]);
            rows.inverse[row] = rows.sum[row] > 0.0f ? ptx::reciprocal(rows.sum[row]) : 0.0f;
        }
        return rows;
    }

  private:
    // Computes P of some columns and its sums. 16 columns of S, rounded to 16 bits, have the layout of wgmma's operand
    // A, so P never leaves its lanes. S is kept in case the bet is lost. Returns whether this lane has lost it.
    template <int elements>
    __device__ __forceinline__ bool exponentiate(const float (&S)[elements], uint32_t (&P)[elements / 8][4]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            new_sum[row] = 0.0f;
#pragma unroll
            for (int x = 2 * row; x < elements; x += 4) {
                const float p0 = ptx::exp2(fmaf(S[x], scale_log2, -shift[row]));  // one multiply-add and one ex2
                const float p1 = ptx::exp2(fmaf(S[x + 1], scale_log2, -shift[row]));
                new_sum[row] += p0 + p1;
                P[x / 8][x % 8 / 2] = pack<T>(p0, p1);
            }
        }
        return !(fmaxf(new_sum[0], new_sum[1]) < largest_sum);
    }

    // Raises the shift of each row that has lost its bet, if the maximum of these columns is more than `slack` above
    // it. Other rows keep theirs, so that a row's result does not depend on the rows next to it.
    template <int elements>
    __device__ __forceinline__ void raise_shift(const float (&S)[elements], float slack) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float maximum = -INFINITY;
#pragma unroll
            for (int x = 2 * row; x < elements; x += 4) maximum = fmaxf(maximum, fmaxf(S[x], S[x + 1]));
            const float old_shift = shift[row];
            const float new_shift = row_reduce_max(maximum) * scale_log2 + headroom;
            if (any_of_row(!(new_sum[row] < largest_sum)) && new_shift > old_shift + slack) shift[row] = new_shift;
            rescale[row] = ptx::exp2(old_shift - shift[row]);
            row_sum[row] *= rescale[row];
        }
    }

    // Whether x is true in any of the four lanes that hold this lane's row.
    __device__ __forceinline__ bool any_of_row(bool x) const {
        const uint32_t from_this_row_on = __ballot_sync(0xffffffff, x) >> lane / 4 * 4;
        return from_this_row_on & 15;
    }

    template <int registers>
    __device__ __forceinline__ void rescale_O(float (&O)[registers]) const {
#pragma unroll
        for (int x = 0; x < registers; ++x) O[x] *= rescale[x / 2 % 2];
    }
};
