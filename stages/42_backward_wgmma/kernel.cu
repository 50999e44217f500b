// Backward by wgmma. One block computes dK and dV of 128 keys, and adds to dQ of all queries that see them.
//
// A producer warp loads the tiles of Q and dO. Two consumer warpgroups hold 64 of the block's keys each, with their dK
// and dV as accumulators. They compute S and dP transposed: a row for each key, a column for each query. The transposed
// P and dS then lie in registers as wgmma wants its operand A, for dV += Pᵀ dO and dK += dSᵀ Q. Only dQ = dS K, a sum
// over the keys of both warpgroups, takes dS from shared memory.

#include "accumulator.cuh"
#include "backward_maps.h"
#include "backward_passes.cuh"
#include "gradient_rows.cuh"
#include "launch_backward.h"
#include "numbers.cuh"
#include "pipeline.cuh"
#include "ptx_backward.cuh"
#include "wgmma_backward.cuh"

constexpr int Bc = 128;         // keys of a block: rows of K, V, dK and dV
constexpr int stages = 2;       // buffers for tiles of Q, and as many for tiles of dO
constexpr int panel = 64;       // columns that TMA swizzles as one unit
constexpr int row_bytes = 128;  // of a panel
constexpr int consumers = 2;    // warpgroups, each with 64 keys
constexpr int threads = 128 * (consumers + 1);

// Rows of Q and dO in a tile. Accumulators of dK and dV take d_head registers of a thread, and those of S and dP take
// Br more.
constexpr int rows_of_tile(int d_head) {
    return d_head == 64 ? 128 : 64;
}

// Registers of a thread: the block starts with 168 for each and shares them out anew. 3 x 168 = 24 + 2 x 240.
constexpr int producer_registers = 24;
constexpr int consumer_registers = 240;

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];  // each [d_head / panel][Bc][panel]
    T Q[stages][Br * d_head];          // each [d_head / panel][Br][panel]
    T dO[stages][Br * d_head];         // the same
    T dS[Br * Bc];                     // [Bc / panel][Br][panel]: a row for each query, a panel for each warpgroup
    float log_sum_exp[stages][Br], D[stages][Br];  // in statistics_position's order
    Pipeline<1> K_pipeline, V_pipeline;
    Pipeline<stages> Q_pipeline, dO_pipeline;
};

// ---- work ----

// A tile of Q of one head.
struct QueryTile {
    int head, row_tile;
};

// The keys of a block, and the query tiles that see them: in each head of Q that shares the head of K and V, those from
// first_row_tile on.
template <int Br>
struct KeyTile {
    int batch, kv_head, first_key;
    int causal_offset;  // row i sees columns 0 to i + causal_offset
    int first_row_tile, row_tiles;
    int first_head, end_head;

    __device__ KeyTile(const FlashBackwardParams &params, int key_tile, int kv_head, int batch)
        : batch(batch), kv_head(kv_head), first_key(key_tile * Bc) {
        const int group = params.Hq / params.Hkv;
        causal_offset = params.causal ? params.Nkv - params.Nq : params.Nkv;  // the last row sees all of K
        first_row_tile = max(first_key - causal_offset, 0) / Br;
        row_tiles = (params.Nq + Br - 1) / Br;
        first_head = kv_head * group;
        end_head = first_head + group;
    }

    __device__ QueryTile begin() const { return {first_head, first_row_tile}; }
    __device__ bool contains(const QueryTile &tile) const { return tile.head < end_head; }
    __device__ void advance(QueryTile &tile) const {
        ++tile.row_tile;
        if (tile.row_tile == row_tiles) {
            tile.row_tile = first_row_tile;
            ++tile.head;
        }
    }
    // Counts the query tiles of all heads and batches.
    __device__ int64_t number(const FlashBackwardParams &params, const QueryTile &tile) const {
        return (int64_t{batch} * params.Hq + tile.head) * row_tiles + tile.row_tile;
    }
};

// ---- load ----

// The producer's thread. A tile arrives together with the statistic that its rows need: one phase of a barrier counts
// the bytes of both. Rows past the end of a tensor arrive as zeros.
template <typename T, int d_head, int Br>
struct Producer {
    SharedStorage<T, d_head, Br> &shared;
    const FlashBackwardParams &params;
    const BackwardMaps &maps;
    const Workspace &workspace;
    PipelineState<stages> Q_write, dO_write;

    __device__ void load_keys(const KeyTile<Br> &keys) {
        uint64_t *const K_full = &shared.K_pipeline.full[0];
        uint64_t *const V_full = &shared.V_pipeline.full[0];
        ptx::mbarrier_arrive_expect_tx(K_full, sizeof(shared.K));
        ptx::tma_load(shared.K, &maps.K, K_full, 0, keys.first_key, 0, keys.kv_head, keys.batch);
        ptx::mbarrier_arrive_expect_tx(V_full, sizeof(shared.V));
        ptx::tma_load(shared.V, &maps.V, V_full, 0, keys.first_key, 0, keys.kv_head, keys.batch);
    }

    __device__ void load_Q(const KeyTile<Br> &keys, const QueryTile &tile) {
        shared.Q_pipeline.producer_acquire(Q_write);
        const int stage = Q_write.stage;
        uint64_t *const full = &shared.Q_pipeline.full[stage];
        ptx::mbarrier_arrive_expect_tx(full, sizeof(shared.Q[0]) + sizeof(shared.log_sum_exp[0]));
        ptx::tma_load(shared.Q[stage], &maps.Q, full, 0, tile.row_tile * Br, 0, tile.head, keys.batch);
        const float *const statistics = workspace.statistics + keys.number(params, tile) * 2 * Br;
        ptx::bulk_load(shared.log_sum_exp[stage], statistics, sizeof(shared.log_sum_exp[0]), full);
        Q_write.advance();
    }

    __device__ void load_dO(const KeyTile<Br> &keys, const QueryTile &tile) {
        shared.dO_pipeline.producer_acquire(dO_write);
        const int stage = dO_write.stage;
        uint64_t *const full = &shared.dO_pipeline.full[stage];
        ptx::mbarrier_arrive_expect_tx(full, sizeof(shared.dO[0]) + sizeof(shared.D[0]));
        ptx::tma_load(shared.dO[stage], &maps.dO, full, 0, tile.row_tile * Br, 0, tile.head, keys.batch);
        const float *const statistics = workspace.statistics + keys.number(params, tile) * 2 * Br;
        ptx::bulk_load(shared.D[stage], statistics + Br, sizeof(shared.D[0]), full);
        dO_write.advance();
    }

    __device__ void run(const KeyTile<Br> &keys) {
        load_keys(keys);
        for (QueryTile tile = keys.begin(); keys.contains(tile); keys.advance(tile)) {
            load_Q(keys, tile);
            load_dO(keys, tile);
        }
    }
};

// ---- products ----

// A matrix descriptor counts addresses in units of 16 bytes: adding this moves it on by `bytes`.
__device__ constexpr uint64_t descriptor_offset(uint32_t bytes) {
    return bytes / 16;
}

// One consumer warpgroup's matrix products. It knows the position in the queues of Q and dO and how wgmma finds the
// tiles. The register arrays belong to the kernel function and are passed in. Between the issue of a product and the
// wait for it, the code must not touch the product's registers.
template <typename T, int d_head, int Br>
struct Mainloop {
    static constexpr int tile_bytes = Br * d_head * sizeof(T);  // of Q or dO
    static constexpr int columns = dQ_columns<d_head, Br>;      // of the warpgroup's part of dQ transposed

    SharedStorage<T, d_head, Br> &shared;
    const int warp, lane;
    const uint64_t K_descriptor, V_descriptor;   // the warpgroup's 64 keys
    const uint64_t K_transposed_descriptor;      // all keys, the warpgroup's columns of dQ
    const uint64_t Q_descriptor, dO_descriptor;  // buffer 0
    const uint64_t dS_descriptor;                // the queries of the warpgroup's part of dQ
    const uint32_t dS_address;                   // where this lane stores its row of dS
    PipelineState<stages> read;                  // of Q and of dO

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
          dS_descriptor(
              ptx::matrix_descriptor(shared.dS + (d_head == 128 ? 0 : warp / 4 * columns * panel), 0, 8 * row_bytes)),
          dS_address(dS_row_address(shared.dS, warp, lane)) {}

    // The transposing stmatrix takes the rows of dS, which are queries, from lanes 0 to 7 and 8 to 15 for the warp's
    // first and second 8 keys of 8 queries, and from lanes 16 to 31 for those of the next 8 queries. The 16-byte chunk
    // c of row r is at position c ^ (r % 8).
    __device__ static uint32_t dS_row_address(T *dS, int warp, int lane) {
        const int row = lane / 16 * 8 + lane % 8;
        const int chunk = (warp % 4 * 2 + lane / 8 % 2) ^ row % 8;
        return ptx::shared_address(dS + (warp / 4 * Br + row) * panel + chunk * 8);
    }

    // S transposed = K Qᵀ, and dP transposed = V dOᵀ: [64 keys, Br queries], the sum over d_head in steps of 16
    // columns: 32 bytes of a row, a quarter of a panel.
    __device__ __forceinline__ void issue_scores(float (&X)[Br / 2], uint64_t keys, uint64_t queries) {
        keys = ptx::opaque(keys);
        queries = ptx::opaque(queries);
        ptx::wgmma_fence();
        ptx::wgmma_ss_first<T, Br>(X, keys, queries);
#pragma unroll
        for (int k = 1; k < d_head / 16; ++k) {
            const uint64_t step = descriptor_offset(k % 4 * 32);
            const uint64_t keys_step = keys + descriptor_offset(k / 4 * Bc * row_bytes) + step;
            const uint64_t queries_step = queries + descriptor_offset(k / 4 * Br * row_bytes) + step;
            ptx::wgmma_ss<T, Br>(X, keys_step, queries_step, true);
        }
        ptx::wgmma_commit();
    }
    __device__ __forceinline__ void issue_S(float (&S)[Br / 2]) {
        shared.Q_pipeline.consumer_wait(read);
        issue_scores(S, K_descriptor, Q_descriptor + descriptor_offset(read.stage * tile_bytes));
    }
    __device__ __forceinline__ void issue_dP(float (&dP)[Br / 2]) {
        shared.dO_pipeline.consumer_wait(read);
        issue_scores(dP, V_descriptor, dO_descriptor + descriptor_offset(read.stage * tile_bytes));
    }

    // dV += Pᵀ dO, and dK += dSᵀ Q: [64 keys, d_head]. One step is 16 queries: 16 rows of the tile.
    __device__ __forceinline__ void issue_gradient(float (&X)[d_head / 2], uint32_t (&A)[Br / 16][4],
                                                   uint64_t queries) {
        queries = ptx::opaque(queries);
        ptx::wgmma_fence(X, A);
#pragma unroll
        for (int k = 0; k < Br / 16; ++k)
            ptx::wgmma_rs<T, d_head>(X, A[k], queries + descriptor_offset(k * 16 * row_bytes), true);
        ptx::wgmma_commit();
    }
    __device__ __forceinline__ void issue_dV(float (&dV)[d_head / 2], uint32_t (&P)[Br / 16][4]) {
        issue_gradient(dV, P, dO_descriptor + descriptor_offset(read.stage * tile_bytes));
    }
    __device__ __forceinline__ void issue_dK(float (&dK)[d_head / 2], uint32_t (&dS)[Br / 16][4]) {
        issue_gradient(dK, dS, Q_descriptor + descriptor_offset(read.stage * tile_bytes));
    }

    // dQ transposed = Kᵀ dSᵀ, the warpgroup's part over the keys of both: [64 columns of dQ, dQ_columns queries]. One
    // step is 16 keys: 16 rows of K, and 32 bytes of dS's rows.
    __device__ __forceinline__ void issue_dQ(float (&dQ)[columns / 2]) {
        const uint64_t K_columns = ptx::opaque(K_transposed_descriptor);
        const uint64_t dS_tile = ptx::opaque(dS_descriptor);
        ptx::wgmma_fence();
        ptx::wgmma_ss_transposed_first<T, columns>(dQ, K_columns, dS_tile);
#pragma unroll
        for (int k = 1; k < Bc / 16; ++k) {
            const uint64_t K_rows = K_columns + descriptor_offset(k * 16 * row_bytes);
            const uint64_t dS_step = dS_tile + descriptor_offset(k / 4 * Br * row_bytes + k % 4 * 32);
            ptx::wgmma_ss_transposed<T, columns>(dQ, K_rows, dS_step);
        }
        ptx::wgmma_commit();
    }

    // Stores the warp's dS where wgmma reads it for dQ: transposed, so that a row is a query.
    __device__ __forceinline__ void store_dS(const uint32_t (&dS)[Br / 16][4]) {
#pragma unroll
        for (int q = 0; q < Br / 16; ++q) ptx::stmatrix_x4_trans(dS_address + q * 16 * row_bytes, dS[q]);
        ptx::fence_proxy_async();  // makes this lane's writes visible to wgmma
    }

    __device__ void release() {
        if (lane == 0) ptx::mbarrier_arrive(&shared.Q_pipeline.empty[read.stage]);
        shared.dO_pipeline.consumer_release(read, lane);
    }
};

// ---- mask, P and dS ----

// Sets S to -infinity where a query must not see a key. warp_key is the first of the warp's 16 keys. If the tile's
// first query sees the last of them, every query sees them all, and there is nothing to do.
template <int Br>
__device__ __forceinline__ void mask(float (&S)[Br / 2], int warp_key, int first_query, int causal_offset, int Nkv,
                                     int lane) {
    if (warp_key + 16 <= min(Nkv, first_query + 1 + causal_offset)) return;
#pragma unroll
    for (int x = 0; x < Br / 2; ++x) {
        const int key = warp_key + accumulator_row(x, lane);
        const int query = first_query + accumulator_column(x, lane);
        if (key >= min(Nkv, query + 1 + causal_offset)) S[x] = -INFINITY;
    }
}

// P = 2^(scale_log2 S - log_sum_exp) in fp32 in the place of S, and rounded as wgmma's operand A. The log-sum-exp of a
// row that sees no key, or is past the end of Q, is infinity: its P is 0.
template <typename T, int Br>
__device__ __forceinline__ void exponentiate(float (&S)[Br / 2], uint32_t (&P)[Br / 16][4], const float *log_sum_exp,
                                             float scale_log2, int lane) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
        float row[4];
        read_statistics(row, log_sum_exp, q, lane);
#pragma unroll
        for (int x = 0; x < 8; ++x) S[8 * q + x] = ptx::exp2(fmaf(S[8 * q + x], scale_log2, -row[x / 4 * 2 + x % 2]));
#pragma unroll
        for (int i = 0; i < 4; ++i) P[q][i] = pack<T>(S[8 * q + 2 * i], S[8 * q + 2 * i + 1]);
    }
}

// dS = P (dP - D), rounded as wgmma's operand A.
template <typename T, int Br>
__device__ __forceinline__ void differentiate(const float (&P)[Br / 2], float (&dP)[Br / 2], uint32_t (&dS)[Br / 16][4],
                                              const float *D, int lane) {
#pragma unroll
    for (int q = 0; q < Br / 16; ++q) {
        float row[4];
        read_statistics(row, D, q, lane);
#pragma unroll
        for (int x = 0; x < 8; ++x) dP[8 * q + x] = P[8 * q + x] * (dP[8 * q + x] - row[x / 4 * 2 + x % 2]);
#pragma unroll
        for (int i = 0; i < 4; ++i) dS[q][i] = pack<T>(dP[8 * q + 2 * i], dP[8 * q + 2 * i + 1]);
    }
}

// ---- store ----

// Adds the warpgroup's part of a tile's dQ to the sums of all blocks. The sums lie in the order of the registers: a
// warp adds to 512 bytes in a row, without a detour over shared memory. finish_kernel() puts them in order.
template <int accumulators>
__device__ __forceinline__ void add_dQ(const Workspace &workspace, int64_t row_tile, const float (&dQ)[accumulators]) {
    const int64_t part = row_tile * consumers + threadIdx.x / 128;
    float4 *const sums = workspace.dQ + part * (accumulators / 4 * 128) + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < accumulators / 4; ++i)
        ptx::reduce_add(sums + i * 128, dQ[4 * i], dQ[4 * i + 1], dQ[4 * i + 2], dQ[4 * i + 3]);
}

// ---- kernel ----

// grid: (tiles of keys, Hkv, B)
template <typename T, int d_head, int Br>
__global__ void __launch_bounds__(threads, 1)
    backward_kernel(const FlashBackwardParams params, const __grid_constant__ BackwardMaps maps,
                    const Workspace workspace) {
    constexpr int consumer_barrier = 1;
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, Br> *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;
    const KeyTile<Br> keys(params, blockIdx.x, blockIdx.y, blockIdx.z);

    if (threadIdx.x == 0) {
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        shared.Q_pipeline.init(4 * consumers);
        shared.dO_pipeline.init(4 * consumers);
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
    float S[Br / 2], dP[Br / 2];             // transposed [64, Br] per warpgroup; S becomes P
    uint32_t P[Br / 16][4], dS[Br / 16][4];  // transposed [64, Br] per warpgroup
    float dQ[dQ_columns<d_head, Br> / 2];    // transposed [64, dQ_columns] per warpgroup
    float dK[d_head / 2], dV[d_head / 2];    // [64, d_head] per warpgroup
#pragma unroll
    for (int x = 0; x < d_head / 2; ++x) {
        dK[x] = 0.0f;
        dV[x] = 0.0f;
    }

    shared.K_pipeline.consumer_wait({});
    shared.V_pipeline.consumer_wait({});
    for (QueryTile tile = keys.begin(); keys.contains(tile); keys.advance(tile)) {
        mainloop.issue_S(S);
        mainloop.issue_dP(dP);
        ptx::wgmma_wait<0>(S, dP);
        mask<Br>(S, warp_key, tile.row_tile * Br, keys.causal_offset, params.Nkv, lane);
        exponentiate<T, Br>(S, P, shared.log_sum_exp[mainloop.read.stage], params.scale * 1.44269504f, lane);
        differentiate<T, Br>(S, dP, dS, shared.D[mainloop.read.stage], lane);
        mainloop.issue_dV(dV, P);

        mainloop.store_dS(dS);
        ptx::barrier_sync(consumer_barrier, 128 * consumers);  // dQ needs the dS of both warpgroups
        mainloop.issue_dQ(dQ);
        mainloop.issue_dK(dK, dS);
        ptx::wgmma_wait<0>(dQ, dK, dV, dS, P);
        mainloop.release();
        ptx::barrier_sync(consumer_barrier, 128 * consumers);  // both have read dS before either overwrites it
        add_dQ(workspace, keys.number(params, tile), dQ);
    }

    const int count = params.Nkv - warp_key;  // rows from here to the end of dK and dV
    store_rows<T, d_head>(first_row<T>(params.dK, keys.batch, keys.kv_head, warp_key), params.dK.stride_row, count, dK,
                          params.scale, lane);
    store_rows<T, d_head>(first_row<T>(params.dV, keys.batch, keys.kv_head, warp_key), params.dV.stride_row, count, dV,
                          1.0f, lane);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Backward by wgmma",
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
