// Multicast. Two blocks form a cluster and work on neighbouring query tiles of one head, so they need the same tiles of
// K and V. One load brings a tile to both. A buffer is free again when the consumers of both blocks have read it.
//
// A query tile is Br rows of Q: 64 for each consumer warpgroup, 16 for each warp. For one query tile the block walks
// over K and V in tiles of Bc = 128 rows, the last tile first. The producer is ahead of the consumers by as many tiles
// as there are buffers. All tiles of a block form one stream, as in stage no_gap.

#include "accumulator.cuh"
#include "epilogue.cuh"
#include "launch.h"
#include "load.cuh"
#include "mask.cuh"
#include "numbers.cuh"
#include "optimistic_softmax.cuh"
#include "ping_pong.cuh"
#include "pipeline.cuh"
#include "ptx_cluster.cuh"
#include "ptx_hopper.cuh"
#include "tensor_maps.h"
#include "tile_scheduler.cuh"
#include "wgmma.cuh"

constexpr int Bc = 128;       // rows in a tile of K and of V
constexpr int q_stages = 2;   // buffers for tiles of Q
constexpr int kv_stages = 2;  // buffers for tiles of K, and as many for tiles of V
constexpr int panel = 64;     // columns that TMA swizzles as one unit: 128 bytes of a row

constexpr uint32_t cluster_size = 2;                      // blocks
constexpr uint16_t all_blocks = (1 << cluster_size) - 1;  // of a cluster: a bit for each

// The block has a consumer warpgroup for each 64 rows of its query tile, and the producer. Br is 128, or 192 where the
// accumulators are small: at d_head 64.
template <int Br>
constexpr int threads = 128 * (Br / 64 + 1);

// Registers of a thread. A multiprocessor has 65,536: the block starts with 168 for each of 384 threads, or with 128
// for each of 512, and shares them out anew.
// 3 x 168 = 24 + 2 x 240, and 4 x 128 = 32 + 3 x 160.
template <int Br>
constexpr int producer_registers = Br == 192 ? 32 : 24;
template <int Br>
constexpr int consumer_registers = Br == 192 ? 160 : 240;

// A queue of tiles that arrive in both blocks of the cluster. Each block has its barriers, at the same place.
template <int stages>
struct ClusterPipeline : Pipeline<stages> {
    __device__ void init(int consumer_warps) { Pipeline<stages>::init(cluster_size * consumer_warps); }

    // A consumer warp tells the producers of both blocks that it has read the tile: a copy that either of them starts
    // writes to this block's buffer. Lane r arrives at the barrier of block r.
    __device__ void consumer_release(PipelineState<stages> &state, int lane) {
        if (lane < cluster_size) ptx::mbarrier_arrive_in(&this->empty[state.stage], lane);
        state.advance();
    }
};

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T Q[q_stages][Br * d_head];               // each [d_head / panel][Br][panel]
    T K[kv_stages][Bc * d_head];              // each [d_head / panel][Bc][panel]
    T V[kv_stages][Bc * d_head];              // the same
    T O[Br / 16][d_head / panel][16][panel];  // for each warp, read by the TMA store
    Pipeline<q_stages> Q_pipeline;
    ClusterPipeline<kv_stages> K_pipeline, V_pipeline;
    QueryTile query_tiles[q_stages];  // the query tile that each buffer of Q belongs to
};

// ---- load ----

// Fills the next buffer of K, or of V, in both blocks, once the consumers of both have read the tile that it holds. The
// producers of both blocks come here for each tile. Both announce its bytes, each at its own barrier, and one of them
// starts the copy: the first block for the first buffer, the second block for the second.
template <typename T, int elements>
__device__ void load_kv_tile(T (&buffers)[kv_stages][elements], Pipeline<kv_stages> &pipeline,
                             PipelineState<kv_stages> &state, const CUtensorMap &map, const QueryTile &query_tile,
                             int kv_tile) {
    pipeline.producer_acquire(state);
    uint64_t *const full = &pipeline.full[state.stage];
    ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
    if (state.stage % cluster_size == ptx::cluster_rank()) {
        ptx::tma_load_multicast(buffers[state.stage], &map, full, all_blocks, 0, kv_tile * Bc, 0, query_tile.kv_head,
                                query_tile.batch);
    }
    state.advance();
}

// The producer's thread. The scheduler gives the cluster query tiles of 2 Br rows: Br for each block, with the tiles of
// K and V that the last of all these rows sees. The thread writes down which rows are the block's, for the consumers,
// and loads their Q and these tiles. The consumers need the next tile of K before this tile of V, so the loads of V lag
// one tile behind those of K.
template <typename T, int d_head, int Br>
__device__ void produce(SharedStorage<T, d_head, Br> &shared, const FlashParams &params, const TensorMaps &maps) {
    const TileScheduler<cluster_size * Br, Bc> scheduler{params};
    PipelineState<q_stages> Q_write;
    PipelineState<kv_stages> K_write, V_write;
    QueryTile V_query_tile;  // the query tile that the next tile of V belongs to
    int V_tile = -1;         // the next tile of V; there is none before the first tile of K
    for (uint32_t done = 0;; ++done) {
        shared.Q_pipeline.producer_acquire(Q_write);
        QueryTile query_tile = scheduler.tile(done);
        query_tile.first_row += ptx::cluster_rank() * Br;
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
            load_kv_tile(shared.K, shared.K_pipeline, K_write, maps.K, query_tile, kv_tile);
            if (V_tile >= 0) load_kv_tile(shared.V, shared.V_pipeline, V_write, maps.V, V_query_tile, V_tile);
            V_query_tile = query_tile;
            V_tile = kv_tile;
        }
    }
    // No tile of K follows the last one, so its tile of V is loaded here.
    load_kv_tile(shared.V, shared.V_pipeline, V_write, maps.V, V_query_tile, V_tile);
}

// ---- S = QKᵀ and O += PV ----

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One consumer warpgroup's matrix products. It knows the position in the queues of Q, K and V and how wgmma finds the
// tiles. The register arrays S, P and O belong to the kernel function and are passed in. Between the issue of a product
// and the wait for it, the code must not touch the product's registers.
template <typename T, int d_head, int Br>
struct Mainloop {
    static constexpr int row_bytes = panel * sizeof(T);
    static constexpr int Q_bytes = Br * d_head * sizeof(T), KV_bytes = Bc * d_head * sizeof(T);

    SharedStorage<T, d_head, Br> &shared;
    const int lane;
    const uint64_t Q_descriptor, K_descriptor, V_descriptor;
    PipelineState<q_stages> Q_read;
    PipelineState<kv_stages> K_read, V_read;
    uint64_t Q_tile;  // the descriptor of the current query tile

    // wgmma reads the warpgroup's 64 rows of Q and the rows of K along d_head. It reads V across the panels, so V's
    // descriptor also holds the distance from one panel to the next. 8 rows of a panel are 1,024 bytes.
    __device__ Mainloop(SharedStorage<T, d_head, Br> &shared, int warp, int lane)
        : shared(shared),
          lane(lane),
          Q_descriptor(ptx::matrix_descriptor(shared.Q[0] + warp / 4 * 64 * panel, 0, 8 * row_bytes)),
          K_descriptor(ptx::matrix_descriptor(shared.K, 0, 8 * row_bytes)),
          V_descriptor(ptx::matrix_descriptor(shared.V, Bc * row_bytes, 8 * row_bytes)) {}

    // Waits for the block's next query tile and its Q.
    __device__ __forceinline__ QueryTile wait_query_tile() {
        shared.Q_pipeline.consumer_wait(Q_read);
        Q_tile = Q_descriptor + descriptor_offset(Q_read.stage * Q_bytes);
        QueryTile query_tile = shared.query_tiles[Q_read.stage];
        // All lanes read the same values. The shuffles tell the compiler so: branches on them then do not diverge.
        query_tile.first_row = __shfl_sync(0xffffffff, query_tile.first_row, 0);
        query_tile.causal_offset = __shfl_sync(0xffffffff, query_tile.causal_offset, 0);
        query_tile.kv_tiles = __shfl_sync(0xffffffff, query_tile.kv_tiles, 0);
        __syncwarp();  // every lane has read it before lane 0 releases the buffer
        return query_tile;
    }

    __device__ void release_Q() { shared.Q_pipeline.consumer_release(Q_read, lane); }
    __device__ void release_K() { shared.K_pipeline.consumer_release(K_read, lane); }
    __device__ void release_V() { shared.V_pipeline.consumer_release(V_read, lane); }

    // Issues S = QKᵀ for the next tile of K. One step is 16 columns: 32 bytes of a row, a quarter of a panel.
    __device__ __forceinline__ void issue_QK(float (&S)[Bc / 2]) {
        shared.K_pipeline.consumer_wait(K_read);
        const uint64_t K_tile = K_descriptor + descriptor_offset(K_read.stage * KV_bytes);
        ptx::wgmma_fence(S);
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t K_step = K_tile + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t Q_step = Q_tile + descriptor_offset(k / 4 * Br * row_bytes) + step;
            ptx::wgmma_ss<T, Bc>(S, Q_step, K_step, k > 0);
        }
        ptx::wgmma_commit();
    }

    // Issues O += PV for the next tile of V. One step is 16 columns of P and 16 rows of V.
    __device__ __forceinline__ void issue_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        shared.V_pipeline.consumer_wait(V_read);
        ptx::wgmma_fence(O, P);
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            const uint64_t V_rows = descriptor_offset(V_read.stage * KV_bytes) + descriptor_offset(k * 16 * row_bytes);
            ptx::wgmma_rs<T, d_head>(O, P[k], V_descriptor + V_rows, true);
        }
        ptx::wgmma_commit();
    }

    // Waits for S, the older one of two products. PV, which was issued after it, continues.
    __device__ __forceinline__ void wait_S(float (&S)[Bc / 2]) {
        ptx::wgmma_wait<1>(S);
        release_K();
    }

    // Waits for PV. The code may change O and P only now.
    __device__ __forceinline__ void wait_PV(float (&O)[d_head / 2], uint32_t (&P)[Bc / 16][4]) {
        ptx::wgmma_wait<0>(O, P);
        release_V();
    }
};

// ---- kernel ----

// grid: (clusters, cluster_size): a cluster for every two multiprocessors, or for each 2 Br rows if they are fewer. So
// blockIdx.x is the cluster's number, and the scheduler deals to clusters what it dealt to blocks.
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads<Br>, 1) __cluster_dims__(1, 2, 1)
    flash_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps) {
    constexpr int consumers = Br / 64;
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, Br> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.Q_pipeline.init(4 * consumers);
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();  // no thread of either block may use a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One of its threads does all the work.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers<Br>>();
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers<Br>>();
    Mainloop<T, d_head, Br> mainloop(shared, warp, lane);
    const PingPong<consumers> ping_pong{warpgroup};
    OptimisticSoftmax<T> softmax{params.scale * 1.44269504f, lane};
    float S[Bc / 2];         // [64, Bc] per warpgroup
    uint32_t P[Bc / 16][4];  // [64, Bc] per warpgroup
    float O[d_head / 2];     // [64, d_head] per warpgroup

    // The block's first S has no PV to run together with. Every block has at least one query tile.
    ping_pong.begin();
    QueryTile query_tile = mainloop.wait_query_tile();
    int warp_row = query_tile.first_row + warp * 16;  // in a register, because the mask needs it right after S
    int kv_tile = query_tile.kv_tiles - 1;
    ping_pong.take_turn();
    mainloop.issue_QK(S);
    ping_pong.pass_turn();
    ptx::wgmma_wait<0>(S);
    mainloop.release_K();
    mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
    softmax.begin(S, P);

    while (query_tile.valid()) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;

        // When an iteration begins, this tile's P is ready. It issues this tile's PV and computes the next tile's P.
        while (kv_tile > 0) {
            --kv_tile;
            ping_pong.take_turn();
            mainloop.issue_QK(S);
            mainloop.issue_PV(O, P);
            ping_pong.pass_turn();
            mainloop.wait_S(S);
            mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            if (softmax.maximum_first) softmax.look_first(S, P, O);
            mainloop.wait_PV(O, P);
            softmax.advance(S, P, O, query_tile.kv_tiles - kv_tile);
        }
        mainloop.release_Q();

        // The next query tile begins before this one is stored: its first S overlaps with this one's last PV. The sums
        // that divide O are reduced while both products run, and O is stored once the next P is ready.
        const QueryTile finished = query_tile;
        RowStatistics rows;
        query_tile = mainloop.wait_query_tile();
        warp_row = query_tile.first_row + warp * 16;
        kv_tile = query_tile.kv_tiles - 1;
        ping_pong.take_turn();
        if (query_tile.valid()) {
            mainloop.issue_QK(S);
            mainloop.issue_PV(O, P);
            ping_pong.pass_turn();
            rows = softmax.finalize();
            mainloop.wait_S(S);
            mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            mainloop.wait_PV(O, P);
            softmax.begin(S, P);
        } else {
            mainloop.issue_PV(O, P);
            ping_pong.pass_turn();
            rows = softmax.finalize();
            mainloop.wait_PV(O, P);
        }
        store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
        store_log_sum_exp(params, rows, finished, warp, lane);
    }
    ping_pong.end();
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the block must not end before TMA has read its shared memory,
    ptx::cluster_sync();                           // nor before the other block's last arrivals here
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Multicast",
                                  .min_compute = 90,
                                  .Br = 128,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

template <typename T, int d_head, int Br>
static flash::Launch plan_for(const FlashParams &params) {
    const int rows = cluster_size * Br;
    const int pairs = params.Hq * params.B * ((params.Nq + rows - 1) / rows);
    const int clusters = flash::persistent(1 << 30).x / cluster_size;  // that the multiprocessors hold
    return {.kernel = flash_kernel<T, d_head, Br>,
            .grid = dim3(pairs < clusters ? pairs : clusters, cluster_size),
            .threads = threads<Br>,
            .shared_bytes = sizeof(SharedStorage<T, d_head, Br>),
            .Q_box_rows = Br,
            .KV_box_rows = Bc};
}

// At d_head 64 a third consumer pays where no query tile is cut short by a mask. At d_head 128 it has no registers.
static flash::Launch plan(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        if constexpr (d_head == 64) {
            if (!params.causal) return plan_for<T, 64, 192>(params);
        }
        return plan_for<T, d_head, 128>(params);
    });
}

extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    const FlashStatus status = flash::check(params, limits);
    return status == FLASH_OK ? flash::launch(plan(*params), *params, stream) : status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    return status == FLASH_OK ? flash::describe(limits, plan(*params), 0, description) : status;
}
