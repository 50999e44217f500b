// The tiles of a unit: loads whose thread has few registers, and the first dS, which is computed while K is on its way.
#pragma once

#include "backward_mainloop.cuh"

// The place in a queue of the tile, or the unit, with this number.
template <int stages>
__device__ inline PipelineState<stages> place(uint32_t number) {
    return {number % stages, number / stages % 2};
}

// Where a tile's statistics begin: the log-sum-exp, then D.
template <int Br>
__device__ __forceinline__ const float *statistics_of(const FlashBackwardParams &params, const Workspace &workspace,
                                                      int batch, const QueryTile &tile) {
    const int row_tiles = (params.Nq + Br - 1) / Br;
    return workspace.statistics + (int64_t{batch * params.Hq + tile.head} * row_tiles + tile.row_tile) * (2 * Br);
}

// Loads a tile of Q or dO together with its statistic, which lies at `from`.
template <typename T, int Br, int size, int stages>
__device__ __forceinline__ void load_queries(T (&tiles)[stages][size], float (&statistics)[stages][Br],
                                             Pipeline<stages> &pipeline, const PipelineState<stages> &write,
                                             const CUtensorMap &map, const float *from, const QueryTile &tile,
                                             int batch) {
    pipeline.producer_acquire(write);
    uint64_t *const full = &pipeline.full[write.stage];
    ptx::mbarrier_arrive_expect_tx(full, sizeof(tiles[0]) + sizeof(statistics[0]));
    ptx::tma_load(tiles[write.stage], &map, full, 0, tile.row_tile * Br, 0, tile.head, batch);
    ptx::bulk_load(statistics[write.stage], from, sizeof(statistics[0]), full);
}

// As derive_dS(), of a unit's first tile, whose K may not be there yet. dP needs V alone. At d_head 128 it is computed
// before S.
template <typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void derive_first_dS(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                                float (&dV)[d_head / 2], const FlashBackwardParams &params,
                                                const KeyTile<Br, Bc> &keys, int first_query) {
    const int warp_key = keys.first_key + mainloop.warp * 16;
    constexpr bool dP_first = d_head == 128;
    float log_sum_exp[Br / 16][4];
    mainloop.begin_dP(tile.dP);
    if constexpr (dP_first) mainloop.issue_dP(tile.dP);
    mainloop.shared.K_pipeline.consumer_wait(mainloop.keys_read);
    mainloop.issue_S(tile.S);
    if constexpr (dP_first) {
        mainloop.read_log_sum_exp(log_sum_exp);
        ptx::wgmma_wait<0>(tile.S, tile.dP);
    } else {
        mainloop.issue_dP(tile.dP);
        ptx::wgmma_wait<1>(tile.S);
        mainloop.read_log_sum_exp(log_sum_exp);
    }
    mask<Br>(tile.S, warp_key, first_query, keys.causal_offset, params.Nkv, mainloop.lane);
    exponentiate<T, Br>(tile, log_sum_exp, params.scale * 1.44269504f);
    mainloop.issue_dV(dV, tile.P);
    if constexpr (!dP_first) ptx::wgmma_wait<1>(tile.dP);
    differentiate<T, Br>(tile);  // beside dV
}
