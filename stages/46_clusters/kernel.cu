// Clusters. Two blocks with neighbouring tiles of keys send each other dS through distributed shared memory. Each then
// computes dQ of every other query tile over the keys of both, and half as many sums go to L2. As in stage waits_apart,
// the warpgroup waits for each product only where it needs it, and blocks are persistent.

#include "backward_mainloop.cuh"
#include "backward_maps.h"
#include "gradient_products.cuh"
#include "gradient_rows.cuh"
#include "key_tile.cuh"
#include "launch_backward.h"
#include "ptx_cluster.cuh"
#include "query_loads.cuh"

constexpr uint32_t cluster_size = 2;  // blocks: each has a tile of keys, and its partner the one beside it

// The two buffers of dS. Of each pair of query tiles dS of the first is sent to the partner, and dS of the second is
// kept. The partner does it the other way round.
constexpr int sent = 0, kept = 1;

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];  // each [d_head / panel][Bc][panel]
    T partner_K[Bc * d_head];          // the partner's keys
    T Q[stages][Br * d_head];          // each [d_head / panel][Br][panel]
    T dO[stages][Br * d_head];         // the same
    T dS[dS_stages][Br * Bc];          // each [Bc / panel][Br][panel]: a row for each query, a panel for each warpgroup
    T received_dS[Br * Bc];            // the same, of the partner's keys
    float log_sum_exp[stages][Br], D[stages][Br];  // in statistics_position's order
    Pipeline<1> K_pipeline, V_pipeline;
    Unit units[unit_stages];
    Pipeline<unit_stages> unit_pipeline;
    Pipeline<stages> Q_pipeline, dO_pipeline;
    Pipeline<dS_stages> dS_pipeline;  // all consumer warps fill a buffer; the sender reads one, and they the other one
    Pipeline<1> exchange;  // full: the partner's dS has arrived here; empty: the partner's consumers have read ours
};

// ---- work ----

// A cluster's units: the number of the cluster, and each further one by the number of clusters. So both blocks know
// their unit without telling each other. A unit's key_tile is two tiles of keys, one for each block. Heads come in
// sections whose tensors fit in L2 together. Of a section the first keys of all heads come first: with a causal mask
// most queries see them, so that the longest units are begun first and short ones are left for the end.
struct UnitScheduler {
    static constexpr int64_t section_bytes = 24'000'000;  // half of an H100's L2
    int next_number = blockIdx.x;
    const int key_tiles, kv_heads, heads;  // heads: of K and V, of all batches
    int section_heads;

    __device__ explicit UnitScheduler(const FlashBackwardParams &params)
        : key_tiles((params.Nkv + 2 * Bc - 1) / (2 * Bc)), kv_heads(params.Hkv), heads(params.Hkv * params.B) {
        const int group = params.Hq / params.Hkv;
        const int64_t head_bytes = (int64_t{group} * params.Nq + params.Nkv) * params.d_head * 4;  // Q, dO, K and V
        section_heads = static_cast<int>(min(max(section_bytes / head_bytes, int64_t{1}), int64_t{heads}));
    }

    __device__ Unit next() {
        const int number = next_number;
        next_number += gridDim.x;
        if (number >= heads * key_tiles) return {-1, 0, 0};
        const int first_head = number / (section_heads * key_tiles) * section_heads;
        const int width = min(section_heads, heads - first_head);
        const int place = number - first_head * key_tiles;  // in the section
        const int head = first_head + place % width;
        return {place / width, head % kv_heads, head / kv_heads};
    }
};

// This block's keys of a unit. Both blocks walk over the query tiles that see the first block's keys.
template <int Br>
__device__ KeyTile<Br, Bc> keys_of(const FlashBackwardParams &params, const Unit &unit) {
    KeyTile<Br, Bc> keys(params, unit.key_tile * cluster_size, unit.kv_head, unit.batch);
    keys.first_key += ptx::cluster_rank() * Bc;
    return keys;
}

// Two query tiles. Block 0 keeps the first one's dS and block 1 the second one's; the other one's is sent.
struct QueryPair {
    QueryTile sent, kept;
    int sent_query, kept_query;  // the first query
};

// Takes the next two query tiles. If one is left, it is taken twice, but the second time as queries that see no key.
template <int Br>
__device__ QueryPair take_pair(const KeyTile<Br, Bc> &keys, QueryTile &next) {
    const QueryTile first = next;
    keys.advance(next);
    QueryTile second = first;
    int second_query = -keys.causal_offset - Br;  // the last query that sees no key is -causal_offset - 1
    if (keys.contains(next)) {
        second = next;
        second_query = second.row_tile * Br;
        keys.advance(next);
    }
    if (ptx::cluster_rank() == 0) return {second, first, second_query, first.row_tile * Br};
    return {first, second, first.row_tile * Br, second_query};
}

// ---- load ----

// The producer's thread.
template <typename T, int d_head, int Br>
struct Producer {
    SharedStorage<T, d_head, Br> &shared;
    const FlashBackwardParams &params;
    const BackwardMaps &maps;
    const Workspace &workspace;
    PipelineState<unit_stages> unit_write;
    PipelineState<1> keys_write;  // of K and of V
    QueryLoader<SharedStorage<T, d_head, Br>, Br, Bc, stages> loader{shared, params, maps, workspace};

    // Loads the block's tile of K, with the partner's, or of V.
    __device__ void load_keys(T (&tile)[Bc * d_head], Pipeline<1> &pipeline, const CUtensorMap &map,
                              const KeyTile<Br, Bc> &keys, bool with_partner) {
        pipeline.producer_acquire(keys_write);
        uint64_t *const full = &pipeline.full[0];
        ptx::mbarrier_arrive_expect_tx(full, sizeof(tile) * (with_partner ? 2 : 1));
        ptx::tma_load(tile, &map, full, 0, keys.first_key, 0, keys.kv_head, keys.batch);
        const int partner_key = keys.first_key ^ Bc;
        if (with_partner) ptx::tma_load(shared.partner_K, &map, full, 0, partner_key, 0, keys.kv_head, keys.batch);
    }

    // Tells the consumers which keys come next, or that there is no more work.
    __device__ void announce(const Unit &unit) {
        shared.unit_pipeline.producer_acquire(unit_write);
        shared.units[unit_write.stage] = unit;
        ptx::mbarrier_arrive(&shared.unit_pipeline.full[unit_write.stage]);
        unit_write.advance();
    }

    __device__ void run() {
        UnitScheduler scheduler(params);
        while (true) {
            const Unit unit = scheduler.next();
            announce(unit);
            if (!unit.valid()) break;
            const KeyTile<Br, Bc> keys = keys_of<Br>(params, unit);
            // What S needs of the first tile is loaded before what dP needs.
            QueryTile next = keys.begin();
            QueryPair pair = take_pair<Br>(keys, next);
            load_keys(shared.K, shared.K_pipeline, maps.K, keys, true);
            loader.load_Q(keys, pair.sent);
            load_keys(shared.V, shared.V_pipeline, maps.V, keys, false);
            keys_write.advance();
            loader.load_dO(keys, pair.sent);
            while (true) {
                loader.load_Q(keys, pair.kept);
                loader.load_dO(keys, pair.kept);
                if (!keys.contains(next)) break;
                pair = take_pair<Br>(keys, next);
                loader.load_Q(keys, pair.sent);
                loader.load_dO(keys, pair.sent);
            }
        }
    }
};

// ---- exchange ----

// The sender's thread. For each pair of query tiles it copies dS of the first one to the partner, which counts the
// bytes at its barrier, and waits for the partner's dS. The copy of the partner has then read its source, and the
// sender tells the partner so.
template <typename T, int d_head, int Br>
__device__ void send_dS(SharedStorage<T, d_head, Br> &shared, const FlashBackwardParams &params) {
    const uint32_t partner = ptx::cluster_rank() ^ 1;
    const uint32_t destination = ptx::shared_address_in(shared.received_dS, partner);
    const uint32_t partner_full = ptx::shared_address_in(&shared.exchange.full[0], partner);
    constexpr uint32_t bytes = sizeof(shared.received_dS);
    UnitScheduler scheduler(params);
    PipelineState<1> state;
    for (Unit unit = scheduler.next(); unit.valid(); unit = scheduler.next()) {
        const KeyTile<Br, Bc> keys = keys_of<Br>(params, unit);
        for (QueryTile next = keys.begin(); keys.contains(next);) {
            take_pair<Br>(keys, next);
            ptx::mbarrier_arrive_expect_tx(&shared.exchange.full[0], bytes);  // what the partner sends
            ptx::mbarrier_wait(&shared.dS_pipeline.full[sent], state.phase);  // both warpgroups have stored their dS
            shared.exchange.producer_acquire(state);                          // the partner has read the pair before
            ptx::bulk_copy_to(destination, shared.dS[sent], bytes, partner_full);
            shared.exchange.consumer_wait(state);
            ptx::mbarrier_arrive_in(&shared.dS_pipeline.empty[sent], partner);
            state.advance();
        }
    }
}

// ---- products ----

// The products of stage waits_apart, but dQ is that of a pair's kept tile over the keys of both blocks.
template <typename T, int d_head, int Br>
struct ClusterMainloop : Mainloop<SharedStorage<T, d_head, Br>, T, d_head, Br> {
    using Base = Mainloop<SharedStorage<T, d_head, Br>, T, d_head, Br>;
    using Base::lane, Base::shared;
    const uint64_t partner_K_descriptor;  // all of the partner's keys, the warpgroup's columns of dQ
    const uint64_t received_descriptor;   // as dS_descriptor
    PipelineState<1> pair_read;

    __device__ ClusterMainloop(SharedStorage<T, d_head, Br> &shared, int warp, int lane)
        : Base(shared, warp, lane),
          partner_K_descriptor(ptx::matrix_descriptor(shared.partner_K + (d_head == 128 ? warp / 4 * Bc * panel : 0),
                                                      Bc * row_bytes, 8 * row_bytes)),
          received_descriptor(ptx::matrix_descriptor(
              shared.received_dS + (d_head == 128 ? 0 : warp / 4 * Base::columns * panel), 0, 8 * row_bytes)) {}

    // dQ of the pair before.
    __device__ __forceinline__ void issue_dQ(float (&dQ)[Base::columns / 2]) {
        ptx::mbarrier_wait(&shared.dS_pipeline.full[kept], pair_read.phase);  // both warpgroups have stored their dS
        shared.exchange.consumer_wait(pair_read);                             // the partner's has arrived
        ::issue_dQ<T, d_head, Br>(dQ, this->K_transposed_descriptor,
                                  this->dS_descriptor + descriptor_offset(kept * Base::dS_bytes));
        const uint64_t K_columns = ptx::opaque(partner_K_descriptor);
        const uint64_t dS_tile = ptx::opaque(received_descriptor);
#pragma unroll
        for (int k = 0; k < Bc / 16; ++k) {
            const uint64_t dS_step = dS_tile + descriptor_offset(k / 4 * Br * row_bytes + k % 4 * 32);
            ptx::wgmma_ss_transposed<T, Base::columns>(dQ, K_columns + descriptor_offset(k * 16 * row_bytes), dS_step);
        }
        ptx::wgmma_commit();
    }

    // The warp has read both operands: the block may store the next kept dS, and the partner may send its next one.
    __device__ void release_dS() {
        if (lane == 0) {
            ptx::mbarrier_arrive(&shared.dS_pipeline.empty[kept]);
            ptx::mbarrier_arrive_in(&shared.exchange.empty[0], ptx::cluster_rank() ^ 1);
        }
        pair_read.advance();
    }
};

// A query tile without dQ: that of the pair before is computed with the other tile of a pair.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void add_dK_and_dV(ClusterMainloop<T, d_head, Br> &mainloop, Scores<Br> &tile,
                                              float (&dK)[d_head / 2], float (&dV)[d_head / 2],
                                              const FlashBackwardParams &params, const KeyTile<Br, Bc> &keys,
                                              int first_query) {
    compute_dS(mainloop, tile, dV, params, keys, first_query);
    mainloop.issue_dK(dK, tile.dS);
    ptx::wgmma_wait<0>(dK, dV, tile.dS, tile.P);
    mainloop.release_dO();
    mainloop.release_Q();
}

// ---- kernel ----

// grid: (clusters, cluster_size): a cluster for every two multiprocessors, or for each unit if they are fewer
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads, 1) __cluster_dims__(1, 2, 1)
    backward_kernel(const FlashBackwardParams params, const __grid_constant__ BackwardMaps maps,
                    const Workspace workspace) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, Br> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.unit_pipeline.init(4 * consumers);
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        shared.Q_pipeline.init(4 * consumers);
        shared.dO_pipeline.init(4 * consumers);
        for (int stage = 0; stage < dS_stages; ++stage) {
            ptx::mbarrier_init(&shared.dS_pipeline.full[stage], 4 * consumers);
            ptx::mbarrier_init(&shared.dS_pipeline.empty[stage], stage == sent ? 1 : 4 * consumers);
        }
        shared.exchange.init(4 * consumers);
        ptx::fence_mbarrier_init();
    }
    ptx::cluster_sync();  // no thread of either block may use a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One of its threads loads, and one sends.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (threadIdx.x == 128 * consumers) Producer<T, d_head, Br>{shared, params, maps, workspace}.run();
        if (threadIdx.x == 128 * consumers + 32) send_dS(shared, params);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers>();
    ClusterMainloop<T, d_head, Br> mainloop(shared, warp, lane);
    Scores<Br> scores;                     // transposed [64, Br] per warpgroup
    float dQ[dQ_columns<d_head, Br> / 2];  // transposed [64, dQ_columns] per warpgroup
    float dK[d_head / 2], dV[d_head / 2];  // [64, d_head] per warpgroup

    while (true) {
        const Unit unit = mainloop.wait_unit();
        if (!unit.valid()) break;
        const KeyTile<Br, Bc> keys = keys_of<Br>(params, unit);
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) {
            dK[x] = 0.0f;
            dV[x] = 0.0f;
        }
        mainloop.wait_keys();

        // There is no dQ to compute beside the first pair's dK: each dQ is that of the pair before. The kept dS of a
        // pair is the second one, so that the partner's arrives meanwhile.
        QueryTile next = keys.begin();
        QueryPair pair = take_pair<Br>(keys, next);
        add_dK_and_dV(mainloop, scores, dK, dV, params, keys, pair.sent_query);
        add_dK_and_dV(mainloop, scores, dK, dV, params, keys, pair.kept_query);
        while (keys.contains(next)) {
            const int64_t previous = keys.number(params, pair.kept);
            pair = take_pair<Br>(keys, next);
            compute_dS(mainloop, scores, dV, params, keys, pair.sent_query);
            mainloop.issue_dQ(dQ);
            mainloop.issue_dK(dK, scores.dS);
            ptx::wgmma_wait<1>(dQ, dV, scores.P);
            mainloop.release_dO();
            mainloop.release_dS();
            add_dQ(workspace, previous, dQ);  // beside dK
            ptx::wgmma_wait<0>(dK, scores.dS);
            mainloop.release_Q();
            add_dK_and_dV(mainloop, scores, dK, dV, params, keys, pair.kept_query);
        }
        mainloop.issue_dQ(dQ);
        ptx::wgmma_wait<0>(dQ);
        mainloop.release_dS();
        mainloop.release_keys();
        add_dQ(workspace, keys.number(params, pair.kept), dQ);

        const int first = keys.first_key + warp * 16;
        const int count = params.Nkv - first;  // rows from here to the end of dK and dV
        store_rows<T, d_head>(first_row<T>(params.dK, keys.batch, keys.kv_head, first), params.dK.stride_row, count, dK,
                              params.scale, lane);
        store_rows<T, d_head>(first_row<T>(params.dV, keys.batch, keys.kv_head, first), params.dV.stride_row, count, dV,
                              1.0f, lane);
    }
    ptx::cluster_sync();  // the partner's last arrivals and copies come to this block's shared memory
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Clusters",
                                  .min_compute = 90,
                                  .Br = 64,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .specific = true};  // sm_90a

static flash::BackwardTraits traits_of(const FlashBackwardParams &params) {
    return {.workspace_bytes = backward_workspace_bytes(params, rows_of_tile(params.d_head))};
}

template <typename T, int d_head>
static flash::TypedKernel<FlashBackwardParams, BackwardMaps, Workspace> main_pass(const FlashBackwardParams &params) {
    constexpr int Br = rows_of_tile(d_head);
    const int clusters = flash::persistent(1 << 30).x / cluster_size;  // that the multiprocessors hold
    const int units = (params.Nkv + 2 * Bc - 1) / (2 * Bc) * params.Hkv * params.B;
    return {.entry = backward_kernel<T, d_head, Br>,
            .grid = dim3(units < clusters ? units : clusters, cluster_size),
            .threads = threads,
            .shared_bytes = sizeof(SharedStorage<T, d_head, Br>)};
}

template <typename T, int d_head>
static FlashStatus run(const FlashBackwardParams &params, cudaStream_t stream) {
    constexpr int Br = rows_of_tile(d_head);
    BackwardMaps maps;
    const FlashStatus status = make_backward_maps(params, Br, Bc, maps);
    if (status != FLASH_OK) return status;
    const Workspace workspace = workspace_of<Br>(params);
    return flash::KernelQueue(stream)
        .add(prepare_pass<T, d_head, Br>(params), params, workspace)
        .add(main_pass<T, d_head>(params), params, maps, workspace)
        .add(finish_pass<T, d_head, Br>(params), params, workspace)
        .status();
}

extern "C" FlashStatus flash_backward(const FlashBackwardParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits);
    if (status == FLASH_OK) status = flash::check(params, limits, traits_of(*params));
    if (status != FLASH_OK) return status;
    return flash::choose_instance(*params, [&]<typename T, int d_head>() { return run<T, d_head>(*params, stream); });
}

extern "C" FlashStatus flash_describe_backward(const FlashBackwardParams *params,
                                               FlashBackwardDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    if (status != FLASH_OK) return status;
    flash::Launch launch = flash::choose_instance(
        *params, [&]<typename T, int d_head>() { return flash::untyped(main_pass<T, d_head>(*params)); });
    launch.Q_box_rows = rows_of_tile(params->d_head);
    return flash::describe(limits, traits_of(*params), launch, description);
}
