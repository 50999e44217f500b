// dQ one tile late. There are two buffers for dS, and a warpgroup multiplies dQ of the tile before: both warpgroups
// have stored that dS long ago, so that neither waits for the other within a tile.
//
// A producer warp loads the tiles of Q and dO. Two consumer warpgroups hold 64 of the block's keys each, with their dK
// and dV as accumulators. They compute S and dP transposed: a row for each key, a column for each query. Only
// dQ = dS K, a sum over the keys of both warpgroups, takes dS from shared memory.

#include "backward_maps.h"
#include "backward_passes.cuh"
#include "gradient_products.cuh"
#include "gradient_rows.cuh"
#include "key_tile.cuh"
#include "launch_backward.h"
#include "pipeline.cuh"
#include "ptx_backward.cuh"
#include "query_loads.cuh"
#include "score_gradients.cuh"

constexpr int stages = 2;     // buffers for tiles of Q, and as many for tiles of dO
constexpr int dS_stages = 2;  // buffers for tiles of dS

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];  // each [d_head / panel][Bc][panel]
    T Q[stages][Br * d_head];          // each [d_head / panel][Br][panel]
    T dO[stages][Br * d_head];         // the same
    T dS[dS_stages][Br * Bc];          // each [Bc / panel][Br][panel]: a row for each query, a panel for each warpgroup
    float log_sum_exp[stages][Br], D[stages][Br];  // in statistics_position's order
    Pipeline<1> K_pipeline, V_pipeline;
    Pipeline<stages> Q_pipeline, dO_pipeline;
    Pipeline<dS_stages> dS_pipeline;  // all consumer warps fill a buffer, and all read it
};

// ---- load ----

// The producer's thread.
template <typename T, int d_head, int Br>
struct Producer {
    SharedStorage<T, d_head, Br> &shared;
    const FlashBackwardParams &params;
    const BackwardMaps &maps;
    const Workspace &workspace;
    QueryLoader<SharedStorage<T, d_head, Br>, Br, Bc, stages> loader{shared, params, maps, workspace};

    __device__ void load_keys(const KeyTile<Br, Bc> &keys) {
        uint64_t *const K_full = &shared.K_pipeline.full[0];
        uint64_t *const V_full = &shared.V_pipeline.full[0];
        ptx::mbarrier_arrive_expect_tx(K_full, sizeof(shared.K));
        ptx::tma_load(shared.K, &maps.K, K_full, 0, keys.first_key, 0, keys.kv_head, keys.batch);
        ptx::mbarrier_arrive_expect_tx(V_full, sizeof(shared.V));
        ptx::tma_load(shared.V, &maps.V, V_full, 0, keys.first_key, 0, keys.kv_head, keys.batch);
    }

    __device__ void run(const KeyTile<Br, Bc> &keys) {
        load_keys(keys);
        for (QueryTile tile = keys.begin(); keys.contains(tile); keys.advance(tile)) {
            loader.load_Q(keys, tile);
            loader.load_dO(keys, tile);
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
    PipelineState<stages> read;                  // of Q and of dO
    PipelineState<dS_stages> dS_write, dS_read;

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

    __device__ __forceinline__ void issue_S(float (&S)[Br / 2]) {
        shared.Q_pipeline.consumer_wait(read);
        issue_scores<T, d_head, Br>(S, K_descriptor, Q_descriptor + descriptor_offset(read.stage * tile_bytes));
    }
    __device__ __forceinline__ void issue_dP(float (&dP)[Br / 2]) {
        shared.dO_pipeline.consumer_wait(read);
        issue_scores<T, d_head, Br>(dP, V_descriptor, dO_descriptor + descriptor_offset(read.stage * tile_bytes));
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
        shared.dS_pipeline.producer_acquire(dS_write);  // both warpgroups have read what the buffer held
        const uint32_t address = dS_address + dS_write.stage * dS_bytes;
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) ptx::stmatrix_x4_trans(address + q * 16 * row_bytes, dS[q]);
        ptx::fence_proxy_async();  // makes this lane's writes visible to wgmma
        __syncwarp();              // every lane has made its writes visible before lane 0 arrives for the warp
        if (lane == 0) ptx::mbarrier_arrive(&shared.dS_pipeline.full[dS_write.stage]);
        dS_write.advance();
    }

    __device__ void release_dS() { shared.dS_pipeline.consumer_release(dS_read, lane); }
    __device__ void release() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.Q_pipeline.empty[read.stage]);
        shared.dO_pipeline.consumer_release(read, lane);
    }
};

// ---- P and dS ----

// The registers of a tile, transposed: [64 keys, Br queries] per warpgroup.
template <int Br>
struct Scores {
    float S[Br / 2], dP[Br / 2];             // S becomes P
    uint32_t P[Br / 16][4], dS[Br / 16][4];  // rounded, as wgmma's operand A
};

// From a tile of Q to its dS, in registers and in shared memory. dV += Pᵀ dO is under way at the end.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void compute_dS(Mainloop<T, d_head, Br> &mainloop, Scores<Br> &tile, float (&dV)[d_head / 2],
                                           const FlashBackwardParams &params, const KeyTile<Br, Bc> &keys,
                                           int first_query) {
    const auto &shared = mainloop.shared;
    const int warp_key = keys.first_key + mainloop.warp * 16, lane = mainloop.lane;
    mainloop.issue_S(tile.S);
    mainloop.issue_dP(tile.dP);
    ptx::wgmma_wait<0>(tile.S, tile.dP);
    mask<Br>(tile.S, warp_key, first_query, keys.causal_offset, params.Nkv, lane);
    const float *const log_sum_exp = shared.log_sum_exp[mainloop.read.stage];
    exponentiate<T, Br>(tile.S, tile.P, log_sum_exp, params.scale * 1.44269504f, lane);
    differentiate<T, Br>(tile.S, tile.dP, tile.dS, shared.D[mainloop.read.stage], lane);
    mainloop.issue_dV(dV, tile.P);
    mainloop.store_dS(tile.dS);
}

// ---- kernel ----

// grid: (tiles of keys, Hkv, B)
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads, 1)
    backward_kernel(const FlashBackwardParams params, const __grid_constant__ BackwardMaps maps,
                    const Workspace workspace) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, Br> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;
    const KeyTile<Br, Bc> keys(params, blockIdx.x, blockIdx.y, blockIdx.z);

    if (threadIdx.x == 0) {
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
        if (threadIdx.x == 128 * consumers) Producer<T, d_head, Br>{shared, params, maps, workspace}.run(keys);
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers>();
    Mainloop<T, d_head, Br> mainloop(shared, warp, lane);
    const int warp_key = keys.first_key + warp * 16;
    Scores<Br> scores;                     // transposed [64, Br] per warpgroup
    float dQ[dQ_columns<d_head, Br> / 2];  // transposed [64, dQ_columns] per warpgroup
    float dK[d_head / 2], dV[d_head / 2];  // [64, d_head] per warpgroup
#pragma unroll
    for (int x = 0; x < d_head / 2; ++x) {
        dK[x] = 0.0f;
        dV[x] = 0.0f;
    }

    shared.K_pipeline.consumer_wait({});
    shared.V_pipeline.consumer_wait({});
    // There is no dQ to compute beside the first tile's dK: each dQ is that of the tile before.
    QueryTile tile = keys.begin();
    compute_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
    mainloop.issue_dK(dK, scores.dS);
    ptx::wgmma_wait<0>(dK, dV, scores.dS, scores.P);
    mainloop.release();
    int64_t previous = keys.number(params, tile);
    for (keys.advance(tile); keys.contains(tile); keys.advance(tile)) {
        compute_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
        mainloop.issue_dQ(dQ);
        mainloop.issue_dK(dK, scores.dS);
        ptx::wgmma_wait<0>(dQ, dK, dV, scores.dS, scores.P);
        mainloop.release();
        mainloop.release_dS();
        add_dQ(workspace, previous, dQ);
        previous = keys.number(params, tile);
    }
    mainloop.issue_dQ(dQ);
    ptx::wgmma_wait<0>(dQ);
    add_dQ(workspace, previous, dQ);

    const int count = params.Nkv - warp_key;  // rows from here to the end of dK and dV
    store_rows<T, d_head>(first_row<T>(params.dK, keys.batch, keys.kv_head, warp_key), params.dK.stride_row, count, dK,
                          params.scale, lane);
    store_rows<T, d_head>(first_row<T>(params.dV, keys.batch, keys.kv_head, warp_key), params.dV.stride_row, count, dV,
                          1.0f, lane);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "dQ one tile late",
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
            .grid = dim3((params.Nkv + Bc - 1) / Bc, params.Hkv, params.B),
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
