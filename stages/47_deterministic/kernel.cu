// Deterministic. The blocks of a head add to a tile of dQ in one order, from the last keys that see it to the first, so
// that every run gives the same bits. Each tile of queries counts the blocks that have added to it. A thread that the
// producer leaves idle waits until the number says that it is its block's turn; another one passes the turn on.
//
// A producer warp loads the tiles of Q and dO. Two consumer warpgroups hold 64 of the block's keys each, with their dK
// and dV as accumulators. They compute S and dP transposed: a row for each key, a column for each query. Only
// dQ = dS K, a sum over the keys of both warpgroups, takes dS from shared memory, a tile late.

#include "backward_mainloop.cuh"
#include "backward_maps.h"
#include "backward_passes.cuh"
#include "gradient_rows.cuh"
#include "key_tile.cuh"
#include "launch_backward.h"
#include "pipeline.cuh"
#include "ptx_backward.cuh"
#include "query_loads.cuh"

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
    Pipeline<dS_stages> dS_pipeline;    // all consumer warps fill a buffer, and all read it
    Pipeline<dS_stages> turn_pipeline;  // a place is filled when it is the unit's turn to add a tile of dQ
    uint64_t dQ_added[dS_stages];       // completes a phase when the additions of a tile are on their way
};

// ---- work ----

// For each row tile: how many units have added to its dQ. They lie behind the counter of units.
__host__ __device__ inline int *turns_of(const Workspace &workspace) {
    return workspace.counter + 4;
}

// Hands out the units in the order in which blocks ask for them. Heads come in sections whose tensors fit in L2
// together. Of a section the last keys of all heads come first. A unit adds to dQ after those of later keys, so it
// waits only for what has been handed out before it: some block is at work on that, however many there are.
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
        return {key_tiles - 1 - place / width, head % kv_heads, head / kv_heads};
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

// ---- whose turn it is ----

// What each of the two threads below does for every tile to which the block adds, in the order of the additions.
template <int Br, typename Shared, typename Step>
__device__ void for_each_turn(Shared &shared, const FlashBackwardParams &params, int *turns, Step step) {
    PipelineState<unit_stages> unit_read;
    PipelineState<dS_stages> place;
    while (true) {
        shared.unit_pipeline.consumer_wait(unit_read);
        const Unit unit = shared.units[unit_read.stage];
        if (!unit.valid()) break;
        shared.unit_pipeline.consumer_release(unit_read, 0);
        const KeyTile<Br, Bc> keys(params, unit.key_tile, unit.kv_head, unit.batch);
        for (QueryTile tile = keys.begin(); keys.contains(tile); keys.advance(tile)) {
            // The last key tile that sees these queries is the first to add.
            const int last_key = min(params.Nkv, (tile.row_tile + 1) * Br + keys.causal_offset) - 1;
            step(shared, turns + keys.number(params, tile), last_key / Bc - unit.key_tile, place);
            place.advance();
        }
    }
}

// Lets the consumers add once `earlier` units have.
struct WaitForTurn {
    template <typename Shared>
    __device__ void operator()(Shared &shared, const int *turn, int earlier, PipelineState<dS_stages> place) {
        shared.turn_pipeline.producer_acquire(place);
        while (ptx::load_relaxed(turn) != earlier) __nanosleep(20);
        ptx::load_acquire(turn);  // the consumers' additions come after those that this number tells of
        ptx::mbarrier_arrive(&shared.turn_pipeline.full[place.stage]);
    }
};

// Passes the turn on. The release waits until the additions have arrived in L2, which takes long: the consumers do not
// wait for it.
struct PassTurn {
    template <typename Shared>
    __device__ void operator()(Shared &shared, int *turn, int, PipelineState<dS_stages> place) {
        ptx::mbarrier_wait(&shared.dQ_added[place.stage], place.phase);
        ptx::mbarrier_arrive(&shared.turn_pipeline.empty[place.stage]);
        ptx::add_release(turn, 1);
    }
};

// Adds the dQ that mainloop.issue_dQ() has computed when it is the unit's turn.
template <typename T, int d_head, int Br>
__device__ __forceinline__ void add_in_turn(Mainloop<SharedStorage<T, d_head, Br>, T, d_head, Br> &mainloop,
                                            const Workspace &workspace, int row_tile,
                                            const float (&dQ)[dQ_columns<d_head, Br> / 2]) {
    const PipelineState<dS_stages> place = mainloop.dS_read;  // there are as many turns under way as buffers of dS
    mainloop.release_dS();
    mainloop.shared.turn_pipeline.consumer_wait(place);
    add_dQ(workspace, row_tile, dQ);
    __syncwarp();  // every lane's additions are on their way before lane 0 arrives for the warp
    if (mainloop.lane == 0) ptx::mbarrier_arrive(&mainloop.shared.dQ_added[place.stage]);
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
        shared.unit_pipeline.init(4 * consumers + 2);  // the threads that wait and pass on read the units, too
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        shared.Q_pipeline.init(4 * consumers);
        shared.dO_pipeline.init(4 * consumers);
        for (int stage = 0; stage < dS_stages; ++stage) {
            ptx::mbarrier_init(&shared.dS_pipeline.full[stage], 4 * consumers);
            ptx::mbarrier_init(&shared.dS_pipeline.empty[stage], 4 * consumers);
            ptx::mbarrier_init(&shared.dQ_added[stage], 4 * consumers);
        }
        shared.turn_pipeline.init(1);  // the thread that passes the turn on gives a place back
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    // The producer warpgroup gives most of its registers back. One thread loads, one waits for turns, one passes them
    // on.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (lane > 0) return;
        int *const turns = turns_of(workspace);
        const int role = warp - 4 * consumers;
        if (role == 0) Producer<T, d_head, Br>{shared, params, maps, workspace}.run();
        if (role == 1) for_each_turn<Br>(shared, params, turns, WaitForTurn{});
        if (role == 2) for_each_turn<Br>(shared, params, turns, PassTurn{});
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers>();
    Mainloop<SharedStorage<T, d_head, Br>, T, d_head, Br> mainloop(shared, warp, lane);
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
        int previous = keys.number(params, tile);
        for (keys.advance(tile); keys.contains(tile); keys.advance(tile)) {
            compute_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
            mainloop.issue_dQ(dQ);
            mainloop.issue_dK(dK, scores.dS);
            ptx::wgmma_wait<1>(dQ, dV, scores.P);
            mainloop.release_dO();
            add_in_turn<T, d_head, Br>(mainloop, workspace, previous, dQ);  // beside dK
            previous = keys.number(params, tile);
            ptx::wgmma_wait<0>(dK, scores.dS);
            mainloop.release_Q();
        }
        mainloop.issue_dQ(dQ);
        ptx::wgmma_wait<0>(dQ);
        mainloop.release_keys();
        add_in_turn<T, d_head, Br>(mainloop, workspace, previous, dQ);

        const int first = keys.first_key + warp * 16;
        const int count = params.Nkv - first;  // rows from here to the end of dK and dV
        store_rows<T, d_head>(first_row<T>(params.dK, keys.batch, keys.kv_head, first), params.dK.stride_row, count, dK,
                              params.scale, lane);
        store_rows<T, d_head>(first_row<T>(params.dV, keys.batch, keys.kv_head, first), params.dV.stride_row, count, dV,
                              1.0f, lane);
    }
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Deterministic",
                                  .min_compute = 90,
                                  .Br = 64,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .specific = true};  // sm_90a

static size_t turns_bytes(const FlashBackwardParams &params) {
    const int Br = rows_of_tile(params.d_head);
    return (padded_rows(params, Br) / Br + 3) / 4 * 16;  // 16 bytes stay whole
}

static flash::BackwardTraits traits_of(const FlashBackwardParams &params) {
    return {.workspace_bytes = backward_workspace_bytes(params, rows_of_tile(params.d_head)) + turns_bytes(params),
            .deterministic = true};
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
    const cudaError_t error = cudaMemsetAsync(turns_of(workspace), 0, turns_bytes(params), stream);
    if (error != cudaSuccess)
        return flash::fail(FLASH_CUDA_ERROR, "zeros for the turns: %s", cudaGetErrorString(error));
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
