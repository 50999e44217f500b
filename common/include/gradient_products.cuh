// Stage backward_wgmma teaches these products, and how dS and dQ leave the registers.
#pragma once

#include "backward_passes.cuh"
#include "ptx_backward.cuh"
#include "wgmma_backward.cuh"

constexpr int Bc = 128;         // keys of a block: rows of K, V, dK and dV
constexpr int panel = 64;       // columns that TMA swizzles as one unit
constexpr int row_bytes = 128;  // of a panel
constexpr int consumers = 2;    // warpgroups, each with 64 keys
constexpr int threads = 128 * (consumers + 1);

// Rows of Q and dO in a tile. Accumulators of dK and dV take d_head registers of a thread, and those of S and dP take
// Br more.
constexpr int rows_of_tile(int d_head) {
    return d_head == 64 ? 128 : 64;
}

// Registers of a thread: the block starts with 168 for each and shares them out anew. 3 x 168 = 24 + 2 x 240.
constexpr int producer_registers = 24;
constexpr int consumer_registers = 240;

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// The transposing stmatrix takes the rows of dS, which are queries, from lanes 0 to 7 and 8 to 15 for the warp's
// first and second 8 keys of 8 queries, and from lanes 16 to 31 for those of the next 8 queries. The 16-byte chunk
// c of row r is at position c ^ (r % 8).
template <int Br, typename T>
__device__ uint32_t dS_row_address(T *dS, int warp, int lane) {
    const int row = lane / 16 * 8 + lane % 8;
    const int chunk = (warp % 4 * 2 + lane / 8 % 2) ^ row % 8;
    return ptx::shared_address(dS + (warp / 4 * Br + row) * panel + chunk * 8);
}

// S transposed = K Qᵀ, and dP transposed = V dOᵀ: [64 keys, Br queries], the sum over d_head in steps of 16
// columns: 32 bytes of a row, a quarter of a panel.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void issue_scores(float (&X)[Br / 2], uint64_t keys, uint64_t queries) {
    keys = ptx::opaque(keys);
    queries = ptx::opaque(queries);
    ptx::wgmma_fence();
    ptx::wgmma_ss_first<T, Br>(X, keys, queries);
#pragma unroll
    for (int k = 1; k < d_head / 16; ++k) {
        const uint64_t step = descriptor_offset(k % 4 * 32);
        const uint64_t keys_step = keys + descriptor_offset(k / 4 * Bc * row_bytes) + step;
        const uint64_t queries_step = queries + descriptor_offset(k / 4 * Br * row_bytes) + step;
        ptx::wgmma_ss<T, Br>(X, keys_step, queries_step, true);
    }
    ptx::wgmma_commit();
}

// dV += Pᵀ dO, and dK += dSᵀ Q: [64 keys, d_head]. One step is 16 queries: 16 rows of the tile.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void issue_gradient(float (&X)[d_head / 2], uint32_t (&A)[Br / 16][4], uint64_t queries) {
    queries = ptx::opaque(queries);
    ptx::wgmma_fence(X, A);
#pragma unroll
    for (int k = 0; k < Br / 16; ++k)
        ptx::wgmma_rs<T, d_head>(X, A[k], queries + descriptor_offset(k * 16 * row_bytes), true);
    ptx::wgmma_commit();
}

// dQ transposed = Kᵀ dSᵀ, the warpgroup's part over the keys of both: [64 columns of dQ, dQ_columns queries]. One
// step is 16 keys: 16 rows of K, and 32 bytes of dS's rows.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void issue_dQ(float (&dQ)[dQ_columns<d_head, Br> / 2], uint64_t K_columns,
                                         uint64_t dS_tile) {
    constexpr int columns = dQ_columns<d_head, Br>;
    K_columns = ptx::opaque(K_columns);
    dS_tile = ptx::opaque(dS_tile);
    ptx::wgmma_fence();
    ptx::wgmma_ss_transposed_first<T, columns>(dQ, K_columns, dS_tile);
#pragma unroll
    for (int k = 1; k < Bc / 16; ++k) {
        const uint64_t K_rows = K_columns + descriptor_offset(k * 16 * row_bytes);
        const uint64_t dS_step = dS_tile + descriptor_offset(k / 4 * Br * row_bytes + k % 4 * 32);
        ptx::wgmma_ss_transposed<T, columns>(dQ, K_rows, dS_step);
    }
    ptx::wgmma_commit();
}

// Adds the warpgroup's part of a tile's dQ to the sums of all blocks. The sums lie in the order of the registers: a
// warp adds to 512 bytes in a row, without a detour over shared memory. finish_kernel() puts them in order.
template <int accumulators>
__device__ __forceinline__ void add_dQ(const Workspace &workspace, int64_t row_tile, const float (&dQ)[accumulators]) {
    const int64_t part = row_tile * consumers + threadIdx.x / 128;
    float4 *const sums = workspace.dQ + part * (accumulators / 4 * 128) + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < accumulators / 4; ++i)
        ptx::reduce_add(sums + i * 128, dQ[4 * i], dQ[4 * i + 1], dQ[4 * i + 2], dQ[4 * i + 3]);
}
