// One launch on each GPU. Its kernel begins with the rank's own K and V while the copy engine brings those of
// the other ranks, and waits for a flag before it reads them. So nothing is merged, and no multiprocessor copies.
//
// The kernel is an earlier form of stage shapes'. What changes is the producer's way over the tiles of K and V: the
// rank's own ones first, then those of each other rank, in the order of the copies. Consumers count tiles and know of
// no ranks. The sequence is divided as in stage zigzag: rank r has piece r and piece 2P-1-r of 2P.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "epilogue.cuh"
#include "launch_ring.h"
#include "load.cuh"
#include "mainloop.cuh"
#include "mask.cuh"
#include "optimistic_softmax.cuh"
#include "ptx_ring.cuh"
#include "tensor_maps.h"

constexpr int most_groups = 4;  // groups of heads that the copies of one rank's K and V are divided into

// What a rank's kernel knows of the others.
struct RankView {
    int rank, ranks, rows;  // rows: of each rank, half of them in its early piece and half in its late one
    int group_heads;        // heads of K and V, of all batches, that come in one group
    const uint32_t *flags;  // [ranks][most_groups]: the latest call for which a rank's K and V of a group are there
    uint32_t call;          // this one's number
};

// ---- who sees what ----

// How many tiles of a rank's K and V the query tile sees that begins at first_row. With a mask, a lower rank's late
// piece lies past all rows; a higher rank's pieces lie between the own two.
template <int Br, int Bc>
__device__ int tiles_of(const RankView &view, bool causal, int rank, int first_row) {
    if (!causal) return view.rows / Bc;
    if (rank == view.rank) return (first_row + Br) / Bc;
    if (rank < view.rank) return view.rows / 2 / Bc;
    return first_row < view.rows / 2 ? 0 : view.rows / Bc;
}

// The query tile as the scheduler deals it, which knows of one rank only, with the tiles of all ranks. Tiles are
// counted down and the own ones come first, so these have the highest numbers, and the diagonal lies as many columns
// to the right as the other ranks' tiles have.
template <int Br, int Bc>
__device__ QueryTile among_all_ranks(QueryTile query_tile, const RankView &view, const FlashParams &params) {
    if (!query_tile.valid()) return query_tile;
    int others = 0;
    for (int rank = 0; rank < view.ranks; ++rank) {
        if (rank != view.rank) others += tiles_of<Br, Bc>(view, params.causal, rank, query_tile.first_row);
    }
    query_tile.kv_tiles = others + tiles_of<Br, Bc>(view, params.causal, view.rank, query_tile.first_row);
    query_tile.causal_offset = params.causal ? others * Bc : params.Nkv;
    return query_tile;
}

// ---- load ----

// Waits until the copy engine has brought a rank's K and V of the head.
__device__ void wait_for_copy(const RankView &view, int rank, int head) {
    const uint32_t *flag = view.flags + rank * most_groups + head / view.group_heads;
    // The numbers of calls wrap around: their difference says which is later, within 2^31 calls.
    while (static_cast<int32_t>(ptx::load_acquire_system(flag) - view.call) < 0) __nanosleep(100);
    ptx::fence_proxy_async_global();
}

// A tile of K, and of V: whose it is, and where it lies there.
struct SourceTile {
    bool own;
    QueryTile source;  // the head, and the batch among those of the map
    int tile = -1;     // there is none
};

// The tiles that one query tile sees, in the order of the producer's visit.
template <int Br, int Bc>
struct SourceTiles {
    const RankView &view;
    const FlashParams &params;
    const QueryTile query_tile;
    int rank;  // whose tiles are visited
    int left;  // of these tiles

    __device__ SourceTiles(const RankView &view, const FlashParams &params, const QueryTile &query_tile)
        : view(view),
          params(params),
          query_tile(query_tile),
          rank(view.rank),
          left(tiles_of<Br, Bc>(view, params.causal, view.rank, query_tile.first_row)) {}

    // The next tile; there is one.
    __device__ SourceTile next() {
        while (left == 0) next_rank();
        SourceTile tile{rank == view.rank, query_tile, --left};
        if (!tile.own) tile.source.batch += rank * params.B;
        return tile;
    }

  private:
    // All ranks ask another one at a time: first the rank before this one, round the ring.
    __device__ void next_rank() {
        rank = rank == 0 ? view.ranks - 1 : rank - 1;
        left = tiles_of<Br, Bc>(view, params.causal, rank, query_tile.first_row);
        if (left > 0) wait_for_copy(view, rank, query_tile.batch * params.Hkv + query_tile.kv_head);
    }
};

// The producer's thread, as in stage shapes but for the order of the tiles of K and V.
template <typename T, int d_head, Configuration config>
__device__ void produce(SharedStorage<T, d_head, config> &shared, const FlashParams &params, const TensorMaps &own,
                        const TensorMaps &pulled, const RankView &view) {
    constexpr int Br = config.Br, Bc = config.Bc;
    const TileScheduler<Br, Bc> scheduler{params};
    PipelineState<q_stages> Q_write;
    PipelineState<config.kv_stages> K_write, V_write;
    const auto load_V = [&shared, &own, &pulled, &V_write](const SourceTile &tile) {
        load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, tile.own ? own.V : pulled.V, tile.source, tile.tile);
    };
    SourceTile V;  // the next tile of V; there is none before the first tile of K
    for (uint32_t done = 0;; ++done) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const QueryTile query_tile = among_all_ranks<Br, Bc>(scheduler.tile(done), view, params);
        shared.query_tiles[Q_write.stage] = query_tile;
        uint64_t *const Q_full = &shared.Q_pipeline.full[Q_write.stage];
        if (!query_tile.valid()) {
            ptx::mbarrier_arrive(Q_full);  // no Q follows, but the consumers must see that there is no more work
            break;
        }
        load_tile(shared.Q[Q_write.stage], sizeof(shared.Q[0]), own.Q, Q_full, query_tile.first_row, query_tile.head,
                  query_tile.batch);
        Q_write.advance();
        SourceTiles<Br, Bc> tiles(view, params, query_tile);
        for (int n = 0; n < query_tile.kv_tiles; ++n) {
            const SourceTile K = tiles.next();
            load_kv_tile<Bc>(shared.K, shared.K_pipeline, K_write, K.own ? own.K : pulled.K, K.source, K.tile);
            if (V.tile >= 0) load_V(V);
            V = K;
        }
    }
    load_V(V);  // no tile of K follows the last one, so its tile of V is loaded here
}

// ---- kernel ----

// pulled: K and V where those of all ranks are copied to, [ranks * B, Hkv, rows, d_head].
// grid: as many blocks as the multiprocessors hold, or as query tiles if they are fewer
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(config.threads(), config.blocks)
    ring_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps,
                const __grid_constant__ TensorMaps pulled, const RankView view) {
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
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps, pulled, view);
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
    mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
    mainloop.pass_turn();
    softmax.begin(first_S, first_P);

    while (query_tile.valid()) {
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) O[x] = 0.0f;

        // When an iteration begins, the first part of this tile's P is ready. It issues this tile's PV and computes the
        // first part of the next tile's P.
        while (true) {
            if constexpr (P_parts == 2) {
                mainloop.issue_PV(O, first_P);
                softmax.advance(second_S, second_P, O, query_tile.kv_tiles - kv_tile);
                mainloop.issue_PV(O, second_P, Bc / 2);
            }
            if (kv_tile == 0) break;
            --kv_tile;

            mainloop.issue_next_S(S, Q, O, P);
            mainloop.wait_S(S, O, P);
            mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            const bool looks_first = softmax.maximum_first;
            if (looks_first) {
                mainloop.pass_turn();  // the next warpgroup need not wait while this one looks for a maximum
                softmax.look_first(S, P, O);
            }
            mainloop.wait_PV(O, P, !looks_first);
            softmax.advance(first_S, first_P, O, query_tile.kv_tiles - kv_tile);
        }
        if (!config.Q_in_registers) mainloop.release_Q();

        // The next query tile begins before this one is stored: its first S overlaps with this one's last PV. The sums
        // that divide O are reduced while both products run, and O is stored once the next P is ready.
        const QueryTile finished = query_tile;
        RowStatistics rows;
        query_tile = mainloop.wait_query_tile(Q);
        warp_row = query_tile.first_row + warp * 16;
        kv_tile = query_tile.kv_tiles - 1;
        if (query_tile.valid()) {
            mainloop.issue_next_S(S, Q, O, P);
            rows = softmax.finalize();
            mainloop.wait_S(S, O, P);
            mask<Bc>(S, query_tile, warp_row, kv_tile, params.Nkv, lane);
            mainloop.wait_PV(O, P);
            softmax.begin(first_S, first_P);
        } else {
            if constexpr (P_parts == 1) {
                mainloop.take_turn();
                mainloop.issue_PV(O, P);
                mainloop.wait_PV(O, P);
            }
            ptx::wgmma_wait<0>(O);
            rows = softmax.finalize();
        }
        store_O(maps.O, shared.O[warp], O, rows, finished, warp, lane);
        store_log_sum_exp(params, rows, finished, warp, lane);
    }
    if constexpr (config.ping_pong) mainloop.ping_pong.end();
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the block must not end before TMA has read its shared memory
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "One launch",
                                  .min_compute = 90,
                                  .Br = 128,
                                  .Bc = 128,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

// Those of stage shapes that suit long sequences, with query tiles of 128 rows: pieces are multiples of that.
template <int d_head>
constexpr Configuration configuration = d_head == 128 ? Configuration{128, 128, 2, 2, false, true, 24, 240, 1}
                                                      : Configuration{128, 128, 4, 1, true, true, 24, 240, 1};

// Smaller copies do not use a link to the full: each takes some microseconds besides.
constexpr int64_t least_copy_bytes = 16 << 20;

static int rows_of(const FlashRingParams &params) {
    return params.N / params.ranks;
}

static int64_t bytes_of(const FlashRingParams &params) {
    return int64_t{2} * params.B * params.Hkv * rows_of(params) * params.d_head;
}

// Heads that are copied together: with more groups the first one is there sooner. configuration: "groups_2", or
// "groups_2+kept" where the workspace still has this K and V, so that nothing is copied.
static int group_heads(const FlashRingParams &params) {
    int groups = std::clamp<int64_t>(bytes_of(params) / least_copy_bytes, 1, most_groups);
    if (params.configuration &&
        (std::sscanf(params.configuration, "groups_%d", &groups) != 1 || groups < 1 || groups > most_groups)) {
        flash::must(flash::fail(FLASH_UNSUPPORTED,
                                "stage '%s' has configurations groups_1 to groups_%d; configuration is '%s'",
                                limits.title, most_groups, params.configuration));
    }
    return (params.B * params.Hkv + groups - 1) / groups;
}

// On each rank: flags at the same place for all problems, so that none finds another one's keys there as a flag.
struct Workspace {
    uint32_t *flags;  // [most_ranks][most_groups]
    void *K, *V;      // [ranks, B, Hkv, rows, d_head]; the rank's own ones stay empty
    size_t bytes;

    Workspace(const FlashRingParams &params, void *memory) {
        flash::WorkspaceLayout layout(memory);
        flags = static_cast<uint32_t *>(layout.take(sizeof(uint32_t) * flash::most_ranks * most_groups));
        K = layout.take(params.ranks * bytes_of(params));
        V = layout.take(params.ranks * bytes_of(params));
        bytes = layout.bytes();
    }
};

static void check_sizes(const FlashRingParams *params, int rank) {
    flash::check_ring_sizes(params, rank, limits, 2);
    if (params->N % (2 * params->ranks * limits.Br) != 0) {
        flash::must(
            flash::fail(FLASH_UNSUPPORTED,
                        "stage '%s' needs pieces of whole tiles: N must be a multiple of 2 * ranks * %d; it is %d",
                        limits.title, limits.Br, params->N));
    }
    group_heads(*params);
}

// The rows of each head of another rank's K and V that a rank needs.
static int rows_from(const FlashRingParams &params, int me, int source) {
    return params.causal && source < me ? rows_of(params) / 2 : rows_of(params);
}

using Kernel = flash::TypedKernel<const FlashParams, const TensorMaps, const TensorMaps, const RankView>;

static Kernel kernel_for(const FlashRingParams &params) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        constexpr Configuration config = configuration<d_head>;
        const dim3 grid = flash::persistent(params.Hq * params.B * (rows_of(params) / config.Br));
        return Kernel{ring_kernel<T, d_head, config>, grid, config.threads(), sizeof(SharedStorage<T, d_head, config>)};
    });
}

static void launch(const flash::RingQueue &ring, int me, uint32_t call) {
    const FlashRingParams &params = ring.params();
    const FlashRank &rank = ring[me];
    const Workspace workspace(params, rank.workspace);
    FlashParams local = flash::part_of(params);
    local.Q = rank.Q, local.K = rank.K, local.V = rank.V, local.O = rank.O;
    local.log_sum_exp = rank.log_sum_exp;
    local.Nq = local.Nkv = rows_of(params);
    local.causal = params.causal;

    FlashParams others = local;  // ranks as batches
    others.B *= params.ranks;
    others.K = flash::without_gaps(workspace.K, params.Hkv, rows_of(params), params.d_head);
    others.V = flash::without_gaps(workspace.V, params.Hkv, rows_of(params), params.d_head);
    TensorMaps maps, pulled;
    flash::must(flash::make_tensor_maps(local, limits.Br, limits.Bc, maps));
    flash::must(flash::make_tensor_maps(others, limits.Br, limits.Bc, pulled));

    local.Nkv = params.N;
    const RankView view{me, params.ranks, rows_of(params), group_heads(params), workspace.flags, call};
    const flash::RingMark mark(params, me, FLASH_RING_ATTENTION, -1, rank.stream);
    flash::must(flash::KernelQueue(rank.stream).add(kernel_for(params), local, maps, pulled, view).status());
}

// Copies a group of heads of another rank's K and V, and then sets its flag: the stream writes it after the copies.
static void pull(const flash::RingQueue &ring, int me, int source, int first_head, uint32_t call) {
    const FlashRingParams &params = ring.params();
    const FlashRank &rank = ring[me];
    const Workspace workspace(params, rank.workspace);
    const int group = group_heads(params), heads = std::min(group, params.B * params.Hkv - first_head);
    const size_t head_bytes = size_t{2} * rows_of(params) * params.d_head;
    const size_t wanted = size_t{2} * rows_from(params, me, source) * params.d_head;  // of a head
    const flash::RingMark mark(params, me, FLASH_RING_PULL, source, rank.copy_stream);
    const auto copy = [&](void *to, const void *from) {
        flash::must(cudaMemcpy2DAsync(static_cast<char *>(to) + source * bytes_of(params) + first_head * head_bytes,
                                      head_bytes, static_cast<const char *>(from) + first_head * head_bytes, head_bytes,
                                      wanted, heads, cudaMemcpyDefault, rank.copy_stream),
                    "copy of keys");
    };
    if (!params.configuration || !std::strstr(params.configuration, "+kept")) {
        copy(workspace.K, ring[source].K.data);
        copy(workspace.V, ring[source].V.data);
    }
    flash::write_value(rank.copy_stream, workspace.flags + source * most_groups + first_head / group, call);
}

// A kernel is loaded to a device when it is first used, which may wait for kernels that run. Those wait for copies.
static void load(const flash::RingQueue &ring, int me) {
    cudaFuncAttributes attributes;
    ring.use(me);
    flash::must(cudaFuncGetAttributes(&attributes, kernel_for(ring.params()).entry), "kernel");
}

static void queue(flash::RingQueue &ring) {
    static std::atomic<uint32_t> calls{0};  // no flag of an earlier call is right for this one, so none is cleared
    const uint32_t call = ++calls;
    const FlashRingParams &params = ring.params();
    const int P = params.ranks;
    std::vector<cudaEvent_t> pulled(P);
    for (int me = 0; me < P; ++me) load(ring, me);
    for (int me = 0; me < P; ++me) {  // the rank's inputs are there, and its workspace is free
        const cudaEvent_t ready = ring.record(me, ring[me].stream);
        for (int other = 0; other < P; ++other) ring.wait(other, ring[other].copy_stream, ready);
    }
    for (int me = 0; me < P; ++me) {
        ring.use(me);
        launch(ring, me, call);
    }
    for (int head = 0; head < params.B * params.Hkv; head += group_heads(params)) {
        for (int step = 1; step < P; ++step) {
            for (int me = 0; me < P; ++me) {
                ring.use(me);
                pull(ring, me, (me - step + P) % P, head, call);
            }
        }
    }
    // What a stream is given after this call may change its K and V: only when no other rank still copies from there.
    for (int me = 0; me < P; ++me) pulled[me] = ring.record(me, ring[me].copy_stream);
    for (int me = 0; me < P; ++me) {
        for (const cudaEvent_t event : pulled) ring.wait(me, ring[me].stream, event);
    }
}

static FlashRingDescription describe(const FlashRingParams &params, int rank) {
    int64_t C = rows_of(params) / 2, P = params.ranks, keys = 0;
    for (int source = 0; source < P; ++source) keys += source == rank ? 0 : rows_from(params, rank, source);
    return {.title = limits.title,
            .min_compute = limits.min_compute,
            .pieces = {flash::ring_piece(params.N, rank, 2 * P), flash::ring_piece(params.N, 2 * P - 1 - rank, 2 * P)},
            .workspace_bytes = Workspace(params, nullptr).bytes,
            .zeroed_workspace = 1,
            .pulled_bytes = int64_t{4} * params.B * params.Hkv * keys * params.d_head,
            .scores = C * (params.causal ? 2 * C * P + 1 : 2 * params.N)};
}

extern "C" FlashStatus flash_describe_ring(const FlashRingParams *params, int32_t rank,
                                           FlashRingDescription *description) {
    return flash::ring_call([&] {
        check_sizes(params, rank);
        *description = describe(*params, rank);
    });
}

extern "C" FlashStatus flash_ring(const FlashRingParams *params, const FlashRank *ranks) {
    return flash::ring_call([&] {
        check_sizes(params, 0);
        flash::check_ring(params, ranks, limits, describe);
        flash::check_own_kernel(params, ranks, limits);
        flash::RingQueue ring(*params, ranks);
        queue(ring);
    });
}
