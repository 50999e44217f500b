// No scratch pass. The sums of dQ are rounded and stored by the kernel that makes them: when all blocks have added to a
// head, two warps that the producer leaves idle convert it, while it is still in L2. Consumers without work help them
// at the end. They leave zeros behind for the next call, so that no kernel runs after this one. The one before it
// computes the statistics of the first heads; the two warps compute the others' before there is dQ to convert. Of short
// causal sequences, dQ to which one block alone adds is stored from its registers. Without a mask the last units are
// cut, so that all blocks end at one time.
//
// A producer warp loads the tiles of Q and dO. Two consumer warpgroups hold 64 of the block's keys each, with their dK
// and dV as accumulators. They compute S and dP transposed: a row for each key, a column for each query. Only
// dQ = dS K, a sum over the keys of both warpgroups, takes dS from shared memory, a tile late.

#include "backward_maps.h"
#include "cut_units.cuh"
#include "gradient_rows.cuh"
#include "launch_backward.h"
#include "launch_decode.h"
#include "pipeline.cuh"
#include "row_statistics.cuh"
#include "unit_tiles.cuh"

constexpr int converters = 2;  // warps that compute statistics and then round dQ

// What one warpgroup has added of a row tile of dQ, as it lies in global memory: the sums of 64 queries and 64 columns.
struct Part {
    float sums[64 * 64];
};

// What TMA loads from, and stores to.
struct Maps : BackwardMaps {
    CUtensorMap dK, dV;
    StatisticsMaps rows;
};

// A block's shared memory. TMA and wgmma want each tile at a multiple of 1,024 bytes.
template <typename T, int d_head, int Br>
struct SharedStorage {
    T K[Bc * d_head], V[Bc * d_head];  // each [d_head / panel][Bc][panel]
    T Q[stages][Br * d_head];          // each [d_head / panel][Br][panel]
    T dO[stages][Br * d_head];         // the same
    T dS[dS_stages][Br * Bc];          // each [Bc / panel][Br][panel]: a row for each query, a panel for each warpgroup
    T rows[4 * consumers][d_head / panel][16][panel];  // each warp's rows of dV, then of dK
    union {
        typename StatisticsWarp<T, d_head, Br>::Buffers rows;
        Part part;
    } rooms[converters];  // where a converting warp computes statistics, and later has its part of dQ
    float log_sum_exp[stages][Br], D[stages][Br];  // in statistics_position's order
    Pipeline<1> K_pipeline, V_pipeline;
    Unit units[unit_stages];
    Piece<d_head> pieces[unit_stages];
    Pipeline<unit_stages> unit_pipeline;
    uint64_t unit_added[unit_stages];  // completes a phase when all of the unit's additions to dQ are on their way
    uint64_t part_full[converters + 4 * consumers], rows_full[2 * converters];
    Pipeline<stages> Q_pipeline, dO_pipeline;
    Pipeline<dS_stages> dS_pipeline;  // all consumer warps fill a buffer, and all read it
};

// ---- counters ----

// The last of the warps that use the counters leaves zeros. The first fence orders this warp's accesses before its
// number; the second orders the zeros after everybody's. lanes: how many of a warp call this.
template <int lanes, int d_head>
__device__ inline void finish_counting(Counters *counters, const Cuts<d_head> &cuts, int lane) {
    constexpr int warps = 2 + converters + 4 * consumers;  // the producer's, the one that tells, and all that convert
    int number = 0;
    if (lane == 0) {
        __threadfence();
        number = atomicAdd(&counters->warps_done, 1);
        __threadfence();
    }
    if constexpr (lanes == 32) {
        number = __shfl_sync(0xffffffff, number, 0);
        __syncwarp();  // orders the other lanes' zeros after lane 0's fence
    }
    if (number != warps * static_cast<int>(gridDim.x) - 1) return;
    for (int head = lane; head < cuts.heads; head += lanes) counters->added()[head] = 0;
    for (int range = lane; range < cuts.ranges; range += lanes) cuts.sums[range].there = 0;
    if (lane > 0) return;
    counters->next_unit = 0;
    counters->next_part = 0;
    counters->next_tile = 0;
    counters->tiles_there = 0;
    atomicExch(&counters->warps_done, 0);
}

// ---- load ----

// The producer's thread. It has few registers, and what it spills in its loop makes the kernel slower. So it keeps two
// counts instead of its places in five queues.
template <typename T, int d_head, int Br, bool cuts_units>
struct Producer {
    SharedStorage<T, d_head, Br> &shared;
    const FlashBackwardParams &params;
    const BackwardMaps &maps;
    const Workspace &workspace;
    UnitQueue<d_head, Br, cuts_units> queue;
    StatisticsGate statistics;
    uint32_t tiles_loaded = 0, units_begun = 0;

    __device__ void load_keys(T (&tile)[Bc * d_head], Pipeline<1> &pipeline, const CUtensorMap &map, const Unit &unit) {
        pipeline.producer_acquire(place<1>(units_begun));
        ptx::mbarrier_arrive_expect_tx(&pipeline.full[0], sizeof(tile));
        ptx::tma_load(tile, &map, &pipeline.full[0], 0, unit.key_tile * Bc, 0, unit.kv_head, unit.batch);
    }

    // Loads the keys, and the tiles of Q and dO one after the other. The consumers read K last of all: the others'
    // places are free before its is.
    __device__ void load(const Unit &unit, const Piece<d_head> &piece) {
        const int group = params.Hq / params.Hkv;
        int left = group * (piece.end - piece.first);
        QueryTile tile = {unit.kv_head * group, piece.first};
        const int last = queue.needs_more() ? 1 : 0;
        bool first = true;
        while (true) {
            if (left == last) queue.take();  // before the last tile is loaded: the answer takes long
            const float *const statistics = statistics_of<Br>(params, workspace, unit.batch, tile);
            const PipelineState<stages> write = place<stages>(tiles_loaded);
            load_queries(shared.Q, shared.log_sum_exp, shared.Q_pipeline, write, maps.Q, statistics, tile, unit.batch);
            if (first) load_keys(shared.V, shared.V_pipeline, maps.V, unit);
            load_queries(shared.dO, shared.D, shared.dO_pipeline, write, maps.dO, statistics + Br, tile, unit.batch);
            if (first) load_keys(shared.K, shared.K_pipeline, maps.K, unit);
            first = false;
            ++tiles_loaded;
            --left;
            if (left == 0) break;
            ++tile.row_tile;
            if (tile.row_tile == piece.end) {
                tile.row_tile = piece.first;
                ++tile.head;
            }
        }
    }

    __device__ void run() {
        queue.take();
        while (true) {
            Piece<d_head> piece;
            const Unit unit = queue.next(params, piece);
            // Tells the consumers which keys come next, or that there is no more work.
            const PipelineState<unit_stages> write = place<unit_stages>(units_begun);
            shared.unit_pipeline.producer_acquire(write);
            shared.units[write.stage] = unit;
            shared.pieces[write.stage] = piece;
            ptx::mbarrier_arrive(&shared.unit_pipeline.full[write.stage]);
            if (!unit.valid()) break;
            // K has no place yet. When it has one, its bytes are in L2.
            ptx::tma_prefetch(&maps.K, 0, unit.key_tile * Bc, 0, unit.kv_head, unit.batch);
            ptx::wait_for_launch_before();  // it computes the first heads' statistics
            statistics.template wait<Br>(params, workspace, queue.cuts, unit);  // of the other heads
            load(unit, piece);
            // The thread that tells of a unit also waits for this one: the copies under way read statistics, which
            // become zeros when the head is complete.
            ptx::mbarrier_arrive(&shared.unit_added[write.stage]);
            ++units_begun;
        }
        finish_counting<1>(reinterpret_cast<Counters *>(workspace.counter), queue.cuts, 0);
    }
};

// ---- dQ of complete heads ----

// One thread tells all blocks when this block has added a unit's dQ. The release waits until the additions have arrived
// in L2, thousands of clocks: so it is done once for a unit, by a thread that has nothing else to do. The consumers
// have no register for the units' numbers: it reads them from the producer's queue.
template <int d_head, typename Shared>
__device__ void tell(Shared &shared, const FlashBackwardParams &params, Counters *counters, const Cuts<d_head> &cuts) {
    PipelineState<unit_stages> unit_read;
    while (true) {
        shared.unit_pipeline.consumer_wait(unit_read);
        const Unit unit = shared.units[unit_read.stage];
        if (!unit.valid()) break;
        const Piece<d_head> piece = shared.pieces[unit_read.stage];
        ptx::mbarrier_wait(&shared.unit_added[unit_read.stage], unit_read.phase);
        shared.unit_pipeline.consumer_release(unit_read, 0);  // first: what follows takes long
        ptx::add_release(counters->added() + unit.batch * params.Hkv + unit.kv_head, piece.weight);
        if (piece.leaves()) ptx::add_release(&piece.sums->there, 1);
    }
    finish_counting<1>(counters, cuts, 0);
}

// A warp that rounds and stores dQ. It takes one part after the other, in the order of the heads.
template <typename T, int d_head, int Br, bool stores_dQ>
struct Converter {
    static constexpr int columns = dQ_columns<d_head, Br>;  // queries of a part
    static_assert(sizeof(Part) == columns * 64 * sizeof(float));

    Part &loaded;
    uint64_t *const full;
    const FlashBackwardParams &params;
    const Workspace &workspace;
    const Cuts<d_head> &cuts;
    const int lane;
    uint32_t phase = 0;

    // Rounds the part's sums, and leaves zeros where they were.
    __device__ void round_part(int part, int row_tile) {
        float4 *const sums = workspace.dQ + int64_t{part} * (columns * 16);
        if (lane == 0) {
            ptx::mbarrier_arrive_expect_tx(full, sizeof(Part));
            ptx::bulk_load(loaded.sums, sums, sizeof(Part), full);
        }
        // A warp of the consumers held 16 columns of dQ, and a lane of it two queries and columns 8 apart. Here a lane
        // takes 8 columns of these queries: a chunk of 16 bytes of a row.
        const int chunk = lane % 4 + lane / 16 * 4, warp = chunk / 2, pair = lane / 4 % 4;
        const int half = part % consumers, head = part / consumers / ((params.Nq + Br - 1) / Br);
        int query = row_tile * Br + (d_head == 128 ? 0 : half * columns) + 2 * pair;
        T *dQ = first_row<T>(params.dQ, head / params.Hq, head % params.Hq, query) +
                (d_head == 128 ? half * panel : 0) + chunk * 8;
        uint32_t address = ptx::shared_address(loaded.sums) + warp * 512 + warp % 2 * 64 + pair * 16 + chunk % 2 * 8;
        ptx::mbarrier_wait(full, phase);
        phase ^= 1;
#pragma unroll 1
        for (int i = 0; i < columns / 8; ++i) {  // 8 queries
            round_queries<T>(params, address, warp % 2, dQ, query);
            address += sizeof(Part) / (columns / 8);
            dQ += 8 * params.dQ.stride_row;
            query += 8;
        }
        __syncwarp();  // every lane has read its sums: they may be overwritten, and lane 0 has seen them arrive
#pragma unroll 4
        for (int i = 0; i < columns / 2; ++i) sums[i * 32 + lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    __device__ void convert(int part) {
        const int row_tile = part / consumers % ((params.Nq + Br - 1) / Br);
        const bool stored = stores_dQ && has_one_unit<Br, Bc>(params, row_tile);
        if (!stored) round_part(part, row_tile);
        if (part % consumers == 0) {  // nobody needs the row tile's statistics any more
            float *const statistics = workspace.statistics + int64_t{part / consumers} * 2 * Br;
            for (int i = lane; i < 2 * Br; i += 32) statistics[i] = 0.0f;
        }
    }

    __device__ void run() {
        Counters *const counters = reinterpret_cast<Counters *>(workspace.counter);
        ptx::wait_for_launch_before();  // it writes what becomes zeros here
        const int head_parts = params.Hq / params.Hkv * ((params.Nq + Br - 1) / Br) * consumers;
        const int units = (params.Nkv + Bc - 1) / Bc * cuts.weight;
        while (true) {
            int part = 0;
            if (lane == 0) part = atomicAdd(&counters->next_part, 1);
            part = __shfl_sync(0xffffffff, part, 0);
            const int head = part / head_parts;
            if (head >= params.B * params.Hkv) break;
            if (lane == 0) {
                const int all = head < cuts.prepared ? units : units + head_parts / consumers;
                const int *const added = counters->added() + head;
                while (ptx::load_relaxed(added) != all) __nanosleep(200);
                ptx::load_acquire(added);      // once: while it waits, it need not empty the L1 cache
                ptx::fence_proxy_async_all();  // the bulk copies see the sums, too
            }
            __syncwarp();
            convert(part);
        }
        __syncwarp();
        finish_counting<32>(counters, cuts, lane);
    }
};

// ---- kernel ----

// grid: as many blocks as multiprocessors, or as units if they are fewer
template <typename T, int d_head, int Br, bool stores_dQ, bool cuts_units>
__global__ void __launch_bounds__(threads, 1)
    backward_kernel(const FlashBackwardParams params, const __grid_constant__ Maps maps, const Workspace workspace,
                    const Cuts<d_head> cuts) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    using Shared = SharedStorage<T, d_head, Br>;
    Shared &shared = *reinterpret_cast<Shared *>(shared_bytes);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that all lanes agree
    const int warpgroup = warp / 4;
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        shared.unit_pipeline.init(4 * consumers + 1);  // the thread that tells reads the units, too
        shared.K_pipeline.init(4 * consumers);
        shared.V_pipeline.init(4 * consumers);
        shared.Q_pipeline.init(4 * consumers);
        shared.dO_pipeline.init(4 * consumers);
        for (int stage = 0; stage < dS_stages; ++stage) {
            ptx::mbarrier_init(&shared.dS_pipeline.full[stage], 4 * consumers);
            ptx::mbarrier_init(&shared.dS_pipeline.empty[stage], 4 * consumers);
        }
        for (int stage = 0; stage < unit_stages; ++stage)
            ptx::mbarrier_init(&shared.unit_added[stage], 4 * consumers + 1);  // the producer arrives, too
        for (uint64_t &full : shared.part_full) ptx::mbarrier_init(&full, 1);
        for (uint64_t &full : shared.rows_full) ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();  // no thread may wait at a barrier before it is initialised

    using Converting = Converter<T, d_head, Br, stores_dQ>;
    // The producer warpgroup gives most of its registers back. One thread loads, one tells, two warps convert.
    if (warpgroup == consumers) {
        ptx::setmaxnreg_dec<producer_registers>();
        const int role = warp - 4 * consumers;
        if (role == 0 && lane == 0)
            Producer<T, d_head, Br, cuts_units>{shared, params, maps, workspace, {cuts, workspace.counter}}.run();
        if (role == 1 && lane == 0) tell<d_head>(shared, params, reinterpret_cast<Counters *>(workspace.counter), cuts);
        if (role < 2) return;
        auto &room = shared.rooms[role - 2];
        uint64_t *const full = &shared.rows_full[2 * (role - 2)];
        StatisticsWarp<T, d_head, Br>{room.rows, full, params, maps.rows, workspace, cuts, lane}.run();
        Converting{room.part, &shared.part_full[role - 2], params, workspace, cuts, lane}.run();
        return;
    }

    // The consumer warpgroups take these registers.
    ptx::setmaxnreg_inc<consumer_registers>();
    constexpr bool late_dV = d_head == 128 && !stores_dQ;  // dV behind dQ: no gain at d_head 64, nor in short loops
    Mainloop<Shared, T, d_head, Br> mainloop(shared, warp, lane);
    PipelineState<1> V_read;               // apart from K's: V is given back earlier
    Scores<Br> scores;                     // transposed [64, Br] per warpgroup
    float dQ[dQ_columns<d_head, Br> / 2];  // transposed [64, dQ_columns] per warpgroup
    float dK[d_head / 2], dV[d_head / 2];  // [64, d_head] per warpgroup

    while (true) {
        const Unit unit = mainloop.wait_unit();
        if (!unit.valid()) break;
        PieceKeys<Br> keys(params, unit.key_tile, unit.kv_head, unit.batch);
        const Piece<d_head> &piece = shared.pieces[mainloop.unit_read.stage ^ 1];  // stays until the unit is told
        if (cuts_units) keys.narrow(__shfl_sync(0xffffffff, piece.first, 0), __shfl_sync(0xffffffff, piece.end, 0));
#pragma unroll
        for (int x = 0; x < d_head / 2; ++x) {
            dK[x] = 0.0f;
            dV[x] = 0.0f;
        }
        shared.V_pipeline.consumer_wait(V_read);

        // There is no dQ to compute beside the first tile's dK: each dQ is that of the tile before.
        QueryTile tile = keys.begin();
        derive_first_dS(mainloop, scores, dV, params, keys, tile.row_tile * Br);
        mainloop.write_dS(scores.dS);
        mainloop.issue_dK(dK, scores.dS);
        mainloop.tell_dS();
        ptx::wgmma_wait<0>(dK, dV, scores.dS, scores.P);
        mainloop.release_dO();
        mainloop.release_Q();
        int previous = keys.number(params, tile);
        bool alone = stores_dQ && has_one_unit<Br, Bc>(params, tile.row_tile);
        keys.advance(tile);
        if (!keys.contains(tile) && lane == 0) ptx::mbarrier_arrive(&shared.V_pipeline.empty[0]);
        while (keys.contains(tile)) {
            derive_next_dS<late_dV>(mainloop, scores, dV, params, keys, tile.row_tile * Br);
            mainloop.write_dS(scores.dS);
            const QueryTile computed = tile;
            keys.advance(tile);
            if (!keys.contains(tile) && lane == 0) ptx::mbarrier_arrive(&shared.V_pipeline.empty[0]);  // dP is done
            begin_gradients<late_dV>(mainloop, scores, dQ, dK, dV);
            if (alone)  // beside dK, and dV if that is late
                store_dQ<T, d_head, Br>(params, previous, dQ, warp, lane);
            else
                add_dQ(workspace, previous, dQ);
            previous = keys.number(params, computed);
            alone = stores_dQ && has_one_unit<Br, Bc>(params, computed.row_tile);
            complete_gradients<late_dV>(mainloop, scores, dK, dV);
        }
        const int taken = cuts_units ? __shfl_sync(0xffffffff, piece.taken, 0) : 0;
        mainloop.issue_dQ(dQ);
        const int first = keys.first_key + warp * 16;
        merge_sums<0>(dV, piece.sums, taken);
        if (taken >= 0)
            send_rows(maps.dV, shared.rows[warp], dV, 1.0f, first, keys.kv_head, keys.batch, lane);  // beside dQ
        ptx::wgmma_wait<0>(dQ);
        mainloop.release_dS();
        shared.K_pipeline.consumer_release(mainloop.keys_read, lane);
        V_read.advance();  // V is free since its last product
        // Before the additions: what follows them into shared memory waits for them.
        merge_sums<1>(dK, piece.sums, taken);
        if (taken >= 0) send_rows(maps.dK, shared.rows[warp], dK, params.scale, first, keys.kv_head, keys.batch, lane);
        if (alone)
            store_dQ<T, d_head, Br>(params, previous, dQ, warp, lane);
        else
            add_dQ(workspace, previous, dQ);
        __syncwarp();  // every lane's additions are on their way before lane 0 arrives for the warp
        if (lane == 0) ptx::mbarrier_arrive(&shared.unit_added[mainloop.unit_read.stage ^ 1]);  // the unit's
    }
    if (lane == 0) ptx::tma_store_wait_read<0>();  // the warp's rows are read before anything else comes there

    // When no unit is left, the consumers convert, too. Their parts lie where the tiles lay, once both warpgroups have
    // read these.
    static_assert(4 * consumers * sizeof(Part) <= offsetof(Shared, rooms));
    ptx::barrier_sync(1, 128 * consumers);
    const int thread = ptx::thread_number();
    Part &loaded = reinterpret_cast<Part *>(&shared)[thread / 32];
    Converting{loaded, &shared.part_full[converters + thread / 32], params, workspace, cuts, thread % 32}.run();
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "No scratch pass",
                                  .min_compute = 90,
                                  .Br = 64,
                                  .Bc = Bc,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .positive_scale = true,
                                  .specific = true};  // sm_90a

static flash::BackwardTraits traits_of(const FlashBackwardParams &params) {
    const size_t bytes = params.d_head == 64 ? Plan<64>(params).workspace_bytes : Plan<128>(params).workspace_bytes;
    return {.workspace_bytes = bytes, .zeroed_workspace = true};
}

template <typename T, int d_head>
static auto main_pass(const FlashBackwardParams &params) {
    constexpr int Br = rows_of_tile(d_head);
    const Cuts<d_head> cuts = Plan<d_head>(params).cuts;
    const bool stores_dQ = params.causal && params.Nkv <= 4 * Bc;  // the branch in the loop pays where loops are short
    return flash::TypedKernel<FlashBackwardParams, Maps, Workspace, Cuts<d_head>>{
        .entry = stores_dQ          ? backward_kernel<T, d_head, Br, true, false>
                 : cuts.ranges == 0 ? backward_kernel<T, d_head, Br, false, false>
                                    : backward_kernel<T, d_head, Br, false, true>,
        .grid = cuts.ranges > 0 ? dim3(cuts.ranges) : flash::persistent(cuts.units),
        .threads = threads,
        .shared_bytes = sizeof(SharedStorage<T, d_head, Br>)};
}

template <typename T, int d_head>
static FlashStatus run(const FlashBackwardParams &params, cudaStream_t stream) {
    constexpr int Br = rows_of_tile(d_head);
    const flash::TensorShape keys{params.B, params.Hkv, params.Nkv, params.d_head, params.dtype};
    Maps maps;
    FlashStatus status = make_backward_maps(params, Br, Bc, maps);
    if (status == FLASH_OK) status = flash::make_tensor_map("dK", params.dK, keys, 16, maps.dK);
    if (status == FLASH_OK) status = flash::make_tensor_map("dV", params.dV, keys, 16, maps.dV);
    if (status == FLASH_OK) status = make_statistics_maps<T, d_head, Br>(params, maps.rows);
    if (status != FLASH_OK) return status;
    const Workspace workspace = workspace_of<Br>(params);
    const Cuts<d_head> cuts = Plan<d_head>(params).cuts;
    status = launch_first_statistics<T, d_head, Br>(params, workspace, cuts, stream);
    if (status != FLASH_OK) return status;
    return flash::launch_early(main_pass<T, d_head>(params), stream, params, maps, workspace, cuts);
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
