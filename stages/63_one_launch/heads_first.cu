// Heads first, beside kernel.cu. There a GPU has some rows of all heads, and brings the other rows of K and V to
// itself. Here it computes some heads for all rows of the sequence, and brings K and V of these heads alone: P times
// fewer bytes. In exchange the rows of Q and O lie on other GPUs. Each is read or written once, so TMA does it where
// they lie, over the link.
//
// One launch on each GPU, and no copies besides. All warps bring the first head, since there is nothing to compute yet.
// The three warps of the producer warpgroup that have no other work bring the others, and count what has come. The main
// loop is an earlier form of that of stage shapes. All GPUs compute the same rows, so a causal mask needs no zigzag:
// rank r has the rows from r N / P on.

#include <algorithm>

#include "epilogue.cuh"
#include "launch_ring.h"
#include "load.cuh"
#include "mainloop.cuh"
#include "mask.cuh"
#include "optimistic_softmax.cuh"
#include "ptx_ring.cuh"
#include "tensor_maps.h"

constexpr int most_owners = 8;     // GPUs of a host
constexpr int piece_bytes = 8192;  // of K or V, that a warp brings at a time

// The ranks whose rows a kernel reads and writes. params says what one rank computes: its heads, all N rows.
struct Owners {
    CUtensorMap Q[most_owners], O[most_owners];   // the rows of each owner, this rank's heads
    const char *K[most_owners], *V[most_owners];  // [B, all heads, rows, d_head], from this rank's heads on
    float *log_sum_exp[most_owners];              // [B, all heads, rows], the same; or null
    int64_t K_batch_bytes, head_bytes;            // from batch to batch and from head to head there
    int rank, ranks, rows, Hq;                    // rows: of each owner; Hq: of all ranks
};

// This rank's memory: K and V of its heads from all owners, [B, Hkv, N, d_head], and counts that are 0 at first.
struct Brought {
    char *K, *V;
    uint32_t *tiles_taken;  // how many query tiles blocks have asked for
    uint32_t *blocks_done;  // how many blocks have asked in vain
    uint32_t *pieces;       // [B * Hkv]: how many pieces of a head have come
};

// ---- bring K and V ----

// The warps of all blocks bring the heads from `first` to before `last`: warp number `warp` brings every `warps`-th
// piece. Pieces that follow one another come from different owners, and ranks begin with different ones, so that no
// link is crowded.
__device__ void bring(const FlashParams &params, const Owners &owners, const Brought &brought, uint32_t first,
                      uint32_t last, uint32_t warp, uint32_t warps, int lane) {
    constexpr int in_flight = 4;
    const uint32_t of_owner = 2 * (owners.head_bytes / piece_bytes);  // pieces of a head: of K, then of V
    const uint32_t of_head = of_owner * owners.ranks;
    for (uint32_t i = first * of_head + warp; i < last * of_head; i += warps) {
        const uint32_t head = i / of_head;  // of all batches
        const uint32_t owner = (i + owners.rank + 1) % owners.ranks;
        const uint32_t piece = i % of_head / owners.ranks;
        const bool V = piece >= of_owner / 2;
        const int64_t place = int64_t{V ? piece - of_owner / 2 : piece} * piece_bytes + lane * 16;
        const char *from = (V ? owners.V : owners.K)[owner] + place + head / params.Hkv * owners.K_batch_bytes +
                           head % params.Hkv * owners.head_bytes;
        char *to = (V ? brought.V : brought.K) + place + (int64_t{head} * owners.ranks + owner) * owners.head_bytes;
#pragma unroll 1
        for (const char *end = from + piece_bytes; from < end; from += in_flight * 512, to += in_flight * 512) {
            uint4 values[in_flight];
#pragma unroll
            for (int n = 0; n < in_flight; ++n) values[n] = *reinterpret_cast<const uint4 *>(from + n * 512);
#pragma unroll
            for (int n = 0; n < in_flight; ++n) *reinterpret_cast<uint4 *>(to + n * 512) = values[n];
        }
        __threadfence();  // all blocks see this lane's part before they see the count
        __syncwarp();
        if (lane == 0) atomicAdd(brought.pieces + head, 1);
    }
}

// Waits until all pieces of a head have come.
__device__ void wait_for_head(const Owners &owners, const Brought &brought, int head) {
    const uint32_t all = 2 * (owners.head_bytes / piece_bytes) * owners.ranks;
    while (ptx::load_acquire_system(brought.pieces + head) < all) __nanosleep(100);
    ptx::fence_proxy_async_global();
}

// ---- which query tile ----

// The next query tile, for whichever block asks first. The first heads' tiles come head by head, since K and V come
// so; the last heads' all at once. The longest come first, so that short ones are left for the end.
template <int Br, int Bc>
__device__ QueryTile take_query_tile(const FlashParams &params, const Brought &brought) {
    const uint32_t number = atomicAdd(brought.tiles_taken, 1), row_tiles = params.Nq / Br;
    const uint32_t heads = params.B * params.Hq;
    if (number >= heads * row_tiles) return {};
    const uint32_t at_once = params.causal ? min(heads - 1, 3 * gridDim.x / row_tiles + 1) : 0;
    const uint32_t alone = heads - at_once, of_last = number - min(number, alone * row_tiles);
    const bool last = number >= alone * row_tiles;
    const uint32_t head = last ? alone + of_last % at_once : number / row_tiles;
    const uint32_t place = last ? of_last / at_once : number % row_tiles;
    QueryTile tile;
    tile.batch = head / params.Hq;
    tile.head = head % params.Hq;
    tile.kv_head = tile.head / (params.Hq / params.Hkv);
    tile.first_row = (params.causal ? row_tiles - 1 - place : place) * Br;
    tile.causal_offset = params.causal ? 0 : params.Nkv;
    tile.kv_tiles = (params.causal ? tile.first_row + Br : params.Nkv) / Bc;
    return tile;
}

// A block calls this when it waits for no head any more. The last one clears the counts for the next call.
__device__ void clear_counts(const FlashParams &params, const Brought &brought) {
    __threadfence();
    if (atomicAdd(brought.blocks_done, 1) < gridDim.x - 1) return;
    __threadfence();
    atomicExch(brought.tiles_taken, 0);
    atomicExch(brought.blocks_done, 0);
    for (int head = 0; head < params.B * params.Hkv; ++head) atomicExch(brought.pieces + head, 0);
}

// The query tile as its owner counts rows.
__device__ QueryTile at_home(QueryTile query_tile, const Owners &owners) {
    query_tile.first_row %= owners.rows;
    return query_tile;
}

// The producer's thread, as in stage shapes but for Q, which comes from its owner, and the wait for a head.
template <typename T, int d_head, Configuration config>
__device__ void produce(SharedStorage<T, d_head, config> &shared, const FlashParams &params, const TensorMaps &maps,
                        const Owners &owners, const Brought &brought) {
    constexpr int Br = config.Br, Bc = config.Bc;
    PipelineState<q_stages> Q_write;
    PipelineState<config.kv_stages> K_write, V_write;
    QueryTile V_of;   // the next tile of V: its query tile,
    int V_tile = -1;  // and its number; there is none before the first tile of K
    while (true) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const QueryTile query_tile = take_query_tile<Br, Bc>(params, brought);
        shared.query_tiles[Q_write.stage] = query_tile;
        uint64_t *const Q_full = &shared.Q_pipeline.full[Q_write.stage];
        if (!query_tile.valid()) {
            ptx::mbarrier_arrive(Q_full);  // no Q follows, but the consumers must see that there is no more work
            break;
        }
        load_tile(shared.Q[Q_write.stage], sizeof(shared.Q[0]), owners.Q[query_tile.first_row / owners.rows], Q_full,
                  query_tile.first_row % owners.rows, query_tile.head, query_tile.batch);
        Q_write.advance();
        wait_for_head(owners, brought, query_tile.batch * params.Hkv + query_tile.kv_head);
        for (int tile = query_tile.kv_tiles - 1; tile >= 0; --tile) {
            load_kv_tile<Bc>(shared.K, shared.K_pipeline, K_write, maps.K, query_tile, tile);
            if (V_tile >= 0) load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, maps.V, V_of, V_tile);
            V_of = query_tile;
            V_tile = tile;
        }
    }
    // No tile of K follows the last one, so its tile of V is loaded here.
    if (V_tile >= 0) load_kv_tile<Bc>(shared.V, shared.V_pipeline, V_write, maps.V, V_of, V_tile);
    clear_counts(params, brought);
}

// ---- kernel ----

// grid: as many blocks as the multiprocessors hold, or as query tiles if they are fewer. All run at the same time, and
// each brings its part of K and V.
template <typename T, int d_head, Configuration config>
__global__ void __launch_bounds__(config.threads(), config.blocks)
    heads_kernel(const FlashParams params, const __grid_constant__ TensorMaps maps,
                 const __grid_constant__ Owners owners, const Brought brought) {
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

    // The producer warpgroup gives most of its registers back. One of its threads asks for tiles,
    // and its other warps bring K and V.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<config.producer_registers>();
        if (threadIdx.x == 128 * consumers) produce(shared, params, maps, owners, brought);
        const int helper = warp % 4 - 1;
        if (helper >= 0) {
            bring(params, owners, brought, 1, params.B * params.Hkv, helper * gridDim.x + blockIdx.x, 3 * gridDim.x,
                  lane);
        }
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<config.consumer_registers>();
    // There is nothing to compute before the first head of K and V is there, so they bring it.
    bring(params, owners, brought, 0, 1, warp * gridDim.x + blockIdx.x, 4 * consumers * gridDim.x, lane);
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
        const int owner = finished.first_row / owners.rows;
        FlashParams home = params;
        home.log_sum_exp = owners.log_sum_exp[owner];
        home.Hq = owners.Hq;
        home.Nq = owners.rows;
        store_O(owners.O[owner], shared.O[warp], O, rows, at_home(finished, owners), warp, lane);
        store_log_sum_exp(home, rows, at_home(finished, owners), warp, lane);
    }
    if constexpr (config.ping_pong) mainloop.ping_pong.end();
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the block must not end before TMA has read its shared memory
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Heads first",
                                  .min_compute = 90,
                                  .Br = 128,
                                  .Bc = 128,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .log_sum_exp = true,
                                  .specific = true};  // sm_90a

// As in kernel.cu.
template <int d_head>
constexpr Configuration configuration = d_head == 128 ? Configuration{128, 128, 2, 2, false, true, 24, 240, 1}
                                                      : Configuration{128, 128, 4, 1, true, true, 24, 240, 1};

static int rows_of(const FlashRingParams &params) {
    return params.N / params.ranks;
}

struct Workspace {
    Brought brought;
    size_t bytes;

    Workspace(const FlashRingParams &params, void *memory) {
        const size_t heads = params.B * params.Hkv / params.ranks;
        flash::WorkspaceLayout layout(memory);
        brought.tiles_taken = static_cast<uint32_t *>(layout.take(sizeof(uint32_t) * (2 + heads)));
        brought.blocks_done = brought.tiles_taken + 1;
        brought.pieces = brought.tiles_taken + 2;
        brought.K = static_cast<char *>(layout.take(2 * heads * params.N * params.d_head));
        brought.V = static_cast<char *>(layout.take(2 * heads * params.N * params.d_head));
        bytes = layout.bytes();
    }
};

static void check_sizes(const FlashRingParams *params, int rank) {
    flash::check_ring_sizes(params, rank, limits, 1);
    if (params->Hkv % params->ranks != 0 || params->N % (params->ranks * limits.Br) != 0 ||
        params->ranks > most_owners || params->configuration) {
        flash::must(flash::fail(FLASH_UNSUPPORTED,
                                "'%s' needs whole heads of K and V for each of at most %d ranks, rows that are a "
                                "multiple of %d for each, and no configuration; Hkv is %d, N %d and ranks %d",
                                limits.title, most_owners, limits.Br, params->Hkv, params->N, params->ranks));
    }
}

using Kernel = flash::TypedKernel<const FlashParams, const TensorMaps, const Owners, const Brought>;

static Kernel kernel_for(const FlashParams &own) {
    return flash::choose_instance(own, [&]<typename T, int d_head>() {
        constexpr Configuration config = configuration<d_head>;
        const dim3 grid = flash::persistent(own.Hq * own.B * (own.Nq / config.Br));
        return Kernel{heads_kernel<T, d_head, config>, grid, config.threads(),
                      sizeof(SharedStorage<T, d_head, config>)};
    });
}

static FlashTensor from_head(FlashTensor tensor, int head) {
    tensor.data = static_cast<uint16_t *>(tensor.data) + head * tensor.stride_head;
    return tensor;
}

static void launch(const flash::RingQueue &ring, int me) {
    const FlashRingParams &params = ring.params();
    const int P = params.ranks, rows = rows_of(params);
    const Workspace workspace(params, ring[me].workspace);
    FlashParams own = flash::part_of(params);
    own.Hq /= P;
    own.Hkv /= P;
    own.Nq = own.Nkv = params.N;
    own.causal = params.causal;
    own.K = flash::without_gaps(workspace.brought.K, own.Hkv, params.N, params.d_head);
    own.V = flash::without_gaps(workspace.brought.V, own.Hkv, params.N, params.d_head);

    TensorMaps maps;
    Owners owners{};
    owners.rank = me, owners.ranks = P, owners.rows = rows, owners.Hq = params.Hq;
    owners.head_bytes = int64_t{2} * rows * params.d_head;
    owners.K_batch_bytes = params.Hkv * owners.head_bytes;
    for (int owner = 0; owner < P; ++owner) {
        const FlashRank &theirs = ring[owner];
        FlashParams there = own;
        there.Nq = rows;
        there.Q = from_head(theirs.Q, me * own.Hq);
        there.O = from_head(theirs.O, me * own.Hq);
        flash::must(flash::make_tensor_maps(there, limits.Br, limits.Bc, maps));
        owners.Q[owner] = maps.Q;
        owners.O[owner] = maps.O;
        owners.K[owner] = static_cast<const char *>(theirs.K.data) + me * own.Hkv * owners.head_bytes;
        owners.V[owner] = static_cast<const char *>(theirs.V.data) + me * own.Hkv * owners.head_bytes;
        if (theirs.log_sum_exp) owners.log_sum_exp[owner] = theirs.log_sum_exp + int64_t{me} * own.Hq * rows;
    }
    const flash::RingMark mark(params, me, FLASH_RING_ATTENTION, -1, ring[me].stream);
    flash::must(
        flash::KernelQueue(ring[me].stream).add(kernel_for(own), own, maps, owners, workspace.brought).status());
}

static void queue(flash::RingQueue &ring) {
    const int P = ring.params().ranks;
    std::vector<cudaEvent_t> ready(P), done(P);
    const auto wait_for_others = [&ring, P](int me, const std::vector<cudaEvent_t> &events) {
        for (int other = 0; other < P; ++other) {
            if (other != me) ring.wait(me, ring[me].stream, events[other]);
        }
    };
    for (int me = 0; me < P; ++me) ready[me] = ring.record(me, ring[me].stream);
    for (int me = 0; me < P; ++me) {
        wait_for_others(me, ready);  // their inputs are there, and their O may be written
        ring.use(me);
        launch(ring, me);
        done[me] = ring.record(me, ring[me].stream);
    }
    for (int me = 0; me < P; ++me) {
        wait_for_others(me, done);  // the own O is whole, and no other rank reads the own Q, K and V any more
    }
}

static FlashRingDescription describe(const FlashRingParams &params, int rank) {
    const int64_t P = params.ranks, N = params.N, heads = params.B * (params.Hq + params.Hkv);
    return {.title = limits.title,
            .min_compute = limits.min_compute,
            .pieces = {flash::ring_piece(params.N, rank, params.ranks), {}},
            .workspace_bytes = Workspace(params, nullptr).bytes,
            .zeroed_workspace = 1,
            .pulled_bytes = 4 * heads / P * N * params.d_head * (P - 1) / P,  // Q and O, too
            .scores = params.causal ? N * (N + 1) / 2 / P : N * N / P};
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
        flash::check_own_kernel(params, ranks, limits);  // with two kernels on a GPU not all blocks would run at once
        flash::RingQueue ring(*params, ranks);
        queue(ring);
    });
}
