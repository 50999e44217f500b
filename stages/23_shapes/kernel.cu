// The shape chooses. How many consumers a block has, whether P is whole or in parts, how long a turn lasts
// and where Q lies: a configuration of the kernel. d_head, mask and length say which one runs.
//
// A query tile is Br rows of Q: 64 for each consumer warpgroup, 16 for each warp. For one query tile the block walks
// over K and V in tiles of Bc = 128 rows, the last tile first. The producer is ahead of the consumers by as many tiles
// as there are buffers. All tiles of a block form one stream.

#include "accumulator.cuh"
#include "configured.h"
#include "epilogue.cuh"
#include "launch.h"
#include "numbers.cuh"
#include "optimistic_softmax.cuh"
#include "ping_pong.cuh"
#include "pipeline.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
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

// ---- load ----

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

// The producer's thread. For each query tile that the scheduler gives this block, it writes down which one it is, for
// the consumers, and loads its Q and all tiles of K and V that it needs. The consumers need the next tile of K before
// this tile of V, so the loads of V lag one tile behind those of K.
template <typename T, int d_head, Configuration config>
__device__ void produce(SharedStorage<T, d_head, config> &shared, const FlashParams &params, const TensorMaps &maps) {
    constexpr int Bc = config.Bc;
    const TileScheduler<config.Br, Bc> scheduler{params};
    PipelineState<q_stages> Q_write;
    PipelineState<config.kv_stages> K_write, V_write;
    QueryTile V_query_tile;  // the query tile that the next tile of V belongs to
    int V_tile = -1;         // the next tile of V; there is none before the first tile of K
    for (uint32_t done = 0;; ++done) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const QueryTile query_tile = scheduler.tile(done);
        shared.query_tiles[Q_write.stage] = query_tile;
        uint64_t *const Q_full = &shared.Q_pipeline.full[Q_write.stage];
        if (!query_tile.valid()) {
            ptx::mbarrier_arrive(Q_full);  // no Q follows, but the consumers must see that there is no more work
            break;
        }
        load_tile(shared.Q[Q_write.stage], sizeof(shared.Q[0]), maps.Q, Q_full, query_tile.first_row, query_tile.head,
                  query_tile.batch);
        Q_write.advance();
        for (int kv_tile = query_tile.kv_tiles - 1; kv_tile >= 0; --kv_tile) {
            load_kv_tile<Bc>(shared.K, shared.K_pipeline, K_write, maps.K, query_tile, kv_tile);
            if (V_tile >= 0) load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, maps.V, V_query_tile, V_tile);
            V_query_tile = query_tile;
            V_tile = kv_tile;
        }
    }
    // No tile of K follows the last one, so its tile of V is loaded here.
    load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, maps.V, V_query_tile, V_tile);
}

// ---- S = QKᵀ and O += PV ----

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

    // If P is in parts: issues PV of the first part, computes the second part meanwhile, and issues its PV. Where no
    // row of the warpgroup sees a key of the second part, that is zero and left out.
    template <int steps, int elements>
    __device__ __forceinline__ void issue_PV_in_parts(OptimisticSoftmax<T> &softmax, uint32_t (&first_P)[steps][4],
                                                      const float (&second_S)[elements], uint32_t (&second_P)[steps][4],
                                                      float (&O)[d_head / 2], int tiles_done, bool second_seen = true) {
        if constexpr (config.P_parts == 2) {
            issue_PV(O, first_P);
            if (!second_seen) return;
            softmax.advance(second_S, second_P, O, tiles_done);
            issue_PV(O, second_P, Bc / 2);
        }
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

// ---- mask ----

// Sets S to -infinity where a row must not see a key: right of the diagonal, and past the end of K. warp_row is the
// warp's first row of Q, which sees the fewest keys. If it sees a part of the tile to its end, every row does, and
// neither this part nor one before it needs the mask. The last part comes first.
template <int Bc, int parts, int part = parts - 1>
__device__ __forceinline__ void mask(float (&S)[Bc / 2], const QueryTile &query_tile, int warp_row, int kv_tile,
                                     int Nkv, int lane) {
    constexpr int registers = Bc / 2 / parts;
    const int first_column = kv_tile * Bc;
    const int end_column = first_column + (part + 1) * Bc / parts;
    if (end_column <= min(Nkv, warp_row + 1 + query_tile.causal_offset)) return;
#pragma unroll
    for (int x = part * registers; x < (part + 1) * registers; ++x) {
        const int row = warp_row + accumulator_row(x, lane);
        const int column = first_column + accumulator_column(x, lane);
        if (column >= min(Nkv, row + 1 + query_tile.causal_offset)) S[x] = -INFINITY;
    }
    if constexpr (part > 0) mask<Bc, parts, part - 1>(S, query_tile, warp_row, kv_tile, Nkv, lane);
}

// ---- kernel ----

// grid: as many blocks as the multiprocessors hold, or as query tiles if they are fewer
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(config.threads(), config.blocks)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    constexpr int Bc = config.Bc, P_parts = config.P_parts, consumers = config.Br / 64;
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, config> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.Q_pipeline.init(4 * consumers);
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One of its threads does all the work.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<config.producer_registers>();
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<config.consumer_registers>();
    using Loop = Mainloop<T, d_head, config>;
    Loop mainloop(shared, warp, lane);
    OptimisticSoftmax<T> softmax{params.scale * 1.44269504f, lane};
    uint32_t Q[Loop::Q_registers][4];  // [64, d_head] per warpgroup; unused if Q stays in shared memory
    float S[Bc / 2];                   // [64, Bc] per warpgroup
    uint32_t P[Bc / 16][4];            // [64, Bc] per warpgroup
    float O[d_head / 2];               // [64, d_head] per warpgroup
    auto &first_S = part_of<P_parts, 0>(S), &second_S = part_of<P_parts, P_parts - 1>(S);
    auto &first_P = part_of<P_parts, 0>(P), &second_P = part_of<P_parts, P_parts - 1>(P);

    // The block's first S has no PV to run together with. Every block has at least one query tile.
    if constexpr (config.ping_pong) mainloop.ping_pong.begin();
    QueryTile query_tile = mainloop.wait_query_tile(Q);
    int warp_row = query_tile.first_row + warp * 16;  // in a register, because the mask needs it right after S
    int kv_tile = query_tile.kv_tiles - 1;
    mainloop.take_turn();
    mainloop.issue_QK(S, Q);
    ptx::wgmma_wait<0>(S);
    mainloop.release_K();
    mask<Bc, P_parts>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
    mainloop.pass_turn();
    softmax.begin(first_S, first_P);

    while (query_tile.valid()) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;

        // P, or its first part, is ready here and at the end of each iteration. If P is whole, the next tile's S is
        // issued before its PV. Of the tile at the diagonal, the upper warpgroup's rows see only the first part.
        const int columns_seen = query_tile.first_row + 64 * warpgroup + 64 + query_tile.causal_offset;
        const bool second_seen = kv_tile * Bc + Bc / 2 < min(params.Nkv, columns_seen);
        mainloop.issue_PV_in_parts(softmax, first_P, second_S, second_P, O, query_tile.kv_tiles - kv_tile, second_seen);
        while (kv_tile != 0) {
            --kv_tile;

            mainloop.issue_next_S(S, Q, O, P);
            mainloop.wait_S(S, O, P);
            mask<Bc, P_parts>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            const bool looks_first = softmax.maximum_first;
            if (looks_first) {
                mainloop.pass_turn();  // the next warpgroup need not wait while this one looks for a maximum
                softmax.look_first(S, P, O);
            }
            mainloop.wait_PV(O, P, !looks_first);
            softmax.advance(first_S, first_P, O, query_tile.kv_tiles - kv_tile);
            mainloop.issue_PV_in_parts(softmax, first_P, second_S, second_P, O, query_tile.kv_tiles - kv_tile);
        }
        if (!config.Q_in_registers) mainloop.release_Q();

        // The next query tile begins before this one is stored: its first S overlaps with this one's last PV, and the
        // sums that divide O are reduced while both products run. If P is whole, O is stored once the next P is ready.
        // If P is in parts, PV is complete first, and O is stored while S runs.
        const QueryTile finished = query_tile;
        RowStatistics rows;
        query_tile = mainloop.wait_query_tile(Q);
        warp_row = query_tile.first_row + warp * 16;
        kv_tile = query_tile.kv_tiles - 1;
        if (query_tile.valid()) {
            mainloop.issue_next_S(S, Q, O, P);
            rows = softmax.finalize();
            if constexpr (P_parts == 2) {
                ptx::wgmma_wait<1>(O, P);
                mainloop.release_V();
                store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
            }
            mainloop.wait_S(S, O, P);
            mask<Bc, P_parts>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            if constexpr (P_parts == 1) mainloop.wait_PV(O, P);
            softmax.begin(first_S, first_P);
        } else {
            if constexpr (P_parts == 1) {
                mainloop.take_turn();
                mainloop.issue_PV(O, P);
                mainloop.wait_PV(O, P);
            }
            ptx::wgmma_wait<0>(O);
            rows = softmax.finalize();
            if constexpr (P_parts == 2) store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
        }
        if constexpr (P_parts == 1) store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
        store_log_sum_exp(params, rows, finished, warp, lane);
    }
    if constexpr (config.ping_pong) mainloop.ping_pong.end();
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the block must not end before TMA has read its shared memory
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Shapes",
                                  .min_compute = 90,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

template <typename T, int d_head, Configuration config>
static flash::Instance instance(const char *short_form) {
    flash::Kernel kernel = nullptr;
    if constexpr (flash::built<T, d_head>) kernel = flash_kernel<T, d_head, config>;
    return flash::instance<T>(short_form, d_head, kernel, config.Br, config.Bc, config.threads(), config.blocks,
                              sizeof(SharedStorage<T, d_head, config>));
}

#include "instances.h"  // `table`: the instances that are built, and which of them runs what
extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    return flash::forward(params, table, limits, stream);
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    return flash::describe(params, table, limits, description);
}
