// Stage tma_store teaches this epilogue: O leaves through shared memory by TMA. The log-sum-exp leaves as before.
#pragma once

#include "accumulator.cuh"
#include "numbers.cuh"
#include "ptx_hopper.cuh"
#include "tile_scheduler.cuh"

// Divides the warp's 16 rows of O by their sums and stores them. The lanes write them to shared memory; TMA copies them
// to global memory while the warp continues. TMA does not write rows past the end of O.
template <typename T, int panels, int panel>
__device__ __forceinline__ void store_O(const CUtensorMap &map, T (&staging)[panels][16][panel],
                                        const float (&O)[panels * panel / 2], const RowStatistics &rows,
                                        const QueryTile &query_tile, int warp, int lane) {
    if (lane == 0) ptx::tma_store_wait_read<0>();  // TMA has read the previous query tile's rows
    __syncwarp();
    const uint32_t row_address = ptx::shared_address(staging[0][lane % 16]);
#pragma unroll
    for (int n = 0; n < panels * panel / 8; n += 2) {  // 16 columns: lanes 0-15 give the row addresses of the first 8
        uint32_t pieces[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int x = 4 * (n + k / 2) + k % 2 * 2;
            pieces[k] = pack<T>(O[x] * rows.inverse[k % 2], O[x + 1] * rows.inverse[k % 2]);
        }
        const int chunk = (n % 8 + lane / 16) ^ lane % 8;  // TMA takes chunk c of row r from position c ^ (r % 8)
        ptx::stmatrix_x4(row_address + (n / 8 * 16 * panel + chunk * 8) * sizeof(T), pieces);
    }
    ptx::fence_proxy_async();  // makes this lane's writes visible to TMA
    __syncwarp();              // every lane has made its writes visible before lane 0 starts TMA
    if (lane == 0) {
        ptx::tma_store(&map, staging, 0, query_tile.first_row + warp * 16, 0, query_tile.head, query_tile.batch);
        ptx::tma_store_commit();
    }
}

// Stores the natural logarithm of each row's sum of exp(scale * score), if the caller asked for it.
__device__ __forceinline__ void store_log_sum_exp(const FlashParams &params, const RowStatistics &rows,
                                                  const QueryTile &query_tile, int warp, int lane) {
    if (!params.log_sum_exp) return;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int i = query_tile.first_row + warp * 16 + 8 * row + lane / 4;
        if (lane % 4 == 0 && i < params.Nq)
            params.log_sum_exp[(int64_t{query_tile.batch} * params.Hq + query_tile.head) * params.Nq + i] =
                rows.sum[row] > 0.0f ? rows.shift[row] * 0.693147181f + logf(rows.sum[row]) : -INFINITY;
    }
    __syncwarp();  // after a branch that lanes take differently, the compiler needs to know that they have converged
}
