// Paged KV. Sequences of unequal length, whose keys and values lie in pages anywhere in memory. Stage 54 shares the
// cache's room equally, so blocks with short sequences have little to do, and a thread looks up a page when it asks for
// it: the copy waits for the block table. Here the blocks share the keys that there are. A sequence is cut into whole
// shares and a rest. Each block takes one of these parts, the longest rests among them; then some take one of the short
// rests, too, and ask for its first keys before they store the part that they have. Each lane looks up another unit: a
// warp knows where its next 32 units are while it asks the block table for the 32 after them. Where a page is smaller
// than a unit, the unit comes in several boxes.
//
// The launch before may write lengths and table. A block reads them before that launch is over, and once more after it.

#include "decode_heads.cuh"
#include "decode_maps.h"
#include "decode_parts.cuh"
#include "decode_plan.cuh"
#include "decode_unit.cuh"
#include "launch_decode.h"
#include "ptx_backward.cuh"  // load_relaxed()

// ---- parts ----

// What a block works on: some units of a head, and which of the head's parts they are.
struct Part {
    Head head;
    int begin, end;     // the units
    int number, count;  // of the head's parts; count 0: there is no part, and it has no units
    int first_slot;     // of the head's parts
};

// As memory has it: a length that is not written yet may be any number.
__device__ int stored_length(const FlashDecodeParams &params, int batch) {
    return params.lengths && batch < params.B ? ptx::load_relaxed(params.lengths + batch) : params.Nmax;
}

__device__ int length_of(const FlashDecodeParams &params, int stored) {
    return min(max(stored, 0), params.Nmax);
}

// Of a head. A sequence without keys has a unit, too, of which nothing is loaded: a block has to write its O.
__device__ int units_of(int length) {
    return max(1, (length + unit - 1) / unit);
}

// The sums of a number of each lane from lane 0 to its own.
__device__ int sums_up_to(int x) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(0xffffffff, x, step);
        if (threadIdx.x % 32 >= step) x += before;
    }
    return x;
}

// Of 32 sequences each lane knows one, and how it is divided into parts.
struct Row {
    int length;
    int whole, upto;  // parts that have a whole share; with those of the lanes before
    int rank;         // of its rest: how many lanes have a longer one
    unsigned rests;   // the lanes that have one
};

constexpr int kept = 4;  // rows of 32 sequences whose lengths a warp keeps

// What a warp knows of all sequences.
struct Lengths {
    int stored[kept];  // of each row the lane's
    int most;          // units of a part
    Row row;           // the first one

    // The lane's in the row that begins with sequence `first`.
    __device__ int of_row(const FlashDecodeParams &params, int first) const {
#pragma unroll
        for (int i = 0; i < kept; ++i)
            if (first == i * 32) return stored[i];
        return stored_length(params, first + threadIdx.x % 32);
    }
};

__device__ Row divide_row(const FlashDecodeParams &params, const Lengths &lengths, int first) {
    const int lane = threadIdx.x % 32;
    Row row{.length = length_of(params, lengths.of_row(params, first))};
    const int units = first + lane < params.B ? units_of(row.length) : 0;
    row.whole = units / lengths.most;
    row.upto = sums_up_to(row.whole);
    const int rest = units % lengths.most, place = rest * 32 + 31 - lane;
    row.rests = __ballot_sync(0xffffffff, rest > 0);
#pragma unroll
    for (int other = 0; other < 32; ++other) row.rank += __shfl_sync(0xffffffff, place, other) > place;
    return row;
}

// A part has the share of a block at most: rounded up, if it is short, so that each warp has as many units.
__device__ Lengths read_lengths(const FlashDecodeParams &params, int warps) {
    const int lane = threadIdx.x % 32;
    Lengths lengths;
#pragma unroll
    for (int i = 0; i < kept; ++i) lengths.stored[i] = stored_length(params, i * 32 + lane);
    int units = 0;
    for (int first = 0; first < params.B; first += 32)
        if (first + lane < params.B) units += units_of(length_of(params, lengths.of_row(params, first)));
    units = __reduce_add_sync(0xffffffff, units);
    constexpr int long_share = 256;
    lengths.most = (units + gridDim.z - 1) / gridDim.z;
    if (lengths.most < long_share) lengths.most = (lengths.most + warps - 1) / warps * warps;
    lengths.row = divide_row(params, lengths, 0);
    return lengths;
}

// The parts of 32 sequences at a time stand in a row: whole shares first, then the rests, the longest first. Each warp
// finds part `number` by itself. If there are fewer, count stays 0.
__device__ void find_part(Part &part, const FlashDecodeParams &params, const Lengths &lengths, int number) {
    int slots = 0;  // of the sequences before these
    for (int first = 0; first < params.B; first += 32) {
        const Row row = first == 0 ? lengths.row : divide_row(params, lengths, first);
        const int all = __shfl_sync(0xffffffff, row.upto, 31);
        const bool has_rest = row.rests >> threadIdx.x % 32 & 1;
        const bool is_own = number < all ? row.upto - row.whole <= number && number < row.upto
                                         : has_rest && row.rank == number - all;  // the lane's sequence has the part
        if (const unsigned owner = __ballot_sync(0xffffffff, is_own)) {
            const int from = __ffs(owner) - 1, before = __shfl_sync(0xffffffff, row.upto - row.whole, from);
            part.head.batch = first + from;
            part.head.length = __shfl_sync(0xffffffff, row.length, from);
            part.count = __shfl_sync(0xffffffff, row.whole + has_rest, from);
            part.number = number < all ? number - before : part.count - 1;
            part.first_slot = slots + before + __popc(row.rests & ((1u << from) - 1));
            return;
        }
        number -= all + __popc(row.rests);
        slots += all + __popc(row.rests);
    }
}

// The rest of what a block knows of its head: the grid's other dimensions are the heads.
__device__ void complete(Head &head, const FlashDecodeParams &params, int rows_each) {
    head.kv_head = blockIdx.y;
    head.number = (head.batch * params.Hkv + head.kv_head) * gridDim.x + blockIdx.x;
    head.first_row = blockIdx.x * rows_each;
    head.rows = min(params.Hq / params.Hkv * params.Nq - head.first_row, rows_each);
}

// The number of a block's part in a round. In every second one the blocks take them in reverse, so that a block that
// had a long part gets a short one.
__device__ int part_of_round(int round) {
    return round * gridDim.z + (round % 2 == 0 ? blockIdx.z : gridDim.z - 1 - blockIdx.z);
}

__device__ Part choose_part(const FlashDecodeParams &params, const Lengths &lengths, int round, int rows_each) {
    Part part{.count = 0};
    find_part(part, params, lengths, part_of_round(round));
    complete(part.head, params, rows_each);
    part.begin = part.number * lengths.most;
    part.end = part.count > 0 ? min(part.begin + lengths.most, units_of(part.head.length)) : 0;
    return part;
}

// The block's first two parts. It begins with the second one if that is the last part of a divided head, and the first
// one is not. Then it is there when the blocks of the other parts come to their ends, and these need not wait for it.
__device__ void choose_first(Part &part, Part &next_part, const FlashDecodeParams &params, const Lengths &lengths,
                             int rows_each) {
#pragma unroll 1  // the code is there once: a launch has less to fetch
    for (int round = 0; round < 2; ++round) {
        part = next_part;
        next_part = choose_part(params, lengths, round, rows_each);
    }
    const auto is_rest = [](const Part &one) { return one.count > 1 && one.number == one.count - 1; };
    if (!is_rest(next_part) || is_rest(part)) return;
    const Part other = part;
    part = next_part;
    next_part = other;
}

// ---- load ----

// Where a unit lies: its boxes of `box` rows.
template <int box>
struct Place {
    bool has_keys;
    int block[unit / box], row[unit / box];  // the page or the sequence, and the box's first row there
};

// Brings a unit of K, or of V, into a buffer.
template <int box, typename T, int elements>
__device__ void load(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map, const Place<box> &place) {
    if (!place.has_keys || threadIdx.x % 32 != 0) return;
    ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
#pragma unroll
    for (int i = 0; i < unit / box; ++i)
        ptx::tma_load_once(buffer + i * box * (elements / unit), &map, full, 0, place.row[i], 0, blockIdx.y,
                           place.block[i]);
}

// The units of a warp: of the block's part every `warps`-th. Lane i looks up number i of 32.
template <int box>
struct UnitList {
    int number;               // of the head's units: the lane's
    Place<box> now, further;  // the lane's unit in the 32 from which the warp asks, and in those after them

    __device__ Place<box> find(const FlashDecodeParams &params, const Part &part) const {
        const Head &head = part.head;
        const int key = number * unit;
        Place<box> place;
        place.has_keys = number < part.end && key < head.length;
#pragma unroll
        for (int i = 0; i < unit / box; ++i) {
            // A box without keys is the first one once more: its rows are masked, and the unit has all its bytes.
            const int first = key + i * box < head.length ? key + i * box : key;
            place.block[i] = head.batch;
            place.row[i] = first;
            if (params.block_table && place.has_keys) {
                const int page = static_cast<unsigned>(first) / static_cast<unsigned>(params.page_size);
                place.block[i] = ptx::load_relaxed(params.block_table + int64_t{head.batch} * params.max_pages + page);
                place.row[i] = first - page * params.page_size;
            }
        }
        return place;
    }

    // Begins with a part.
    __device__ void begin(const FlashDecodeParams &params, const Part &part, int warps) {
        number = part.begin + threadIdx.x / 32 + threadIdx.x % 32 * warps;
        now = find(params, part);
    }

    // Looks up the 32 units further on.
    __device__ void look_further(const FlashDecodeParams &params, const Part &part, int warps) {
        number += 32 * warps;
        further = find(params, part);
    }

    // The warp's unit number `step`; to be called by the whole warp.
    __device__ Place<box> at(int step) const {
        const int from = step % 32;  // the lane that knows where it is
        Place<box> place;
        place.has_keys = __shfl_sync(0xffffffff, now.has_keys, from);
#pragma unroll
        for (int i = 0; i < unit / box; ++i) {
            place.block[i] = __shfl_sync(0xffffffff, now.block[i], from);
            place.row[i] = __shfl_sync(0xffffffff, now.row[i], from);
        }
        return place;
    }
};

// ---- store ----

// The end of a part: stores O, or leaves the part in its slot, and if it is the last one of a head, stores O of all its
// parts. It is if has_others. In whatever order the blocks come, the same bits are stored.
template <typename T, int d_head, int row_tiles, int warps>
__device__ void finish(SharedStorage<T, d_head, row_tiles, warps> &shared, const FlashDecodeParams &params,
                       const Part &part, const Parts<d_head, row_tiles> &parts, int64_t first_slot, bool has_others) {
    if (part.count > 1 && !has_others) {
        store_part(shared.results, parts, first_slot + part.number, part.head.rows);
        if (!is_last_block(shared.last_block, parts.arrived[part.head.number], part.count)) return;
    }
    const auto merge = [&shared, &part, &parts, first_slot](int row, int column) {
        const RowPiece own = merge_warps(shared.results, row, column);
        return part.count == 1 ? own : merge_parts(parts, first_slot, part.number, part.count, own, row, column);
    };
    store_O<T, d_head, 32 * warps>(params, part.head, merge);
}

// ---- kernel ----

// grid: (blocks that share a head's rows of Q, Hkv, blocks that share the parts of a head in all sequences). box: rows
// of a copy.
template <typename T, int d_head, int row_tiles, int warps, int box>
__global__ void __launch_bounds__(32 * warps, 1)
    paged_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, row_tiles, warps> *>(shared_bytes);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Buffers<T, d_head> &own = shared.buffers[warp];
    uint64_t *const K_full = &shared.K_full[warp], *const V_full = &shared.V_full[warp];

    // This needs nothing from the launch before.
    if (lane == 0) {
        ptx::mbarrier_init(K_full, 1);
        ptx::mbarrier_init(V_full, 1);
        ptx::fence_mbarrier_init();
        ptx::prefetch_tensor_map(&maps.K);
        ptx::prefetch_tensor_map(&maps.V);
    }
    constexpr int rows_each = row_tiles * tile;
    if (warp == 0)  // Q of some sequences: together the blocks bring all of it into L2
        for (int batch = blockIdx.z; batch < params.B; batch += gridDim.z) {
            Head some{.batch = batch};
            complete(some, params, rows_each);
            prefetch_Q<T, d_head>(params, some);
        }
    __syncwarp();  // the warp's barriers are there for all of its lanes
    ptx::let_next_launch_begin();

    // A guess: the warp finds its first unit before the launch before is over, which may write lengths and table. Once
    // it is over, the warp loads these numbers again: before the first copies, after which they would arrive. Then it
    // compares them. If the guess was wrong, it begins anew. 16 warps are done earlier if they load Q before the
    // copies.
    uint32_t phase = 0;
    Part part, next_part{};
    UnitList<box> units, next_units;
    Lengths lengths;
    WarpState<d_head, row_tiles> state;
    for (bool guess = params.B <= 32 * kept;; guess = false) {
        if (!guess) ptx::wait_for_launch_before();
        lengths = read_lengths(params, warps);
        choose_first(part, next_part, params, lengths, rows_each);
        units.begin(params, part, warps);
        const Place<box> first = units.at(0);
        if (guess) ptx::wait_for_launch_before();
        int stored_again[kept];
#pragma unroll
        for (int i = 0; i < kept; ++i) stored_again[i] = stored_length(params, i * 32 + lane);
        const Place<box> again = units.find(params, part);
        if (warps == 16) load_Q<T>(state.Q, params, part.head);
        load(own.K, K_full, maps.K, first);
        load(own.V, V_full, maps.V, first);
        if (warps != 16) load_Q<T>(state.Q, params, part.head);
        begin(state, params, part.head);
        units.look_further(params, part, warps);
        if (!guess) break;
        bool right = true;
#pragma unroll
        for (int i = 0; i < kept; ++i) right &= lengths.stored[i] == stored_again[i];
#pragma unroll
        for (int i = 0; i < unit / box; ++i) right &= units.now.block[i] == again.block[i];
        if (__all_sync(0xffffffff, right)) break;
        if (first.has_keys) {
            ptx::mbarrier_wait(K_full, phase);
            ptx::mbarrier_wait(V_full, phase);
            phase ^= 1;
        }
    }
    if (part.count == 0) return;

    const int most_parts = gridDim.z + params.B;  // of a KV head in all sequences
    const int64_t grid_heads = int64_t{gridDim.x} * gridDim.y;
    const auto parts = parts_in<d_head, row_tiles>(params.workspace, grid_heads * params.B, grid_heads * most_parts);
    for (int round = 1;; ++round) {  // of the next part
        const int64_t first_slot = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * most_parts + part.first_slot;
        const int length = part.head.length, first_end = length + 1 - params.Nq, end = min(part.end * unit, length);
        bool has_looked = false, has_others = false;  // for the next part; the other parts of the head are there
        uint32_t next_Q[row_tiles][d_head / 16][2];
        for (int step = 0, key = (part.begin + warp) * unit;; key += warps * unit, phase ^= 1) {
            if (!has_looked && (step == 1 || key >= end)) {  // when two units are on their way
                has_looked = true;
                if (round > 1 && part_of_round(round) < most_parts)
                    next_part = choose_part(params, lengths, round, rows_each);
                if (next_part.count > 0) {
                    next_units.begin(params, next_part, warps);
                    load_Q<T>(next_Q, params, next_part.head);
                }
                if (next_part.count > 0 && key >= end) {  // the warp had one unit at most
                    load(own.K, K_full, maps.K, next_units.at(0));
                    load(own.V, V_full, maps.V, next_units.at(0));
                }
            }
            if (key >= end) break;
            if (++step % 32 == 0) {
                units.now = units.further;
                units.look_further(params, part, warps);
            }
            const bool is_last = key + warps * unit >= end, goes_on = is_last && has_looked && next_part.count > 0;
            const Place<box> next = goes_on ? next_units.at(0) : units.at(step);
            if (warp == 0 && is_last && part.count > 1)
                has_others = ptx::load_acquire(&parts.arrived[part.head.number]) == part.count - 1;
            float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
            ptx::mbarrier_wait(K_full, phase);
            multiply_QK<box>(S, own.K, state);
            __syncwarp();  // all lanes have read K
            load(own.K, K_full, maps.K, next);

            mask(S, state, key, first_end, params.scale * log2_e);
            online_softmax(S, state);
            ptx::mbarrier_wait(V_full, phase);
            if (key + unit > length) clear_rows<box>(own.V, length - key);
            multiply_PV<box>(state, S, own.V);
            __syncwarp();  // all lanes have read V
            load(own.V, V_full, maps.V, next);
        }

        share(shared.results, state);
        has_others = __syncthreads_or(has_others);                                // the results are there for all
        if (has_others && threadIdx.x == 0) parts.arrived[part.head.number] = 0;  // for the next launch
        finish(shared, params, part, parts, first_slot, has_others);
        if (next_part.count == 0) return;
        part = next_part;
        next_part = {};
        units = next_units;
        memcpy(state.Q, next_Q, sizeof next_Q);
        begin(state, params, part.head);
        units.look_further(params, part, warps);
        __syncthreads();  // all have read the results
    }
}

// ---- launch ----

constexpr char title[] = "Paged KV";
constexpr int page_part = 16;   // rows; page_size is a multiple of it
constexpr int most_warps = 16;  // of a block, with d_head 64

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile, splits = most_parts(params, plan);
    const size_t counters = counter_bytes(plan.heads), slots = size_t(heads_each(params, plan)) * splits;
    return {.workspace_bytes = counters + slots * slot_bytes(rows, params.d_head),
            .splits = splits,
            .page_multiple = page_part,
            .optional_lengths = true,
            .zeroed_bytes = counters};
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps>;

// Rows that a copy brings: a unit, or as many as lie in one page of any size.
static int box_of(const FlashDecodeParams &params) {
    return params.block_table && params.page_size % unit ? page_part : unit;
}

template <typename T, int d_head, int row_tiles, int warps>
static Kernel instance(const FlashDecodeParams &params, const Plan &plan) {
    const auto entry = box_of(params) == unit ? paged_kernel<T, d_head, row_tiles, warps, unit>
                                              : paged_kernel<T, d_head, row_tiles, warps, page_part>;
    const dim3 grid(heads_each(params, plan) / params.Hkv, params.Hkv, blocks_each(params, plan));
    return {entry, grid, 32 * warps, shared_bytes_of(plan, sizeof(SharedStorage<T, d_head, row_tiles, warps>))};
}

static Kernel kernel_of(const FlashDecodeParams &params, const Plan &plan) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        if (plan.warps == 4) return instance<T, d_head, 1, 4>(params, plan);
        if constexpr (d_head == 64)
            if (plan.warps == 16) return instance<T, d_head, 1, 16>(params, plan);
        return one_tile(params) ? instance<T, d_head, 1, 8>(params, plan) : instance<T, d_head, 2, 8>(params, plan);
    });
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream) {
    Plan plan;
    FlashStatus status = make_plan(title, params, page_part, plan, choices_by_length, most_warps);
    if (status == FLASH_OK) status = flash::check(params, limits_with(title, plan.name), traits(*params, plan));
    CacheMaps maps;
    if (status == FLASH_OK) status = make_cache_maps(*params, box_of(*params), maps);
    if (status != FLASH_OK) return status;
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps);
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    const FlashStatus status = make_plan(title, params, page_part, plan, choices_by_length, most_warps);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(title, plan.name), traits(*params, plan), main, description);
}
