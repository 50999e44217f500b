// Stage lean teaches what a block does with a head: how it begins with its rows of Q, masks its last unit and stores O.
#pragma once

#include "decode_maps.h"
#include "decode_parts.cuh"
#include "decode_unit.cuh"

constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// A head of K and V with the rows of Q that a block computes at a time. With more rows it counts as several heads.
struct Head {
    int number;  // of all
    int kv_head, batch;
    int first_row, rows;  // of the packed rows: row r is row r % Nq of head r / Nq of the group
    int length;           // of the sequence
};

// ---- Q ----

// A row of Q of those of a head.
template <typename T>
__device__ const T *Q_row(const FlashDecodeParams &params, const Head &head, int own) {
    const int row = head.first_row + own, q_head = head.kv_head * (params.Hq / params.Hkv) + row / params.Nq;
    return static_cast<const T *>(params.Q.data) + head.batch * params.Q.stride_batch + q_head * params.Q.stride_head +
           row % params.Nq * params.Q.stride_row;
}

// Has the head's rows brought into L2, where they are close when the block begins with it.
template <typename T, int d_head>
__device__ void prefetch_Q(const FlashDecodeParams &params, const Head &head) {
    const int lane = threadIdx.x % 32, row = lane / (d_head / panel);
    if (row < head.rows) ptx::prefetch_L2(Q_row<T>(params, head, row) + lane % (d_head / panel) * panel);
}

// Asks for the rows of Q, which the lanes need as they lie in memory.
template <typename T, int row_tiles, int d_pieces>
__device__ void load_Q(uint32_t (&Q)[row_tiles][d_pieces][2], const FlashDecodeParams &params, const Head &head) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        const int own = t * tile + lane / 4;
        const T *from = Q_row<T>(params, head, own) + lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < d_pieces; ++k)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                Q[t][k][half] = own < head.rows ? *reinterpret_cast<const uint32_t *>(from + 16 * k + 8 * half) : 0;
    }
}

// Sets out with no keys.
template <int d_head, int row_tiles>
__device__ void begin(WarpState<d_head, row_tiles> &state, const FlashDecodeParams &params, const Head &head) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
            for (int x = 0; x < 4; ++x) state.O[t][k][x] = 0.0f;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int query = (head.first_row + t * tile + lane % 4 * 2 + j) % params.Nq;
            state.row_max[t][j] = -INFINITY;
            state.row_sum[t][j] = 0.0f;
            state.end[t][j] = head.length + 1 + query - params.Nq;  // the last row sees all
        }
    }
}

// ---- load ----

// One warp's buffers.
template <typename T, int d_head>
struct Buffers {
    T K[unit * d_head];  // [d_head / panel][unit][panel], as TMA brings it
    T V[unit * d_head];  // the same
};

// ---- mask ----

// Scores in powers of 2; where the unit reaches the end of a row's keys, -infinity from there on. S[m][t][x] is of key
// 16 m + x / 2 * 8 + lane / 4.
template <int d_head, int row_tiles>
__device__ void mask(float (&S)[m_tiles][row_tiles][4], const WarpState<d_head, row_tiles> &state, int key,
                     int first_end, float scale_log2) {
    const int first = key + threadIdx.x % 32 / 4;
    const bool whole = key + unit <= first_end;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int t = 0; t < row_tiles; ++t)
#pragma unroll
            for (int x = 0; x < 4; ++x) S[m][t][x] *= scale_log2;
    if (whole) return;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int t = 0; t < row_tiles; ++t)
#pragma unroll
            for (int x = 0; x < 4; ++x)
                if (first + m * 16 + x / 2 * 8 >= state.end[t][x % 2]) S[m][t][x] = -INFINITY;
}

// ---- store ----

// Stores O and the log-sum-exp. merge: gives four columns of a row.
template <typename T, int d_head, int threads, typename Merge>
__device__ void store_O(const FlashDecodeParams &params, const Head &head, const Merge &merge) {
    const int group = params.Hq / params.Hkv;
    const int64_t kv_heads_before = static_cast<int64_t>(head.batch) * params.Hkv + head.kv_head;
    for (int i = threadIdx.x; i < head.rows * (d_head / 4); i += threads) {
        const int own = i / (d_head / 4), column = i % (d_head / 4) * 4;
        const RowPiece merged = merge(own, column);
        const float inverse = merged.row_sum > 0.0f ? 1.0f / merged.row_sum : 0.0f;
        const int row = head.first_row + own, q_head = head.kv_head * group + row / params.Nq;
        T *to = static_cast<T *>(params.O.data) + head.batch * params.O.stride_batch + q_head * params.O.stride_head +
                row % params.Nq * params.O.stride_row + column;
        *reinterpret_cast<uint2 *>(to) = make_uint2(pack<T>(merged.O.x * inverse, merged.O.y * inverse),
                                                    pack<T>(merged.O.z * inverse, merged.O.w * inverse));
        if (params.log_sum_exp && column == 0)
            params.log_sum_exp[kv_heads_before * group * params.Nq + row] =
                merged.row_sum > 0.0f ? merged.row_max * ln_2 + logf(merged.row_sum) : -INFINITY;
    }
}

template <typename T, int d_head, int row_tiles, int warps>
struct SharedStorage {
    Buffers<T, d_head> buffers[warps];
    Results<warps, d_head, row_tiles> results;
    uint64_t K_full[warps], V_full[warps];  // complete a phase when a unit has arrived
    bool last_block;
};
