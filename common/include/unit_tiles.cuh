// The tiles of a unit: loads whose thread has few registers, the first dS, which is computed while K is on its way, and
// the order of the products of those after it.
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

// As derive_dS(), but a late dV is left to begin_gradients().
template <bool late_dV, typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void derive_next_dS(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                               float (&dV)[d_head / 2], const FlashBackwardParams &params,
                                               const KeyTile<Br, Bc> &keys, int first_query) {
    if constexpr (!late_dV) {
        derive_dS(mainloop, tile, dV, params, keys, first_query);
    } else {
        const int warp_key = keys.first_key + mainloop.warp * 16;
        float log_sum_exp[Br / 16][4];
        mainloop.begin_dP(tile.dP);
        mainloop.issue_S(tile.S);
        mainloop.issue_dP(tile.dP);
        mainloop.read_log_sum_exp(log_sum_exp);
        ptx::wgmma_wait<1>(tile.S);
        mask<Br>(tile.S, warp_key, first_query, keys.causal_offset, params.Nkv, mainloop.lane);
        exponentiate<T, Br>(tile, log_sum_exp, params.scale * 1.44269504f);  // beside dP
        ptx::wgmma_wait<0>(tile.dP);
        differentiate<T, Br>(tile);
    }
}

// Issues dQ of the tile before, this tile's dV, if that is late, and its dK, and waits for dQ.
//
// The additions to dQ follow. Their numbers leave the registers through the unit that shared memory is behind. S and
// dP, with both operands in shared memory, keep it busy all the time that the tensor cores need for them; dV and dK,
// with one in registers, half of it. A late dV is issued behind dQ, so that the additions have dV and dK beside them.
//
// The fence in tell_dS() waits for dS's stores: beside dQ, or beside dQ and dK.
template <bool late_dV, typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void begin_gradients(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                                float (&dQ)[dQ_columns<d_head, Br> / 2], float (&dK)[d_head / 2],
                                                float (&dV)[d_head / 2]) {
    mainloop.issue_dQ(dQ);
    if constexpr (late_dV) {
        mainloop.tell_dS();
        mainloop.issue_dV(dV, tile.P);
        mainloop.issue_dK(dK, tile.dS);
        ptx::wgmma_wait<2>(dQ);
    } else {
        mainloop.issue_dK(dK, tile.dS);
        mainloop.tell_dS();
        ptx::wgmma_wait<1>(dQ, dV, tile.P);
        mainloop.release_dO();
    }
    mainloop.release_dS();
}

// Waits for what begin_gradients() has left under way.
template <bool late_dV, typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void complete_gradients(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                                   float (&dK)[d_head / 2], float (&dV)[d_head / 2]) {
    if constexpr (late_dV) {
        ptx::wgmma_wait<1>(dV, tile.P);
        mainloop.release_dO();
    }
    ptx::wgmma_wait<0>(dK, tile.dS);
    mainloop.release_Q();
}
