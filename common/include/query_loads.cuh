// Stage backward_wgmma teaches these loads of a tile together with the statistic that its rows need.
#pragma once

#include "backward_maps.h"
#include "backward_passes.cuh"
#include "key_tile.cuh"
#include "pipeline.cuh"

// One phase of a barrier counts the bytes of the tile and of its statistic. Rows past the end of a tensor arrive as
// zeros.
template <typename Shared, int Br, int Bc, int stages>
struct QueryLoader {
    Shared &shared;
    const FlashBackwardParams &params;
    const BackwardMaps &maps;
    const Workspace &workspace;
    PipelineState<stages> Q_write, dO_write;

    __device__ void load_Q(const KeyTile<Br, Bc> &keys, const QueryTile &tile) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const int stage = Q_write.stage;
        uint64_t *const full = &shared.Q_pipeline.full[stage];
        ptx::mbarrier_arrive_expect_tx(full, sizeof(shared.Q[0]) + sizeof(shared.log_sum_exp[0]));
        ptx::tma_load(shared.Q[stage], &maps.Q, full, 0, tile.row_tile * Br, 0, tile.head, keys.batch);
        const float *const statistics = workspace.statistics + keys.number(params, tile) * 2 * Br;
        ptx::bulk_load(shared.log_sum_exp[stage], statistics, sizeof(shared.log_sum_exp[0]), full);
        Q_write.advance();
    }

    __device__ void load_dO(const KeyTile<Br, Bc> &keys, const QueryTile &tile) {
        shared.dO_pipeline.producer_acquire(dO_write);
        const int stage = dO_write.stage;
        uint64_t *const full = &shared.dO_pipeline.full[stage];
        ptx::mbarrier_arrive_expect_tx(full, sizeof(shared.dO[0]) + sizeof(shared.D[0]));
        ptx::tma_load(shared.dO[stage], &maps.dO, full, 0, tile.row_tile * Br, 0, tile.head, keys.batch);
        const float *const statistics = workspace.statistics + keys.number(params, tile) * 2 * Br;
        ptx::bulk_load(shared.D[stage], statistics + Br, sizeof(shared.D[0]), full);
        dO_write.advance();
    }
};
