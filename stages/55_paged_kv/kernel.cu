// Paged KV. Sequences of unequal length, whose keys and values lie in pages anywhere in memory. Stage 54 shares the
// cache's room equally, so blocks with short sequences have little to do, and a thread looks up a page when it asks for
// it: the copy waits for the block table. Here the blocks share the keys that there are. A sequence is cut into whole
// shares and what is left of it. The longest of what is left are parts of blocks of their own. A block goes on from one
// of the others to one of the shortest, whose first keys it asks for before it stores the one that it has. Each lane
// looks up another unit: a warp knows where its next 32 units are while it asks the block table for the 32 after them.
// Where a page is smaller than a unit, the unit comes in several boxes, one for each page part.
//
// The launch before may write lengths and table. A block looks at them before that launch is over, and once more when
// it is, together with its first copies.

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
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(0xffffffff, x, step);
        if (lane >= step) x += before;
    }
    return x;
}

// Of 32 sequences each lane knows one, and how it is divided into parts.
struct Row {
    int length;
    int whole, upto;  // parts that have a whole share; with those of the lanes before
    int rank;         // of what is left of it: of how many lanes more is left
    unsigned rests;   // lanes of which something is left
};

// most: units of a part.
__device__ Row read_row(const FlashDecodeParams &params, int first, int most) {
    const int lane = threadIdx.x % 32;
    Row row{.length = length_of(params, stored_length(params, first + lane))};
    const int units = first + lane < params.B ? units_of(row.length) : 0;
    row.whole = units / most;
    row.upto = sums_up_to(row.whole);
    const int rest = units % most, place = rest * 32 + 31 - lane;
    row.rests = __ballot_sync(0xffffffff, rest > 0);
#pragma unroll
    for (int other = 0; other < 32; ++other) row.rank += __shfl_sync(0xffffffff, place, other) > place;
    return row;
}

// What a warp knows of all sequences.
struct Lengths {
    int most;  // units of a part
    Row row;   // of the first 32
};

// A part has the share of a block at most: rounded up, if it is short, so that each warp has as many units. most: the
// host's where it knows all lengths.
template <bool equal>
__device__ Lengths read_lengths(const FlashDecodeParams &params, int most, int warps) {
    if (equal) return {.most = most};
    int units = 0;
    for (int b = threadIdx.x % 32; b < params.B; b += 32)
        units += units_of(length_of(params, stored_length(params, b)));
    units = __reduce_add_sync(0xffffffff, units);
    constexpr int long_share = 256;
    most = (units + gridDim.z - 1) / gridDim.z;
    if (most < long_share) most = (most + warps - 1) / warps * warps;
    return {.most = most, .row = read_row(params, 0, most)};
}

// Parts of one length stand in a row, a sequence's side by side.
__device__ void find_equal_part(Part &part, const FlashDecodeParams &params, int most, int number) {
    part.count = (units_of(params.Nmax) - 1) / most + 1;
    part.head.batch = number / part.count;
    part.number = number % part.count;
    part.first_slot = number - part.number;
}

// The parts of all sequences stand in a row: whole shares first, then what is left of each sequence, the longest first;
// of 32 sequences at a time. Each warp finds part `number` by itself. If there are fewer, count stays 0.
__device__ void find_part(Part &part, const FlashDecodeParams &params, const Lengths &lengths, int number) {
    int slots = 0;  // of the sequences before these
    for (int first = 0; first < params.B; first += 32) {
        const Row row = first == 0 ? lengths.row : read_row(params, first, lengths.most);
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

template <bool equal>
__device__ Part choose_part(const FlashDecodeParams &params, const Lengths &lengths, int round, int rows_each) {
    Part part{.head = {.length = params.Nmax}, .count = 0};
    if (equal) find_equal_part(part, params, lengths.most, part_of_round(round));
    if (!equal) find_part(part, params, lengths, part_of_round(round));
    complete(part.head, params, rows_each);
    part.begin = part.number * lengths.most;
    part.end = part.count > 0 ? min(part.begin + lengths.most, units_of(part.head.length)) : 0;
    return part;
}

// The block's first two parts. It begins with the second one if that is what is left of a divided head, and the first
// one is not. So it is there when the blocks with the whole shares come to their ends, and these need not wait for it.
__device__ void choose_first(Part &part, Part &next_part, const FlashDecodeParams &params, const Lengths &lengths,
                             int rows_each) {
#pragma unroll 1  // the code is there once: a launch has less to fetch
    for (int round = 0; round < 2; ++round) {
        part = next_part;
        next_part = choose_part<false>(params, lengths, round, rows_each);
    }
    const auto is_left = [](const Part &one) { return one.count > 1 && one.number == one.count - 1; };
    if (!is_left(next_part) || is_left(part)) return;
    const Part other = part;
    part = next_part;
    next_part = other;
}

// ---- load ----

// Where a unit lies: its boxes of `box` rows.
template <int box>
struct Place {
    bool has_keys;
    const int *entry[unit / box];            // of the table, which says in what page; null if there is no table
    int block[unit / box], row[unit / box];  // the page or the sequence, and the box's first row there
};

// The page that a box lies in, or the sequence.
__device__ int look_up(const int *entry, int batch) {
    return entry ? ptx::load_relaxed(entry) : batch;
}

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
template <bool equal, int box>
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
            place.entry[i] = nullptr;
            place.row[i] = first;
            if (!equal && params.block_table && place.has_keys) {
                const int page = static_cast<unsigned>(first) / static_cast<unsigned>(params.page_size);
                place.entry[i] = params.block_table + static_cast<int64_t>(head.batch) * params.max_pages + page;
                place.row[i] = first - page * params.page_size;
            }
            place.block[i] = look_up(place.entry[i], head.batch);
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

// Four columns of a row, of all parts of a head in their order. own: those of this block's part. So that a lane waits
// for memory once, it asks for several parts together.
template <int d_head, int row_tiles>
__device__ RowPiece merge_parts(const Parts<d_head, row_tiles> &parts, int64_t first_slot, const Part &part,
                                const RowPiece &own, int row, int column) {
    constexpr int together = 8;
    RowPiece sum;
    for (int first = 0; first < part.count; first += together) {
        RowPiece pieces[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int64_t slot = first_slot + first + i;
            if (first + i == part.number) {
                pieces[i] = own;
            } else if (first + i < part.count) {
                const float2 softmax = parts.softmax[slot][row];
                pieces[i] = {*reinterpret_cast<const float4 *>(&parts.O[slot][row][column]), softmax.x, softmax.y};
            }
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            if (first + i >= part.count) break;
            const float new_max = fmaxf(sum.row_max, pieces[i].row_max);
            const float old_weight = weight_of(sum.row_max, new_max), weight = weight_of(pieces[i].row_max, new_max);
            sum.row_max = new_max;
            sum.row_sum = sum.row_sum * old_weight + weight * pieces[i].row_sum;
            sum.O = add_weighted(add_weighted({}, old_weight, sum.O), weight, pieces[i].O);
        }
    }
    return sum;
}

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
        return part.count == 1 ? own : merge_parts(parts, first_slot, part, own, row, column);
    };
    store_O<T, d_head, 32 * warps>(params, part.head, merge);
}

// ---- kernel ----

template <int d_head, int row_tiles, int warps, bool equal>
constexpr int blocks_that_fit = equal && d_head == 64 && row_tiles == 1 && warps <= 8 ? 2 : 1;

// grid: (blocks that share a head's rows of Q, Hkv, blocks that share the parts of a head in all sequences). equal: all
// sequences are Nmax long and lie in one piece, and `most` are the units of a part. box: rows of a copy.
// __launch_bounds__ leaves registers for as many blocks as are to fit.
template <typename T, int d_head, int row_tiles, int warps, bool equal, int box>
__global__ void __launch_bounds__(32 * warps, blocks_that_fit<d_head, row_tiles, warps, equal>)
    paged_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const int most) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, row_tiles, warps> *>(shared_bytes);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Buffers<T, d_head> &own = shared.buffers[warp];
    uint64_t *const K_full = &shared.K_full[warp], *const V_full = &shared.V_full[warp];

    // What needs nothing from the launch before this one.
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

    // The warp looks for its first unit before the launch before is over: a guess, because that launch may write
    // lengths and table. When that launch is over, the warp asks for these numbers again: before the first copies,
    // since they would come after those. Then it compares them: if the guess was wrong, it begins anew. With more
    // sequences than lanes there is no guess. Where 16 warps ask for Q before the copies, they are done earlier.
    uint32_t phase = 0;
    Part part, next_part{};
    UnitList<equal, box> units, next_units;
    Lengths lengths;
    WarpState<d_head, row_tiles> state;
    for (bool guess = equal || params.B <= 32;; guess = false) {
        if (!guess) ptx::wait_for_launch_before();
        lengths = read_lengths<equal>(params, most, warps);
        if (equal) part = choose_part<equal>(params, lengths, 0, rows_each);
        if (!equal) choose_first(part, next_part, params, lengths, rows_each);
        units.begin(params, part, warps);
        const Place<box> first = units.at(0);
        if (guess) ptx::wait_for_launch_before();
        const int stored = equal ? 0 : stored_length(params, lane);
        int again[unit / box];
#pragma unroll
        for (int i = 0; i < unit / box; ++i) again[i] = look_up(units.now.entry[i], part.head.batch);
        if (warps == 16) load_Q<T>(state.Q, params, part.head);
        load(own.K, K_full, maps.K, first);
        load(own.V, V_full, maps.V, first);
        if (warps != 16) load_Q<T>(state.Q, params, part.head);
        begin(state, params, part.head);
        units.look_further(params, part, warps);
        if (equal || !guess) break;
        bool right = lengths.row.length == length_of(params, stored);
#pragma unroll
        for (int i = 0; i < unit / box; ++i) right &= units.now.block[i] == again[i];
        if (__all_sync(0xffffffff, right)) break;
        if (first.has_keys) {
            ptx::mbarrier_wait(K_full, phase);
            ptx::mbarrier_wait(V_full, phase);
            phase ^= 1;
        }
    }
    if (part.count == 0) return;

    const int most_parts = gridDim.z + (equal ? 0 : params.B);  // of a KV head in all sequences
    const int64_t grid_heads = int64_t{gridDim.x} * gridDim.y;
    const auto parts = parts_in<d_head, row_tiles>(params.workspace, grid_heads * params.B, grid_heads * most_parts);
    for (int round = 1;; ++round) {  // of the next part
        const int64_t first_slot = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * most_parts + part.first_slot;
        const int length = part.head.length, first_end = length + 1 - params.Nq, end = min(part.end * unit, length);
        bool has_looked = equal, has_others = false;  // for the next part; the other parts of the head are there
        uint32_t next_Q[row_tiles][d_head / 16][2];
        for (int step = 0, key = (part.begin + warp) * unit;; key += warps * unit, phase ^= 1) {
            if (!has_looked && (step == 1 || key >= end)) {  // when two units are on their way
                has_looked = true;
                if (round > 1 && part_of_round(round) < most_parts)
                    next_part = choose_part<equal>(params, lengths, round, rows_each);
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
            if (!equal && warp == 0 && is_last && part.count > 1)
                has_others = ptx::load_acquire(&parts.arrived[part.head.number]) == part.count - 1;
            float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
            ptx::mbarrier_wait(K_full, phase);
            multiply_QK<box>(S, own.K, state);
            __syncwarp();  // all lanes have read K
            load(own.K, K_full, maps.K, next);

            mask(S, state, key, first_end, params.scale * log2_e);
            online_softmax(S, state);
            ptx::mbarrier_wait(V_full, phase);
            if (!equal && key + unit > length) clear_rows<box>(own.V, length - key);
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

constexpr int page_part = 16;  // rows; page_size is a multiple of it

// configuration: of the plan, so that check_sizes() lets it pass.
static flash::Limits limits_with(const char *configuration) {
    return {.title = "Paged KV",
            .min_compute = 90,
            .Br = 0,
            .Bc = unit,
            .causal = true,
            .grouped_heads = true,
            .log_sum_exp = true,
            .configuration = configuration};
}

// Where lengths differ or a cache lies in pages: how many blocks share the units, for each multiprocessor. Else stage
// lean's table holds.
constexpr Choice choices_by_length[] = {
    // Many heads: more blocks than fit at a time, or two small ones on each multiprocessor.
    {6.0, 1e9, any_length, true, {8, 3, 0}, {4, 1.94, 2}},
    // Short sequences: half of the multiprocessors keep the memory busy, and fewer parts have to be merged. Where a
    // unit is small, with twice as many warps.
    {0.36, 1.0, 8192, true, {8, 0.5, 0}, {16, 0.5, 1}},
    {0.0, 1e9, any_length, true, {8, 1, 0}, {8, 1, 1}},
};

// The plan's blocks are shares of all units.
static FlashStatus plan_of(const FlashDecodeParams &params, Plan &plan) {
    if (equal_pieces(params)) return make_plan("Paged KV", params, plan);
    return make_plan("Paged KV", params, plan, choices_by_length, params.d_head == 64);
}

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile, splits = most_parts(params, plan);
    flash::DecodeTraits traits{.splits = splits, .page_multiple = page_part, .optional_lengths = true};
    if (equal_pieces(params) && splits == params.B) return traits;  // nothing to merge
    traits.zeroed_bytes = counter_bytes(plan.heads);
    const size_t slots = size_t(heads_each(params, plan)) * splits;
    traits.workspace_bytes = traits.zeroed_bytes + slots * slot_bytes(rows, params.d_head);
    return traits;
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const int>;

// Rows that a copy brings: a unit, or as many as lie in one page of any size.
static int box_of(const FlashDecodeParams &params) {
    return params.block_table && params.page_size % unit ? page_part : unit;
}

template <typename T, int d_head, int row_tiles, int warps>
static Kernel instance(const FlashDecodeParams &params, const Plan &plan) {
    auto entry = paged_kernel<T, d_head, row_tiles, warps, false, unit>;
    if (equal_pieces(params)) entry = paged_kernel<T, d_head, row_tiles, warps, true, unit>;
    if (box_of(params) == page_part) entry = paged_kernel<T, d_head, row_tiles, warps, false, page_part>;
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
    FlashStatus status = flash::check_sizes(params, limits_with("any"), page_part);
    if (status == FLASH_OK) status = plan_of(*params, plan);
    if (status == FLASH_OK) status = flash::check(params, limits_with(plan.name), traits(*params, plan));
    CacheMaps maps;
    if (status == FLASH_OK) status = make_cache_maps(*params, box_of(*params), maps);
    if (status != FLASH_OK) return status;
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps, most_units(*params, plan));
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    FlashStatus status = flash::check_sizes(params, limits_with("any"), page_part);
    if (status == FLASH_OK) status = plan_of(*params, plan);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(plan.name), traits(*params, plan), main, description);
}
