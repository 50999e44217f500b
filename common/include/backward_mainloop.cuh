// Stage waits_apart teaches this mainloop: each product is waited for where it is needed.
#pragma once

#include "gradient_products.cuh"
#include "key_tile.cuh"
#include "pipeline.cuh"
#include "score_gradients.cuh"

constexpr int stages = 2;          // buffers for tiles of Q, and as many for tiles of dO
constexpr int dS_stages = stages;  // buffers for tiles of dS
constexpr int unit_stages = 2;     // of the queue in which the producer tells which keys come next

// A block's work at a time: a tile of keys of one head of K and V.
struct Unit {
    int key_tile, kv_head, batch;  // key_tile -1: there is no more work

    __device__ bool valid() const { return key_tile >= 0; }
};

// One consumer warpgroup's matrix products. It knows the position in the queues of Q and dO and how wgmma finds the
// tiles. The register arrays belong to the kernel function and are passed in. Between the issue of a product and the
// wait for it, the code must not touch the product's registers.
template <typename Shared, typename T, int d_head, int Br>
struct Mainloop {
    static constexpr int tile_bytes = Br * d_head * sizeof(T);  // of Q or dO
    static constexpr int dS_bytes = Br * Bc * sizeof(T);
    static constexpr int columns = dQ_columns<d_head, Br>;  // of the warpgroup's part of dQ transposed

    Shared &shared;
    const int warp, lane;
    const uint64_t K_descriptor, V_descriptor;   // the warpgroup's 64 keys
    const uint64_t K_transposed_descriptor;      // all keys, the warpgroup's columns of dQ
    const uint64_t Q_descriptor, dO_descriptor;  // buffer 0
    const uint64_t dS_descriptor;                // buffer 0, the queries of the warpgroup's part of dQ
    const uint32_t dS_address;                   // where this lane stores its row of dS in buffer 0
    PipelineState<unit_stages> unit_read;
    PipelineState<1> keys_read;        // of K and of V
    PipelineState<stages> read;        // of Q and of dO, and where dS is written: there are as many buffers
    PipelineState<dS_stages> dS_read;  // one tile late

    // wgmma reads K, V, Q and dO along d_head for S and dP. It reads Q, dO and K across the panels for the other
    // products, so the descriptors also hold the distance from one panel to the next. 8 rows of a panel are 1,024
    // bytes.
    __device__ Mainloop(Shared &shared, int warp, int lane)
        : shared(shared),
          warp(warp),
          lane(lane),
          K_descriptor(ptx::matrix_descriptor(shared.K + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          V_descriptor(ptx::matrix_descriptor(shared.V + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          K_transposed_descriptor(ptx::matrix_descriptor(shared.K + (d_head == 128 ? warp / 4 * Bc * panel : 0),
                                                         Bc * row_bytes, 8 * row_bytes)),
          Q_descriptor(ptx::matrix_descriptor(shared.Q, Br * row_bytes, 8 * row_bytes)),
          dO_descriptor(ptx::matrix_descriptor(shared.dO, Br * row_bytes, 8 * row_bytes)),
          dS_descriptor(ptx::matrix_descriptor(shared.dS[0] + (d_head == 128 ? 0 : warp / 4 * columns * panel), 0,
                                               8 * row_bytes)),
          dS_address(dS_row_address<Br>(shared.dS[0], warp, lane)) {}

    // Waits for the block's next unit.
    __device__ __forceinline__ Unit wait_unit() {
        shared.unit_pipeline.consumer_wait(unit_read);
        Unit unit = shared.units[unit_read.stage];
        // All lanes read the same values. The shuffles tell the compiler so: branches on them then do not diverge.
        unit.key_tile = __shfl_sync(0xffffffff, unit.key_tile, 0);
        unit.kv_head = __shfl_sync(0xffffffff, unit.kv_head, 0);
        unit.batch = __shfl_sync(0xffffffff, unit.batch, 0);
        __syncwarp();  // every lane has read it before lane 0 releases the place
        shared.unit_pipeline.consumer_release(unit_read, lane);
        return unit;
    }
    __device__ void wait_keys() {
        shared.K_pipeline.consumer_wait(keys_read);
        shared.V_pipeline.consumer_wait(keys_read);
    }
    __device__ void release_keys() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.K_pipeline.empty[0]);
        shared.V_pipeline.consumer_release(keys_read, lane);
    }

    // Waits for the next tile and sets dP's accumulators to -D: the product is then dP - D. The fence, which the tensor
    // cores need between this and the product, stands here: no accumulators may be written while S is under way.
    __device__ __forceinline__ void begin_dP(float (&dP)[Br / 2]) {
        shared.Q_pipeline.consumer_wait(read);
        shared.dO_pipeline.consumer_wait(read);
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) {
            float row[4];
            read_statistics(row, shared.D[read.stage], q, lane);
#pragma unroll
            for (int x = 0; x < 8; ++x) dP[8 * q + x] = -row[x / 4 * 2 + x % 2];
        }
        ptx::wgmma_fence(dP);
    }

    __device__ __forceinline__ void read_log_sum_exp(float (&log_sum_exp)[Br / 16][4]) {
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) read_statistics(log_sum_exp[q], shared.log_sum_exp[read.stage], q, lane);
    }

    __device__ __forceinline__ void issue_S(float (&S)[Br / 2]) {
        issue_scores<T, d_head, Br>(S, K_descriptor, Q_descriptor + descriptor_offset(read.stage * tile_bytes));
    }
    // dP transposed = V dOᵀ - D: as issue_scores(), but the accumulators begin with what they hold.
    __device__ __forceinline__ void issue_dP(float (&dP)[Br / 2]) {
        const uint64_t keys = ptx::opaque(V_descriptor);
        const uint64_t queries = ptx::opaque(dO_descriptor + descriptor_offset(read.stage * tile_bytes));
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t keys_step = keys + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t queries_step = queries + descriptor_offset(k / 4 * Br * row_bytes) + step;
            ptx::wgmma_ss<T, Br>(dP, keys_step, queries_step, true);
        }
        ptx::wgmma_commit();
    }

    __device__ __forceinline__ void issue_dV(float (&dV)[d_head / 2], uint32_t (&P)[Br / 16][4]) {
        issue_gradient<T, d_head, Br>(dV, P, dO_descriptor + descriptor_offset(read.stage * tile_bytes));
    }
    __device__ __forceinline__ void issue_dK(float (&dK)[d_head / 2], uint32_t (&dS)[Br / 16][4]) {
        issue_gradient<T, d_head, Br>(dK, dS, Q_descriptor + descriptor_offset(read.stage * tile_bytes));
    }

    // dQ of the tile before.
    __device__ __forceinline__ void issue_dQ(float (&dQ)[columns / 2]) {
        shared.dS_pipeline.consumer_wait(dS_read);  // both warpgroups have stored the tile's dS
        const uint64_t dS_tile = dS_descriptor + descriptor_offset(dS_read.stage * dS_bytes);
        ::issue_dQ<T, d_head, Br>(dQ, K_transposed_descriptor, dS_tile);
    }

    // Stores the warp's dS where wgmma reads it for dQ: transposed, so that a row is a query.
    __device__ __forceinline__ void write_dS(const uint32_t (&dS)[Br / 16][4]) {
        shared.dS_pipeline.producer_acquire(read);  // both warpgroups have read what the buffer held
        const uint32_t address = dS_address + read.stage * dS_bytes;
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) ptx::stmatrix_x4_trans(address + q * 16 * row_bytes, dS[q]);
    }
    // Tells both warpgroups that the warp's dS is there. The fence waits for the stores.
    __device__ __forceinline__ void tell_dS() {
        ptx::fence_proxy_async();  // makes this lane's writes visible to wgmma
        __syncwarp();              // every lane has made its writes visible before lane 0 arrives for the warp
        if (lane == 0) ptx::mbarrier_arrive(&shared.dS_pipeline.full[read.stage]);
    }
    __device__ __forceinline__ void store_dS(const uint32_t (&dS)[Br / 16][4]) {
        write_dS(dS);
        tell_dS();
    }

    __device__ void release_dS() { shared.dS_pipeline.consumer_release(dS_read, lane); }
    __device__ void release_dO() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.dO_pipeline.empty[read.stage]);
    }
    __device__ void release_Q() { shared.Q_pipeline.consumer_release(read, lane); }
};

// The registers of a tile, transposed: [64 keys, Br queries] per warpgroup.
template <int Br>
struct Scores {
    float S[Br / 2], dP[Br / 2];             // S becomes P
    uint32_t P[Br / 16][4], dS[Br / 16][4];  // rounded, as wgmma's operand A
};

// P = 2^(scale_log2 S - log_sum_exp) in fp32 in the place of S, and rounded as wgmma's operand A.
template <typename T, int Br>
__device__ __forceinline__ void exponentiate(Scores<Br> &tile, const float (&log_sum_exp)[Br / 16][4],
                                             float scale_log2) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
#pragma unroll
        for (int x = 0; x < 8; ++x) {
            float &S = tile.S[8 * q + x];
            S = ptx::exp2(fmaf(S, scale_log2, -log_sum_exp[q][x / 4 * 2 + x % 2]));
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) tile.P[q][i] = pack<T>(tile.S[8 * q + 2 * i], tile.S[8 * q + 2 * i + 1]);
    }
}

// dS = P (dP - D), where dP's accumulators hold dP - D; rounded as wgmma's operand A.
template <typename T, int Br>
__device__ __forceinline__ void differentiate(Scores<Br> &tile) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int x = 8 * q + 2 * i;
            tile.dS[q][i] = pack<T>(tile.S[x] * tile.dP[x], tile.S[x + 1] * tile.dP[x + 1]);
        }
    }
}

// From a tile of Q to its dS, in registers. dV += Pᵀ dO is under way at the end.
template <typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void derive_dS(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                          float (&dV)[d_head / 2], const FlashBackwardParams &params,
                                          const KeyTile<Br, Bc> &keys, int first_query) {
    const int warp_key = keys.first_key + mainloop.warp * 16;
    float log_sum_exp[Br / 16][4];
    mainloop.begin_dP(tile.dP);
    mainloop.issue_S(tile.S);
    mainloop.issue_dP(tile.dP);
    // At d_head 128 the log-sum-exp is read while S is computed. At d_head 64 the accumulators leave no registers for
    // it.
    if constexpr (d_head == 128) mainloop.read_log_sum_exp(log_sum_exp);
    ptx::wgmma_wait<1>(tile.S);
    if constexpr (d_head == 64) mainloop.read_log_sum_exp(log_sum_exp);
    mask<Br>(tile.S, warp_key, first_query, keys.causal_offset, params.Nkv, mainloop.lane);
    exponentiate<T, Br>(tile, log_sum_exp, params.scale * 1.44269504f);  // beside dP
    mainloop.issue_dV(dV, tile.P);

    ptx::wgmma_wait<1>(tile.dP);
    differentiate<T, Br>(tile);  // beside dV
}

// The same, and dS in shared memory.
template <typename Shared, typename T, int d_head, int Br>
__device__ __forceinline__ void compute_dS(Mainloop<Shared, T, d_head, Br> &mainloop, Scores<Br> &tile,
                                           float (&dV)[d_head / 2], const FlashBackwardParams &params,
                                           const KeyTile<Br, Bc> &keys, int first_query) {
    derive_dS(mainloop, tile, dV, params, keys, first_query);
    mainloop.store_dS(tile.dS);
}
