// Stage warp_specialization has these loads.
#pragma once

#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"

// A tile of K or of V: its first row, its head and its batch.
struct KVTile {
    int first_row, kv_head, batch;
};

// Starts the load of one tile and returns without waiting for it. The barrier `full` completes its phase when `bytes`
// bytes have arrived. Rows past the end of the tensor arrive as zeros.
__device__ inline void load_tile(void *tile, int bytes, const CUtensorMap &map, uint64_t *full, int row, int head,
                                 int batch) {
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load(tile, &map, full, 0, row, 0, head, batch);
}

// Loads a tile into the next buffer of K, or of V, once the consumers have read the tile that the buffer holds.
template <typename T, int elements, int stages>
__device__ void load_kv_tile(T (&buffers)[stages][elements], Pipeline<stages> &pipeline, PipelineState<stages> &state,
                             const CUtensorMap &map, const KVTile &tile) {
    pipeline.producer_acquire(state);
    load_tile(buffers[state.stage], elements * sizeof(T), map, &pipeline.full[state.stage], tile.first_row,
              tile.kv_head, tile.batch);
    state.advance();
}
