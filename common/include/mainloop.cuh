// Stage shapes teaches this mainloop: a consumer warpgroup's products, for any configuration of the kernel.
#pragma once

#include "ping_pong.cuh"
#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tile_scheduler.cuh"
#include "wgmma.cuh"

// One shape of the kernel. instances.h lists the shapes that are built, and which of them runs which problem.
struct Configuration {
    int Br, Bc;           // rows of Q (and of S, P, O) in a query tile; rows in a tile of K and of V
    int kv_stages;        // buffers for tiles of K, and as many for tiles of V
    int P_parts;          // 1: P is whole, and PV runs while the next tile is masked
                          // 2: PV of one part of P runs during the softmax of the other
    bool ping_pong;       // the consumer warpgroups take turns at the tensor cores
    bool Q_in_registers;  // wgmma takes Q from registers, not from shared memory
    int producer_registers, consumer_registers;  // of a thread
    int blocks;                                  // that a multiprocessor holds at a time

    constexpr int threads() const { return 128 * (Br / 64 + 1); }  // a consumer for each 64 rows, and the producer
};
constexpr int q_stages = 2;  // buffers for tiles of Q
constexpr int panel = 64;    // columns that TMA swizzles as one unit: 128 bytes of a row

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, Configuration config>
struct SharedStorage {
    T Q[q_stages][config.Br * d_head];               // each [d_head / panel][Br][panel]
    T K[config.kv_stages][config.Bc * d_head];       // each [d_head / panel][Bc][panel]
    T V[config.kv_stages][config.Bc * d_head];       // the same
    T O[config.Br / 16][d_head / panel][16][panel];  // for each warp, read by the TMA store
    Pipeline<q_stages> Q_pipeline;
    Pipeline<config.kv_stages> K_pipeline, V_pipeline;
    QueryTile query_tiles[q_stages];  // the query tile that each buffer of Q belongs to
};

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One consumer warpgroup's matrix products. It knows the position in the queues of Q, K and V, how wgmma finds the
// tiles, and whose turn it is at the tensor cores. The register arrays S, P, O and Q belong to the kernel function and
// are passed in. Between the issue of a product and the wait for it, the code must not touch the product's registers.
template <typename T, int d_head, Configuration config>
struct Mainloop {
    static constexpr int Br = config.Br, Bc = config.Bc;
    static constexpr int row_bytes = panel * sizeof(T);
    static constexpr int Q_bytes = Br * d_head * sizeof(T), KV_bytes = Bc * d_head * sizeof(T);
    static constexpr int Q_registers = config.Q_in_registers ? d_head / 16 : 1;

    SharedStorage<T, d_head, config> &shared;
    const int warp, lane;
    const PingPong<Br / 64> ping_pong;
    const uint64_t Q_descriptor, K_descriptor, V_descriptor;
    PipelineState<q_stages> Q_read;
    PipelineState<config.kv_stages> K_read, V_read;
    uint64_t Q_tile;  // the descriptor of the current query tile

    // wgmma reads the warpgroup's 64 rows of Q and the rows of K along d_head. It reads V across the panels, so V's
    // descriptor also holds the distance from one panel to the next. 8 rows of a panel are 1,024 bytes.
    __device__ Mainloop(SharedStorage<T, d_head, config> &shared, int warp, int lane)
        : shared(shared),
          warp(warp),
          lane(lane),
          ping_pong{warp / 4},
          Q_descriptor(ptx::matrix_descriptor(shared.Q[0] + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          K_descriptor(ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes)),
          V_descriptor(ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes)) {}

    __device__ void take_turn() {
        if constexpr (config.ping_pong) ping_pong.take_turn();
    }

    // Passes the turn on, unless the warpgroup has passed it on before. The instruction has a predicate, because the
    // compiler would move no other instruction past a branch.
    __device__ void pass_turn(bool has_turn = true) {
        if constexpr (config.ping_pong) ptx::barrier_arrive_if(has_turn, ping_pong.next_barrier(), 256);
    }

    // Waits for the block's next query tile and its Q, and reads the warp's rows of Q if they are to be in registers.
    __device__ __forceinline__ QueryTile wait_query_tile(uint32_t (&Q)[Q_registers][4]) {
        shared.Q_pipeline.consumer_wait(Q_read);
        Q_tile = Q_descriptor + descriptor_offset(Q_read.stage * Q_bytes);
        QueryTile query_tile = shared.query_tiles[Q_read.stage];
        // All lanes read the same values. The shuffles tell the compiler so: branches on them then do not diverge.
        query_tile.first_row = __shfl_sync(0xffffffff, query_tile.first_row, 0);
        query_tile.causal_offset = __shfl_sync(0xffffffff, query_tile.causal_offset, 0);
        query_tile.kv_tiles = __shfl_sync(0xffffffff, query_tile.kv_tiles, 0);
        __syncwarp();  // every lane has read it before lane 0 releases the buffer
        if constexpr (config.Q_in_registers) {
            if (query_tile.valid()) {
                load_Q_fragments(Q);
                release_Q();
            }
        }
        return query_tile;
    }

    // Reads the warp's 16 rows of Q as operand A. TMA has stored the 16-byte chunk c of row r at position c ^ (r % 8).
    __device__ __forceinline__ void load_Q_fragments(uint32_t (&Q)[Q_registers][4]) {
        const int row = warp * 16 + lane % 16;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const int chunk = (k % 4 * 2 + lane / 16) ^ row % 8;
            const T *address = shared.Q[Q_read.stage] + (k / 4 * Br + row) * panel + chunk * 8;
            ptx::ldmatrix_x4(Q[k], ptx::shared_address(address));
        }
        __syncwarp();  // every lane has read its rows before lane 0 releases the buffer
    }

    __device__ void release_Q() { shared.Q_pipeline.consumer_release(Q_read, lane); }
    __device__ void release_K() { shared.K_pipeline.consumer_release(K_read, lane); }
    __device__ void release_V() { shared.V_pipeline.consumer_release(V_read, lane); }

    // Issues S = QKᵀ for the next tile of K. One step is 16 columns: 32 bytes of a row, a quarter of a panel.
    __device__ __forceinline__ void issue_QK(float (&S)[Bc / 2], const uint32_t (&Q)[Q_registers][4]) {
        shared.K_pipeline.consumer_wait(K_read);
        const uint64_t K_tile = K_descriptor + descriptor_offset(K_read.stage * KV_bytes);
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t K_step = K_tile + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t Q_step = Q_tile + descriptor_offset(k / 4 * Br * row_bytes) + step;
            if constexpr (config.Q_in_registers)
                ptx::wgmma_rs_k_major<T, Bc>(S, Q[k], K_step, k > 0);
            else
                ptx::wgmma_ss<T, Bc>(S, Q_step, K_step, k > 0);
        }
        ptx::wgmma_commit();
    }

    // Issues O += PV for some columns of P and as many rows of V. One step is 16 columns of P and 16 rows of V.
    template <int steps>
    __device__ __forceinline__ void issue_PV(float (&O)[d_head / 2], uint32_t (&P)[steps][4], int first_row = 0) {
        if (first_row == 0) shared.V_pipeline.consumer_wait(V_read);
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            const uint64_t V_rows =
                descriptor_offset(V_read.stage * KV_bytes) + descriptor_offset((first_row + k * 16) * row_bytes);
            ptx::wgmma_rs<T, d_head>(O, P[k], V_descriptor + V_rows, true);
        }
        ptx::wgmma_commit();
    }

    // Issues the next S, which belongs to this query tile or to the next one. If P is whole, this tile's PV follows in
    // the same turn.
    __device__ __forceinline__ void issue_next_S(float (&S)[Bc / 2], const uint32_t (&Q)[Q_registers][4],
                                                 float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        take_turn();
        issue_QK(S, Q);
        if constexpr (config.P_parts == 1) issue_PV(O, P);
    }

    // Waits for S. If P is whole, PV was issued after S and continues while S is masked. If P is in parts, PV was
    // issued before S, so it is complete as well.
    __device__ __forceinline__ void wait_S(float (&S)[Bc / 2], float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        if constexpr (config.P_parts == 1)
            ptx::wgmma_wait<1>(S);
        else
            ptx::wgmma_wait<0>(S, O, P);
        release_K();
    }

    // Waits for PV and passes the turn on. The turn is passed only now, when S is complete, because the next
    // warpgroup's products would have delayed it. At d_head 64 two consumers spend more time in the softmax than in
    // products; there a turn lasts until PV is complete.
    __device__ __forceinline__ void wait_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4], bool has_turn = true) {
        constexpr bool turn_includes_PV = Br == 128 && d_head == 64;
        if (!turn_includes_PV) pass_turn(has_turn);
        ptx::wgmma_wait<0>(O, P);
        if (turn_includes_PV) pass_turn(has_turn);
        release_V();
    }
};

// Part number `part` of the tile's columns, of `parts`: some registers of S or of P, as an array of their own.
template <int parts, int part, typename Register, int registers>
__device__ __forceinline__ auto &part_of(Register (&tile)[registers]) {
    return reinterpret_cast<Register(&)[registers / parts]>(tile[registers / parts * part]);
}
