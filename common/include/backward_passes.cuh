// What runs before and after the kernel that computes the gradients' products, and the scratch in global memory between
// them: D and the log-sum-exp for each row, and sums of dQ in fp32, to which all blocks add.
#pragma once

#include "accumulator.cuh"
#include "gradient_rows.cuh"
#include "launch_backward.h"
#include "numbers.cuh"
#include "ptx_backward.cuh"
#include "ptx_decode.cuh"

// What the kernels hand on to each other. A row tile is Br rows of Q of one head.
struct Workspace {
    float *statistics;  // for each row tile [2][Br]: the log-sum-exp in base 2, then D; in statistics_position's order
    float4 *dQ;    // for each row tile [2][dQ_columns / 8][128]: sums of dQ in fp32, as the two warpgroups hold them
    int *counter;  // 0 at first: where blocks take the next piece of work by atomicAdd
};

// Queries of a warpgroup's part of dQ, whose other side is 64 columns of dQ, the rows of wgmma. At d_head 128 the two
// warpgroups have a panel of the columns each, at d_head 64 half of the queries.
template <int d_head, int Br>
constexpr int dQ_columns = d_head == 128 ? Br : Br / 2;

// Where a row's statistic is among those of its tile. Of every 16 rows the four that one lane needs
// (accumulator_column) follow each other, so that it reads them at once.
__host__ __device__ constexpr int statistics_position(int row) {
    return row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2;
}

// Reads the statistics of the lane's columns 16 q to 16 q + 15. Accumulator 8 q + x, for x below 8, has its own in
// values[x / 4 * 2 + x % 2].
__device__ __forceinline__ void read_statistics(float (&values)[4], const float *statistics, int q, int lane) {
    const float4 four = reinterpret_cast<const float4 *>(statistics)[q * 4 + lane % 4];
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
}

// Whether one unit alone adds to a row tile: its queries see keys, and none past the first Bc of them.
template <int Br, int Bc>
__device__ __forceinline__ bool has_one_unit(const FlashBackwardParams &params, int row_tile) {
    const int causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;
    const int end = row_tile * Br + Br + causal_offset;  // of the keys that the tile's last query sees
    return end > 0 && min(params.Nkv, end) <= Bc;
}

// Rounds the warpgroup's part of a tile's dQ and stores it. A warp holds 16 columns of it, transposed, in 8x8 matrices.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void store_dQ(const FlashBackwardParams &params, int tile,
                                         const float (&dQ)[dQ_columns<d_head, Br> / 2], int warp, int lane) {
    constexpr int columns = dQ_columns<d_head, Br>;
    const int row_tiles = (params.Nq + Br - 1) / Br;
    const int head = tile / row_tiles;  // of Q, counted over all batches
    const int first_query = tile % row_tiles * Br + (d_head == 128 ? 0 : warp / 4 * columns);
    const int first_column = (d_head == 128 ? warp / 4 * 64 : 0) + warp % 4 * 16;
    T *const rows = first_row<T>(params.dQ, head / params.Hq, head % params.Hq, first_query) + first_column;
#pragma unroll
    for (int q = 0; q < columns / 16; ++q) {
        uint32_t pieces[4];  // 8 queries each; columns 0 to 7 and 8 to 15 of the first 8 queries, then of the others
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int x = 8 * q + 2 * i;
            pieces[i] = ptx::transpose(pack<T>(dQ[x] * params.scale, dQ[x + 1] * params.scale));
        }
        transpose_quad(pieces, lane);  // each lane has one piece of a query: 16 bytes
        const int row = q * 16 + lane % 4 / 2 * 8 + lane / 4;
        T *const address = rows + row * params.dQ.stride_row + lane % 2 * 8;
        if (first_query + row < params.Nq)
            *reinterpret_cast<uint4 *>(address) = make_uint4(pieces[0], pieces[1], pieces[2], pieces[3]);
    }
}

// Rounds and stores 8 columns of two queries that follow each other. `sums` is where the first two sums of the
// lane's lie, in shared memory, and the next ones are 64 bytes apart: registers of different lanes held them. Lanes
// with odd_warp take each second one first, so that no two lanes want the same bank at once.
template <typename T>
__device__ __forceinline__ void round_queries(const FlashBackwardParams &params, uint32_t sums, bool odd_warp, T *dQ,
                                              int query) {
    uint32_t first[4], second[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 x = ptx::load_shared(sums + i * 128), y = ptx::load_shared((sums ^ 64) + i * 128);
        const uint32_t order = odd_warp ? 0x1032 : 0x3210;
        first[i] = __byte_perm(pack<T>(x.x * params.scale, y.x * params.scale), 0, order);
        second[i] = __byte_perm(pack<T>(x.y * params.scale, y.y * params.scale), 0, order);
    }
    T *const next = dQ + params.dQ.stride_row;
    if (query < params.Nq) *reinterpret_cast<uint4 *>(dQ) = make_uint4(first[0], first[1], first[2], first[3]);
    if (query + 1 < params.Nq)
        *reinterpret_cast<uint4 *>(next) = make_uint4(second[0], second[1], second[2], second[3]);
}

// Adds the products of 8 numbers each of O and dO to D.
template <typename T>
__device__ __forceinline__ float add_products(const T *O, const T *dO, float D) {
    alignas(16) T O_piece[8], dO_piece[8];
    *reinterpret_cast<uint4 *>(O_piece) = *reinterpret_cast<const uint4 *>(O);
    *reinterpret_cast<uint4 *>(dO_piece) = *reinterpret_cast<const uint4 *>(dO);
#pragma unroll
    for (int x = 0; x < 8; ++x) D = fmaf(to_float(O_piece[x]), to_float(dO_piece[x]), D);
    return D;
}

// D = rowsum(dO * O) of a row by d_head / 8 lanes, all of which get it.
template <typename T, int d_head>
__device__ __forceinline__ float sum_of_products(const FlashBackwardParams &params, int batch, int head, int row) {
    constexpr int lanes = d_head / 8;
    const int column = threadIdx.x % lanes * 8;
    float D = 0.0f;
    if (row < params.Nq)
        D = add_products(first_row<T>(params.O, batch, head, row) + column,
                         first_row<T>(params.dO, batch, head, row) + column, D);
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) D += __shfl_xor_sync(0xffffffff, D, step);
    return D;
}

// A row's log-sum-exp, -infinity past the end. head: of Q, counted over all batches.
__device__ __forceinline__ float log_sum_exp_of(const FlashBackwardParams &params, int head, int row) {
    return row < params.Nq ? params.log_sum_exp[int64_t{head} * params.Nq + row] : -INFINITY;
}

// Stores what the products need of a row of a row tile: its log-sum-exp in base 2, and D.
template <int Br>
__device__ __forceinline__ void store_statistics(const Workspace &workspace, int64_t row_tile, int row,
                                                 float log_sum_exp, float D) {
    float *const statistics = workspace.statistics + row_tile * 2 * Br + statistics_position(row);
    // 2^(S - infinity) = 0: of rows past the end, and of those that see no key, whose log-sum-exp is -infinity.
    statistics[0] = log_sum_exp == -INFINITY ? INFINITY : log_sum_exp * 1.44269504f;
    statistics[Br] = D;
}

// What the products need of O, for a row of a head: by d_head / 8 lanes. Returns the row's tile, counted over all
// heads.
template <typename T, int d_head, int Br>
__device__ __forceinline__ int64_t prepare_row(const FlashBackwardParams &params, const Workspace &workspace, int batch,
                                               int head, int row) {
    const int head_index = batch * params.Hq + head;
    const float D = sum_of_products<T, d_head>(params, batch, head, row);
    const int64_t row_tile = int64_t{head_index} * ((params.Nq + Br - 1) / Br) + row / Br;
    if (threadIdx.x % (d_head / 8) == 0)
        store_statistics<Br>(workspace, row_tile, row % Br, log_sum_exp_of(params, head_index, row), D);
    return row_tile;
}

// The statistics of each row, and zeros for the sums of dQ.
// grid: (rows of a head's row tiles / 256 * lanes, Hq, B); d_head / 8 lanes work on a row.
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(256) prepare_kernel(const FlashBackwardParams params, const Workspace workspace) {
    constexpr int lanes = d_head / 8;
    const int row = blockIdx.x * (256 / lanes) + threadIdx.x / lanes;
    const int head = blockIdx.y, batch = blockIdx.z;
    const int64_t row_tile = prepare_row<T, d_head, Br>(params, workspace, batch, head, row);
    if (blockIdx.x == 0 && head == 0 && batch == 0 && threadIdx.x == 0) *workspace.counter = 0;
    float4 *const sums = workspace.dQ + (row_tile * Br + row % Br) * (d_head / 4) + threadIdx.x % lanes;
    sums[0] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    sums[lanes] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// dQ from its sums, which lie as wgmma's accumulators of dQ transposed.
// grid: (row tiles of a head, Hq, B); a block has one thread for each of the threads that made the sums.
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(256) finish_kernel(const FlashBackwardParams params, const Workspace workspace) {
    constexpr int columns = dQ_columns<d_head, Br>;
    __shared__ float dQ[Br][d_head + 4];  // padded against bank conflicts
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_query = blockIdx.x * Br;
    const int64_t tile = (int64_t{blockIdx.z} * params.Hq + blockIdx.y) * gridDim.x + blockIdx.x;
    const float4 *const sums = workspace.dQ + (tile * 2 + warp / 4) * (columns / 8 * 128) + threadIdx.x % 128;
    const int column = (d_head == 128 ? warp / 4 * 64 : 0) + warp % 4 * 16;
    const int row = d_head == 128 ? 0 : warp / 4 * columns;
#pragma unroll
    for (int i = 0; i < columns / 8; ++i) {
        const float4 four = sums[i * 128];
        const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            dQ[row + accumulator_column(4 * i + k, lane)][column + accumulator_row(k, lane)] = values[k];
    }
    __syncthreads();
    for (int piece = threadIdx.x; piece < Br * d_head / 8; piece += 256) {
        const int r = piece / (d_head / 8), c = piece % (d_head / 8) * 8;
        if (first_query + r >= params.Nq) break;
        uint32_t pairs[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            pairs[k] = pack<T>(dQ[r][c + 2 * k] * params.scale, dQ[r][c + 2 * k + 1] * params.scale);
        T *const address = first_row<T>(params.dQ, blockIdx.z, blockIdx.y, first_query + r) + c;
        *reinterpret_cast<uint4 *>(address) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

// ---- launch ----

inline int64_t padded_rows(const FlashBackwardParams &params, int Br) {
    return int64_t{params.B} * params.Hq * ((params.Nq + Br - 1) / Br * Br);
}

inline size_t backward_workspace_bytes(const FlashBackwardParams &params, int Br) {
    return padded_rows(params, Br) * (2 + params.d_head) * sizeof(float) + 16;  // the counter, and 16 bytes stay whole
}

template <int Br>
Workspace workspace_of(const FlashBackwardParams &params) {
    float *const sums = static_cast<float *>(params.workspace);
    float *const statistics = sums + padded_rows(params, Br) * params.d_head;
    int *const counter = reinterpret_cast<int *>(statistics + padded_rows(params, Br) * 2);
    return {.statistics = statistics, .dQ = reinterpret_cast<float4 *>(sums), .counter = counter};
}

using BackwardPass = flash::TypedKernel<const FlashBackwardParams, const Workspace>;

template <typename T, int d_head, int Br>
BackwardPass prepare_pass(const FlashBackwardParams &params) {
    constexpr int block_rows = 256 / (d_head / 8);  // divides Br
    const int row_tiles = (params.Nq + Br - 1) / Br;
    return {prepare_kernel<T, d_head, Br>, dim3(row_tiles * (Br / block_rows), params.Hq, params.B), 256};
}

template <typename T, int d_head, int Br>
BackwardPass finish_pass(const FlashBackwardParams &params) {
    return {finish_kernel<T, d_head, Br>, dim3((params.Nq + Br - 1) / Br, params.Hq, params.B), 256};
}
