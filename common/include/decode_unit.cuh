// Stage packed_gqa teaches these products; here a unit has 32 keys and lies in shared memory as TMA brings it.
#pragma once

#include "numbers.cuh"
#include "ptx_decode.cuh"
#include "ptx_hopper.cuh"

constexpr int unit = 32;            // keys that a warp computes at a time
constexpr int m_tiles = unit / 16;  // first operands in a unit
constexpr int tile = 8;             // rows of Q in one second operand
constexpr int chunk = 8;            // elements in 16 bytes
constexpr int panel = 64;           // columns that TMA swizzles as one piece: 128 bytes of a row

// Where element 8 * c of row `row` lies in a unit of K or V, [unit / box][d_head / panel][box][panel]: a copy brings
// `box` rows, and TMA has stored chunk c at position c XOR row, modulo 8.
template <int d_head, int box>
__device__ int unit_offset(int row, int c) {
    return row / box * box * d_head + (c / 8 * box + row % box) * panel + (c ^ row) % 8 * chunk;
}

// Zeros in place of what the unit of V holds from row `first` on: past the sequence's end. P is 0 there, but what the
// cache holds there may be a NaN, and 0 * NaN is one.
template <int box, typename T, int elements>
__device__ void clear_rows(T (&V)[elements], int first) {
    constexpr int d_head = elements / unit, chunks = d_head / chunk;
    for (int i = threadIdx.x % 32; i < (unit - first) * chunks; i += 32)
        *reinterpret_cast<uint4 *>(V + unit_offset<d_head, box>(first + i / chunks, i % chunks)) =
            make_uint4(0, 0, 0, 0);
    ptx::fence_proxy_async();  // TMA brings the next unit after the zeros
    __syncwarp();              // the zeros are there for all lanes
}

// ---- what a warp holds ----

// Columns are rows of Q: of a tile's 8 a lane has number lane % 4 * 2 and the next one.
template <int d_head, int row_tiles>
struct WarpState {
    uint32_t Q[row_tiles][d_head / 16][2];               // Qᵀ: [d_head, 8] a tile
    float row_max[row_tiles][2], row_sum[row_tiles][2];  // row_sum: of the lane's keys
    float O[row_tiles][d_head / 16][4] = {};             // Oᵀ: [d_head, 8] a tile
    int end[row_tiles][2];                               // the keys from here on the row does not see
};

// ---- S = QKᵀ ----

// The address of a 16x16 piece of a unit, m pieces of keys down and n pieces of columns to the right. first: where the
// lane's row of the first piece lies.
template <typename T, int d_head, int box>
__device__ uint32_t piece_address(uint32_t first, int m, int n) {
    const int down = m * 16 / box * box * d_head + m * 16 % box * panel, right = n / 4 * box * panel;
    return (first ^ n % 4 * 2 * chunk * sizeof(T)) + (down + right) * sizeof(T);
}

// Sᵀ = K Qᵀ of one unit.
template <int box, typename T, int d_head, int row_tiles>
__device__ void multiply_QK(float (&S)[m_tiles][row_tiles][4], const T *K, const WarpState<d_head, row_tiles> &state) {
    const int lane = threadIdx.x % 32;
    const uint32_t first = ptx::shared_address(K + unit_offset<d_head, box>(lane % 16, lane / 16));
#pragma unroll
    for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
        for (int m = 0; m < m_tiles; ++m) {
            uint32_t A[4];
            ptx::ldmatrix_x4(A, piece_address<T, d_head, box>(first, m, k));
#pragma unroll
            for (int t = 0; t < row_tiles; ++t) ptx::mma_m16n8k16<T>(S[m][t], A, state.Q[t][k]);
        }
}

// ---- online softmax ----

// P in place of S. Row_max is the same in the eight lanes that share a column; row_sum is added up at the end.
template <int d_head, int row_tiles>
__device__ void online_softmax(float (&S)[m_tiles][row_tiles][4], WarpState<d_head, row_tiles> &state) {
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float new_max = state.row_max[t][j];
#pragma unroll
            for (int m = 0; m < m_tiles; ++m) new_max = fmaxf(new_max, fmaxf(S[m][t][j], S[m][t][j + 2]));
#pragma unroll
            for (int step = 4; step < 32; step *= 2)
                new_max = fmaxf(new_max, __shfl_xor_sync(0xffffffff, new_max, step));
            const float shift = new_max == -INFINITY ? 0.0f : new_max;  // of a row that has seen no key yet
            const float rescale = ptx::exp2(state.row_max[t][j] - shift);
            state.row_max[t][j] = new_max;
            state.row_sum[t][j] *= rescale;
#pragma unroll
            for (int m = 0; m < m_tiles; ++m) {
                S[m][t][j] = ptx::exp2(S[m][t][j] - shift);
                S[m][t][j + 2] = ptx::exp2(S[m][t][j + 2] - shift);
                state.row_sum[t][j] += S[m][t][j] + S[m][t][j + 2];
            }
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {
                state.O[t][k][j] *= rescale;
                state.O[t][k][j + 2] *= rescale;
            }
        }
}

// ---- O += PV ----

// Oᵀ += Vᵀ Pᵀ of one unit. Pᵀ comes out of the tensor cores with a key's rows side by side in a lane, and goes in with
// a row's keys side by side: each 8x8 matrix is transposed.
template <int box, typename T, int d_head, int row_tiles>
__device__ void multiply_PV(WarpState<d_head, row_tiles> &state, const float (&P)[m_tiles][row_tiles][4], const T *V) {
    const int lane = threadIdx.x % 32;
    const uint32_t first = ptx::shared_address(V + unit_offset<d_head, box>(lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
        uint32_t B[row_tiles][2];
#pragma unroll
        for (int t = 0; t < row_tiles; ++t) {
            B[t][0] = ptx::movmatrix_trans(pack<T>(P[m][t][0], P[m][t][1]));
            B[t][1] = ptx::movmatrix_trans(pack<T>(P[m][t][2], P[m][t][3]));
        }
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            uint32_t A[4];
            ptx::ldmatrix_x4_trans(A, piece_address<T, d_head, box>(first, m, k));
#pragma unroll
            for (int t = 0; t < row_tiles; ++t) ptx::mma_m16n8k16<T>(state.O[t][k], A, B[t]);
        }
    }
}
