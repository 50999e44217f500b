// Waits apart. The warpgroup waits for each product only where it needs it: exponentials run beside dP, dS is computed
// beside dV, and dQ leaves beside dK. What the products need is there before: the log-sum-exp in registers, and D as
// the number with which dP's accumulators begin. Blocks are persistent and take one tile of keys after the other.

#include "backward_maps.h"
#include "gradient_products.cuh"
#include "gradient_rows.cuh"
#include "key_tile.cuh"
#include "launch_backward.h"
#include "query_loads.cuh"
#include "score_gradients.cuh"

constexpr int stages = 2;          // buffers for tiles of Q, and as many for tiles of dO
constexpr int dS_stages = stages;  // buffers for tiles of dS
constexpr int unit_stages = 2;     // of the queue in which the producer tells which keys come next

// A block's work at a time: a tile of keys of one head of K and V.
struct Unit {
    int key_tile, kv_head, batch;  // key_tile -1: there is no more work

    __device__ bool valid() const { return key_tile >= 0; }
};

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];  // each [d_head / panel][Bc][panel]
    T Q[stages][Br * d_head];          // each [d_head / panel][Br][panel]
    T dO[stages][Br * d_head];         // the same
    T dS[dS_stages][Br * Bc];          // each [Bc / panel][Br][panel]: a row for each query, a panel for each warpgroup
    float log_sum_exp[stages][Br], D[stages][Br];  // in statistics_position's order
    Pipeline<1> K_pipeline, V_pipeline;
    Unit units[unit_stages];
    Pipeline<unit_stages> unit_pipeline;
    Pipeline<stages> Q_pipeline, dO_pipeline;
    Pipeline<dS_stages> dS_pipeline;  // all consumer warps fill a buffer, and all read it
};

// ---- work ----

// Hands out the units in the order in which blocks ask for them. Heads come in sections whose tensors fit in L2
// together. Of a section the first keys of all heads come first: with a causal mask most queries see them, so that the
// longest units are begun first and short ones are left for the end.
struct UnitScheduler {
    static constexpr int64_t section_bytes = 24'000'000;  // half of an H100's L2
    int *const counter;
    const int key_tiles, kv_heads, heads;  // heads: of K and V, of all batches
    int section_heads;

    __device__ UnitScheduler(const FlashBackwardParams &params, int *counter)
        : counter(counter), key_tiles((params.Nkv + Bc - 1) / Bc), kv_heads(params.Hkv), heads(params.Hkv * params.B) {
        const int group = params.Hq / params.Hkv;
        const int64_t head_bytes = (int64_t{group} * params.Nq + params.Nkv) * params.d_head * 4;  // Q, dO, K and V
        section_heads = static_cast<int>(min(max(section_bytes / head_bytes, int64_t{1}), int64_t{heads}));
    }

    __device__ Unit next() const {
        const int number = atomicAdd(counter, 1);
        if (number >= heads * key_tiles) return {-1, 0, 0};
        const int first_head = number / (section_heads * key_tiles) * section_heads;
        const int width = min(section_heads, heads - first_head);
        const int place = number - first_head * key_tiles;  // in the section
        const int head = first_head + place % width;
        return {place / width, head % kv_heads, head / kv_heads};
    }
};

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

    __device__ void load_keys(T (&tile)[Bc * d_head], Pipeline<1> &pipeline, const CUtensorMap &map, const Unit &unit) {
        pipeline.producer_acquire(keys_write);
        ptx::mbarrier_arrive_expect_tx(&pipeline.full[0], sizeof(tile));
        ptx::tma_load(tile, &map, &pipeline.full[0], 0, unit.key_tile * Bc, 0, unit.kv_head, unit.batch);
    }

    // Tells the consumers which keys come next, or that there is no more work.
    __device__ void announce(const Unit &unit) {
        shared.unit_pipeline.producer_acquire(unit_write);
        shared.units[unit_write.stage] = unit;
        ptx::mbarrier_arrive(&shared.unit_pipeline.full[unit_write.stage]);
        unit_write.advance();
    }

    __device__ void run() {
        const UnitScheduler scheduler(params, workspace.counter);
        while (true) {
            const Unit unit = scheduler.next();
            announce(unit);
            if (!unit.valid()) break;
            const KeyTile<Br, Bc> keys(params, unit.key_tile, unit.kv_head, unit.batch);
            // What S needs of the first tile is loaded before what dP needs.
            QueryTile tile = keys.begin();
            load_keys(shared.K, shared.K_pipeline, maps.K, unit);
            loader.load_Q(keys, tile);
            load_keys(shared.V, shared.V_pipeline, maps.V, unit);
            keys_write.advance();
            loader.load_dO(keys, tile);
            for (keys.advance(tile); keys.contains(tile); keys.advance(tile)) {
                loader.load_Q(keys, tile);
                loader.load_dO(keys, tile);
            }
        }
    }
};

// ---- products ----

// One consumer warpgroup's matrix products. It knows the position in the queues of Q and dO and how wgmma finds the
// tiles. The register arrays belong to the kernel function and are passed in. Between the issue of a product and the
// wait for it, the code must not touch the product's registers.
template <typename T, int d_head, int Br>
struct Mainloop {
    static constexpr int tile_bytes = Br * d_head * sizeof(T);  // of Q or dO
    static constexpr int dS_bytes = Br * Bc * sizeof(T);
    static constexpr int columns = dQ_columns<d_head, Br>;  // of the warpgroup's part of dQ transposed

    SharedStorage<T, d_head, Br> &shared;
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
    __device__ Mainloop(SharedStorage<T, d_head, Br> &shared, int warp, int lane)
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
    __device__ __forceinline__ void store_dS(const uint32_t (&dS)[Br / 16][4]) {
        shared.dS_pipeline.producer_acquire(read);  // both warpgroups have read what the buffer held
        const uint32_t address = dS_address + read.stage * dS_bytes;
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) ptx::stmatrix_x4_trans(address + q * 16 * row_bytes, dS[q]);
        ptx::fence_proxy_async();  // makes this lane's writes visible to wgmma
        __syncwarp();              // every lane has made its writes visible before lane 0 arrives for the warp
        if (lane == 0) ptx::mbarrier_arrive(&shared.dS_pipeline.full[read.stage]);
    }

    __device__ void release_dS() { shared.dS_pipeline.consumer_release(dS_read, lane); }
    __device__ void release_dO() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.dO_pipeline.empty[read.stage]);
    }
    __device__ void release_Q() { shared.Q_pipeline.consumer_release(read, lane); }
};

// ---- P and dS ----

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

// From a tile of Q to its dS, in registers and in shared memory. dV += Pᵀ dO is under way at the end.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void compute_dS(Mainloop<T, d_head, Br> &mainloop, Scores<Br> &tile, float (&dV)[d_head / 2],
                                           const FlashBackwardParams &params, const KeyTile<Br, Bc> &keys,
                                           int first_query) {
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
    mainloop.store_dS(tile.dS);
}

// ---- kernel ----

// grid: as many blocks as multiprocessors, or as units if they are fewer
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads, 1)
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
            ptx::mbarrier_init(&shared.dS_pipeline.empty[stage], 4 * consumers);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One of its threads does all the work.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (threadIdx.x == 128 * consumers) Producer<T, d_head, Br>{shared, params, maps, workspace}.run();
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers>();
    Mainloop<T, d_head, Br> mainloop(shared, warp, lane);
    Scores<Br> scores;                     // transposed [64, Br] per warpgroup
    float dQ[dQ_columns<d_head, Br> / 2];  // transposed [64, dQ_columns] per warpgroup
    float dK[d_head / 2], dV[d_head / 2];  // [64, d_head] per warpgroup

    while (true) {
        const Unit unit = mainloop.wait_unit();
        if (!unit.valid()) break;
        const KeyTile<Br, Bc> keys(params, unit.key_tile, unit.kv_head, unit.batch);
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) {
            dK[x] = 0.0f;
            dV[x] = 0.0f;
        }
        mainloop.wait_keys();

        // There is no dQ to compute beside the first tile's dK: each dQ is that of the tile before.
        QueryTile tile = keys.begin();
        compute_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
        mainloop.issue_dK(dK, scores.dS);
        ptx::wgmma_wait<0>(dK, dV, scores.dS, scores.P);
        mainloop.release_dO();
        mainloop.release_Q();
        int64_t previous = keys.number(params, tile);
        for (keys.advance(tile); keys.contains(tile); keys.advance(tile)) {
            compute_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
            mainloop.issue_dQ(dQ);
            mainloop.issue_dK(dK, scores.dS);
            ptx::wgmma_wait<1>(dQ, dV, scores.P);
            mainloop.release_dO();
            mainloop.release_dS();
            add_dQ(workspace, previous, dQ);  // beside dK
            previous = keys.number(params, tile);
            ptx::wgmma_wait<0>(dK, scores.dS);
            mainloop.release_Q();
        }
        mainloop.issue_dQ(dQ);
        ptx::wgmma_wait<0>(dQ);
        mainloop.release_dS();
        mainloop.release_keys();
        add_dQ(workspace, previous, dQ);

        const int first = keys.first_key + warp * 16;
        const int count = params.Nkv - first;  // rows from here to the end of dK and dV
        store_rows<T, d_head>(first_row<T>(params.dK, keys.batch, keys.kv_head, first), params.dK.stride_row, count, dK,
                              params.scale, lane);
        store_rows<T, d_head>(first_row<T>(params.dV, keys.batch, keys.kv_head, first), params.dV.stride_row, count, dV,
                              1.0f, lane);
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Waits apart",
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
    return {.entry = backward_kernel<T, d_head, Br>,
            .grid = flash::persistent((params.Nkv + Bc - 1) / Bc * params.Hkv * params.B),
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
