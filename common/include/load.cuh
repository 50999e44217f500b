// Stage shapes has these loads with Bc as a parameter; stages from tma on have the like of them.
#pragma once

#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "tile_scheduler.cuh"

// Starts the load of one tile and returns without waiting for it. The barrier `full` completes its phase when `bytes`
// bytes have arrived. Rows past the end of the tensor arrive as zeros.
__device__ void load_tile(void *tile, int bytes, const CUtensorMap &map, uint64_t *full, int row, int head, int batch) {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// Loads a tile into the next buffer of K, or of V, once the consumers have read the tile that the buffer holds.
template <int Bc, typename T, int elements, int stages>
__device__ void load_kv_tile(T (&buffers)[stages][elements], Pipeline<stages> &pipeline, PipelineState<stages> &state,
                             const CUtensorMap &map, const QueryTile &query_tile, int kv_tile) {
    pipeline.producer_acquire(state);
    load_tile(buffers[state.stage], elements * sizeof(T), map, &pipeline.full[state.stage], kv_tile * Bc,
              query_tile.kv_head, query_tile.batch);
    state.advance();
}
