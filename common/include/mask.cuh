// Stage wgmma and those up to no_gap have this mask with Bc as a constant; stage shapes applies it to parts of a tile.
#pragma once

#include "accumulator.cuh"
#include "tile_scheduler.cuh"

// Sets S to -infinity where a row must not see a key: right of the diagonal, and past the end of K. warp_row is the
// warp's first row of Q, which sees the fewest keys. If it sees the whole tile, every row does, and there is nothing to
// do.
template <int Bc>
__device__ __forceinline__ void mask(float (&S)[Bc / 2], const QueryTile &query_tile, int warp_row, int kv_tile,
                                     int Nkv, int lane) {
    const int first_column = kv_tile * Bc;
    if (first_column + Bc <= min(Nkv, warp_row + 1 + query_tile.causal_offset)) return;
#pragma unroll
    for (int x = 0; x < Bc / 2; ++x) {
        const int row = warp_row + accumulator_row(x, lane);
        const int column = first_column + accumulator_column(x, lane);
        if (column >= min(Nkv, row + 1 + query_tile.causal_offset)) S[x] = -INFINITY;
    }
}
