// What a kernel that you write from a blank page shows of itself while it grows: elements of Q, K, V, S and P as it
// holds them, and each row's log-sum-exp. `make check KERNEL=my.cu STAGE=06` compares them with the reference, so that
// a kernel can be right in parts before O is. In every other build these functions do nothing, and cost nothing.
//
// Rows and columns count over the whole problem, not within a tile: row 200 of K is row 8 of its fourth tile of 64
// rows. The problem has one batch and one head. An element may be shown several times, by several blocks: always the
// same.
//
//     show_K(params, row, column, K_tile[...]);  // as you read it from shared memory, after the wait
//     show_S(params, row, column, S[...]);       // row of Q, row of K: the product, before it is scaled
//     show_P(params, row, column, P);            // the weight, whichever maximum it refers to, rounded or not
//     show_log_sum_exp(params, row, value);      // after the last tile: the logarithm of the sum of exp(scale S)
//
// What is computed for this alone goes into `if (showing) { ... }`: a shuffle, a barrier of a warp, a sum.
#pragma once

#include "attention.h"
#include "numbers.cuh"

#ifdef FLASH_SHOW

constexpr bool showing = true;

namespace shown {

constexpr unsigned nothing = 0xffffffff;  // what the buffer is filled with: not shown
constexpr unsigned various = 0xfffffffe;  // shown more than once, and not always the same
constexpr int kinds = 6;                  // Q, K, V, S, P, log-sum-exp; the buffer begins with two words for each of
                                          // them, the row and column of a place outside of it

// Element (row, column) of a matrix of rows x columns. Several blocks may show the same tile of K: atomics do not race.
__device__ inline void element(const FlashParams &params, int kind, int64_t first, int rows, int columns, int row,
                               int column, float value) {
    unsigned *words = static_cast<unsigned *>(params.workspace);
    if (row < 0 || row >= rows || column < 0 || column >= columns) {
        atomicExch(words + 2 * kind, static_cast<unsigned>(row));
        atomicExch(words + 2 * kind + 1, static_cast<unsigned>(column));
        return;
    }
    unsigned *place = words + 2 * kinds + first + int64_t{row} * columns + column;
    const unsigned bits = __float_as_uint(value), before = atomicCAS(place, nothing, bits);
    if (before != nothing && before != bits) atomicExch(place, various);
}

__device__ inline float number(float x) {
    return x;
}
template <typename T>
__device__ float number(T x) {
    return to_float(x);
}

}  // namespace shown

template <typename T>
__device__ void show_Q(const FlashParams &params, int row, int column, T value) {
    shown::element(params, 0, 0, params.Nq, params.d_head, row, column, shown::number(value));
}
template <typename T>
__device__ void show_K(const FlashParams &params, int row, int column, T value) {
    const int64_t first = int64_t{params.Nq} * params.d_head;
    shown::element(params, 1, first, params.Nkv, params.d_head, row, column, shown::number(value));
}
template <typename T>
__device__ void show_V(const FlashParams &params, int row, int column, T value) {
    const int64_t first = (int64_t{params.Nq} + params.Nkv) * params.d_head;
    shown::element(params, 2, first, params.Nkv, params.d_head, row, column, shown::number(value));
}
template <typename T>
__device__ void show_S(const FlashParams &params, int row, int column, T value) {
    const int64_t first = (int64_t{params.Nq} + 2 * int64_t{params.Nkv}) * params.d_head;
    shown::element(params, 3, first, params.Nq, params.Nkv, row, column, shown::number(value));
}
template <typename T>
__device__ void show_P(const FlashParams &params, int row, int column, T value) {
    const int64_t scores = int64_t{params.Nq} * params.Nkv;
    const int64_t first = (int64_t{params.Nq} + 2 * int64_t{params.Nkv}) * params.d_head + scores;
    shown::element(params, 4, first, params.Nq, params.Nkv, row, column, shown::number(value));
}
__device__ inline void show_log_sum_exp(const FlashParams &params, int row, float value) {
    const int64_t scores = int64_t{params.Nq} * params.Nkv;
    const int64_t first = (int64_t{params.Nq} + 2 * int64_t{params.Nkv}) * params.d_head + 2 * scores;
    shown::element(params, 5, first, params.Nq, 1, row, 0, value);
}

#else

constexpr bool showing = false;

template <typename T>
__device__ void show_Q(const FlashParams &, int, int, T) {}
template <typename T>
__device__ void show_K(const FlashParams &, int, int, T) {}
template <typename T>
__device__ void show_V(const FlashParams &, int, int, T) {}
template <typename T>
__device__ void show_S(const FlashParams &, int, int, T) {}
template <typename T>
__device__ void show_P(const FlashParams &, int, int, T) {}
__device__ inline void show_log_sum_exp(const FlashParams &, int, float) {}

#endif
