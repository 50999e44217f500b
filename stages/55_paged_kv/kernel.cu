// Paged KV. Sequences of unequal length, whose keys and values lie in pages anywhere in memory. Stage 54 shares the
// cache's room equally, so blocks with short sequences have little to do, and a thread looks up a page when it asks for
// it: the copy waits for the block table. Here heads are divided by what they have: only those that are longer than a
// share. The longest parts come first, and a block that had one of them goes on to one of the shortest, whose first
// keys it asks for before it stores the one that it has. Each lane looks up another unit: a warp knows where its next
// 32 units are while it asks the block table for the 32 after them. Where a page is smaller than a unit, the unit comes
// in several boxes, one for each page part.
//
// The launch before may write lengths and table. A block looks at them before that launch is over, and once more when
// it is, while its first copies are under way.

#include "decode_heads.cuh"
#include "decode_maps.h"
#include "decode_parts.cuh"
#include "decode_plan.cuh"
#include "decode_unit.cuh"
#include "launch_decode.h"

// ---- parts ----

// What a block works on: some units of a head, and which of the head's parts they are.
struct Part {
    Head head;
    int begin, end;     // the units
    int number, count;  // of the head's parts
};

// Read from L2, where the launch before may be changing it.
__device__ int load_relaxed(const int32_t *address) {
    int x;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(address) : "memory");
    return x;
}

// A length that is not written yet may be any number.
__device__ int length_of(const FlashDecodeParams &params, int batch) {
    if (!params.lengths || batch >= params.B) return params.Nmax;
    return min(max(load_relaxed(params.lengths + batch), 0), params.Nmax);
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

constexpr int classes = 8;  // of heads, by the size of their parts

// What the host knows of the parts.
struct Shares {
    float most_of_all;  // units of the longest part, over those of a head in all sequences
    int equal_count;    // parts of each head, if all are equal
    int room;           // parts of a head in all sequences, at most
    bool early;         // the next launch begins when all blocks have begun, else when they have read their keys
};

// What a warp knows of all sequences.
struct Lengths {
    int own;            // the length of the lane's sequence; of the first 32
    int most, longest;  // units of a part: at most, and of the longest one
};

__device__ Lengths read_lengths(const FlashDecodeParams &params, const Shares &shares, int warps) {
    const int lane = threadIdx.x % 32;
    Lengths lengths{.own = length_of(params, lane)};
    int units = 0, longest = 0;
    for (int b = lane; b < params.B; b += 32) {
        const int own = units_of(b == lane ? lengths.own : length_of(params, b));
        units += own;
        longest = max(longest, own);
    }
    units = __reduce_add_sync(0xffffffff, units);
    longest = __reduce_max_sync(0xffffffff, longest);
    lengths.most = max(warps, static_cast<int>(units * shares.most_of_all) + 1);
    lengths.longest = min(longest, lengths.most);
    return lengths;
}

// How a sequence is divided; each of its heads has as many parts. Quotients are rounded as floats are: that they are
// the same in all blocks is enough.
struct Division {
    int length = 0, count = 0;  // count: parts; 0 past the last sequence
    int size_class = 0;         // 0: the longest parts; those of the next class are about a fifth shorter

    __device__ Division(const FlashDecodeParams &params, const Lengths &lengths, int batch) {
        if (batch >= params.B) return;
        length = batch < 32 ? lengths.own : length_of(params, batch);
        const int units = units_of(length);
        count = static_cast<int>(__fdividef(units - 1, lengths.most)) + 1;
        size_class = min(max(0, fourths(lengths.longest) - fourths(__fdividef(units, count))), classes - 1);
    }

    // Of a number's logarithm to base 2, about.
    static __device__ int fourths(float x) { return __float_as_int(x) >> 21; }
};

// The parts of all sequences stand in a row, the classes one after the other, and in a class the sequences. Each warp
// finds part `number` by itself, 32 sequences at a time. false: there are fewer.
__device__ bool find_part(Part &part, const FlashDecodeParams &params, const Lengths &lengths, int number) {
    const int lane = threadIdx.x % 32;
    Division own(params, lengths, lane);
    for (int c = 0; c < classes; ++c)
        for (int first = 0; first < params.B; first += 32) {
            if (params.B > 32) own = Division(params, lengths, first + lane);
            const int parts = own.size_class == c ? own.count : 0, all = __reduce_add_sync(0xffffffff, parts);
            if (number < all) {
                const int upto = sums_up_to(parts), from = __ffs(__ballot_sync(0xffffffff, upto > number)) - 1;
                part.head.batch = first + from;
                part.head.length = __shfl_sync(0xffffffff, own.length, from);
                part.number = number - __shfl_sync(0xffffffff, upto - parts, from);
                part.count = __shfl_sync(0xffffffff, own.count, from);
                return true;
            }
            number -= all;
        }
    return false;
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

// Part `number`; a head's parts share its units equally. false: there is none, and it has no units.
template <bool equal>
__device__ bool choose_part(Part &part, const FlashDecodeParams &params, const Shares &shares, const Lengths &lengths,
                            int number, int rows_each) {
    part = {.head = {.length = params.Nmax}, .count = 1};
    bool found = true;
    if (equal) {
        part.head.batch = number / shares.equal_count;
        part.number = number % shares.equal_count;
        part.count = shares.equal_count;
    } else {
        found = find_part(part, params, lengths, number);
    }
    complete(part.head, params, rows_each);
    const int units = found ? units_of(part.head.length) : 0;
    const float each = __fdividef(units, part.count);
    part.begin = static_cast<int>(part.number * each);
    part.end = part.number + 1 == part.count ? units : static_cast<int>((part.number + 1) * each);
    return found;
}

// ---- load ----

// Where a unit lies: its boxes of `box` rows.
template <int box>
struct Place {
    bool has_keys;
    int block[unit / box], row[unit / box];  // the sequence or the page, and the box's first row there
    const int32_t *entry[unit / box];        // of the block table, which says the page; else null
};

// Brings a unit of K, or of V, into a buffer.
template <int box, typename T, int elements>
__device__ void load(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map, const Place<box> &place) {
    if (!place.has_keys || threadIdx.x % 32 != 0) return;
    ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
#pragma unroll
    for (int i = 0; i < unit / box; ++i)
        ptx::tma_load(buffer + i * box * (elements / unit), &map, full, 0, place.row[i], 0, blockIdx.y, place.block[i]);
}

// The units of a warp: of the block's part every `warps`-th. Lane i looks up number i of 32.
template <bool equal, int box>
struct UnitList {
    int number;               // of the head's units: the lane's
    Place<box> now, further;  // the lane's unit in the 32 from which the warp asks, and in those after them

    __device__ Place<box> look_up(const FlashDecodeParams &params, const Part &part) const {
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
            place.entry[i] = nullptr;
            if (!equal && params.block_table && place.has_keys) {
                const int page = static_cast<unsigned>(first) / static_cast<unsigned>(params.page_size);
                place.entry[i] = params.block_table + static_cast<int64_t>(head.batch) * params.max_pages + page;
                place.block[i] = load_relaxed(place.entry[i]);
                place.row[i] = first - page * params.page_size;
            }
        }
        return place;
    }

    // Begins with a part.
    __device__ void begin(const FlashDecodeParams &params, const Part &part, int warps) {
        number = part.begin + threadIdx.x / 32 + threadIdx.x % 32 * warps;
        now = look_up(params, part);
    }

    // Looks up the 32 units further on.
    __device__ void look_further(const FlashDecodeParams &params, const Part &part, int warps) {
        number += 32 * warps;
        further = look_up(params, part);
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

    // Whether the table still says of the lane's unit what it said.
    __device__ bool is_right() const {
        bool right = true;
#pragma unroll
        for (int i = 0; i < unit / box; ++i)
            if (now.entry[i]) right &= load_relaxed(now.entry[i]) == now.block[i];
        return right;
    }
};

// A part, and where the warp's units of it lie.
template <bool equal, int box>
struct Work {
    bool is_there = false;  // else the block has done all its parts
    Part part;
    UnitList<equal, box> units;
};

// The block's part in a round.
template <bool equal, int box>
__device__ Work<equal, box> find_work(const FlashDecodeParams &params, const Shares &shares, const Lengths &lengths,
                                      int round, int rows_each, int warps) {
    Work<equal, box> work;
    work.is_there = choose_part<equal>(work.part, params, shares, lengths, part_of_round(round), rows_each);
    work.units.begin(params, work.part, warps);
    return work;
}

// ---- Q ----

// Where the lane's row of Q lies, of each tile.
template <typename T, int row_tiles>
struct QRows {
    const T *from[row_tiles];
    bool is_there[row_tiles];
};

// As begin() of stage lean, but Q is asked for later: where it lies takes divisions.
template <typename T, int d_head, int row_tiles>
__device__ QRows<T, row_tiles> begin_rows(WarpState<d_head, row_tiles> &state, const FlashDecodeParams &params,
                                          const Head &head) {
    const int lane = threadIdx.x % 32;
    QRows<T, row_tiles> Q;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        const int own = t * tile + lane / 4;
        Q.from[t] = Q_row<T>(params, head, own) + lane % 4 * 2;
        Q.is_there[t] = own < head.rows;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
            for (int x = 0; x < 4; ++x) state.O[t][k][x] = 0.0f;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int query = (head.first_row + t * tile + lane % 4 * 2 + j) % params.Nq;
            state.row_max[t][j] = -INFINITY;
            state.row_sum[t][j] = 0.0f;
            state.end[t][j] = head.length + 1 + query - params.Nq;  // the last row sees all
        }
    }
    return Q;
}

template <typename T, int d_head, int row_tiles>
__device__ void load_Q(WarpState<d_head, row_tiles> &state, const QRows<T, row_tiles> &Q) {
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const T *from = Q.from[t] + 16 * k + 8 * half;
                state.Q[t][k][half] = Q.is_there[t] ? *reinterpret_cast<const uint32_t *>(from) : 0;
            }
}

// ---- store ----

// The end of a part: stores O, or leaves the part in its slot and merges all of the head if it is the last one.
template <typename T, int d_head, int row_tiles, int warps>
__device__ void finish(SharedStorage<T, d_head, row_tiles, warps> &shared, const FlashDecodeParams &params,
                       const Part &part, int number, int room) {
    const Head &head = part.head;
    if (part.count > 1) {
        const int64_t grid_heads = int64_t{gridDim.x} * gridDim.y;
        const auto parts = parts_in<d_head, row_tiles>(params.workspace, grid_heads * params.B, grid_heads * room);
        const int64_t slot = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * room + number;
        store_part(shared.results, parts, slot, head.rows);
        if (!is_last_block(shared.last_block, parts.arrived[head.number], part.count)) return;
        gather_parts(shared.results, parts, slot - part.number, part.count, head.rows);
        __syncthreads();  // the parts are there for all
    }
    store_O<T>(shared.results, params, head);
}

// ---- kernel ----

template <int d_head, int row_tiles>
constexpr int blocks_that_fit = d_head == 64 && row_tiles == 1 ? 2 : 1;

// grid: (blocks that share a head's rows of Q, Hkv, blocks that share the parts of a head in all sequences). equal: all
// sequences are Nmax long and lie in one piece. box: rows of a copy. __launch_bounds__ leaves registers for two
// blocks where two fit in shared memory.
template <typename T, int d_head, int row_tiles, int warps, bool equal, int box>
__global__ void __launch_bounds__(32 * warps, blocks_that_fit<d_head, row_tiles>)
    paged_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const Shares shares) {
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
    if (shares.early) ptx::let_next_launch_begin();

    // The warp looks for its first unit before the launch before is over: a guess, because that launch may write
    // lengths and table. It looks again when it is over, but does not wait for that with the first copies: if the guess
    // was wrong, it begins anew. With more sequences than lanes there is no guess.
    bool guess = params.B <= 32;
    uint32_t phase = 0;
    Lengths lengths;
    Work<equal, box> work;
    WarpState<d_head, row_tiles> state;
    while (true) {
        if (!equal && !guess) ptx::wait_for_launch_before();
        if (!equal) lengths = read_lengths(params, shares, warps);
        work = find_work<equal, box>(params, shares, lengths, 0, rows_each, warps);
        const Place<box> first = work.units.at(0);
        const auto Q = begin_rows<T>(state, params, work.part.head);
        ptx::wait_for_launch_before();

        bool right = work.units.is_right();
        if (!equal) right &= lengths.own == length_of(params, lane);
        load_Q(state, Q);
        load(own.K, K_full, maps.K, first);
        load(own.V, V_full, maps.V, first);
        if (equal || !guess || __all_sync(0xffffffff, right)) break;
        guess = false;
        if (first.has_keys) {
            ptx::mbarrier_wait(K_full, phase);
            ptx::mbarrier_wait(V_full, phase);
            phase ^= 1;
        }
    }
    if (!work.is_there) return;

    for (int round = 0;; ++round) {
        const Part &part = work.part;
        UnitList<equal, box> &units = work.units;
        units.look_further(params, part, warps);
        const int length = part.head.length, first_end = length + 1 - params.Nq, end = min(part.end * unit, length);
        bool has_looked = equal || part_of_round(round + 1) >= shares.room;  // for the next part
        Work<equal, box> next_work;
        int step = 0;  // of the warp's units
        for (int key = (part.begin + warp) * unit; key < end; key += warps * unit, phase ^= 1) {
            if (++step % 32 == 0) {
                units.now = units.further;
                units.look_further(params, part, warps);
            }
            const bool is_last = key + warps * unit >= end;
            const Place<box> next = is_last && next_work.is_there ? next_work.units.at(0) : units.at(step);
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

            if (!has_looked && !is_last) {  // now that two units are on their way
                next_work = find_work<equal, box>(params, shares, lengths, round + 1, rows_each, warps);
                has_looked = true;
            }
        }
        if (!has_looked) {  // the warp had one unit at most
            next_work = find_work<equal, box>(params, shares, lengths, round + 1, rows_each, warps);
            const Place<box> next = next_work.units.at(0);
            load(own.K, K_full, maps.K, next);
            load(own.V, V_full, maps.V, next);
        }

        if (!shares.early && !next_work.is_there) ptx::let_next_launch_begin();
        share(shared.results, state);
        __syncthreads();  // the results are there for all
        finish(shared, params, part, part_of_round(round), shares.room);
        if (!next_work.is_there) return;
        work = next_work;
        load_Q(state, begin_rows<T>(state, params, part.head));
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

// Where lengths differ or a cache lies in pages: of how many blocks the shares are for each multiprocessor. Else stage
// lean's table holds.
constexpr Choice choices_by_length[] = {
    {0.36, 1.0, any_length, true, {8, 0.76, 0}, {8, 0.76, 1}},
    {1.0, 1e9, any_length, true, {8, 1, 0}, {8, 1, 0}},
    {0.0, 0.36, any_length, true, {8, 1, 0}, {8, 1, 1}},
};

// The plan's blocks are shares of all units.
static FlashStatus plan_of(const FlashDecodeParams &params, Plan &plan) {
    if (equal_pieces(params)) return make_plan("Paged KV", params, plan);
    return make_plan("Paged KV", params, plan, choices_by_length);
}

// Of a sequence, each with the rows of Q that a block computes.
static int heads_each(const FlashDecodeParams &params, const Plan &plan) {
    return plan.heads / params.B;
}

// With more heads than shares a block has some, one after the other; else one part.
static bool several_parts(const Plan &plan) {
    return plan.heads > plan.blocks;
}

static Shares shares_of(const FlashDecodeParams &params, const Plan &plan) {
    const int each = heads_each(params, plan);
    if (equal_pieces(params)) {
        const int count = (plan.blocks + plan.heads - 1) / plan.heads;
        return {.most_of_all = 0, .equal_count = count, .room = count * params.B, .early = true};
    }
    // Rounded up, a head has one part more than it has shares. With d_head 128 and one part for each block it takes
    // less time if all blocks of a launch begin together, after those of the launch before (docs/notes/decode.md).
    return {.most_of_all = static_cast<float>(each) / plan.blocks,
            .equal_count = 0,
            .room = (plan.blocks + each - 1) / each + params.B,
            .early = params.B == 1 || params.d_head == 64 || several_parts(plan)};
}

static dim3 grid_of(const FlashDecodeParams &params, const Plan &plan) {
    const int each = heads_each(params, plan), room = shares_of(params, plan).room;
    const bool several = !equal_pieces(params) && several_parts(plan);
    return dim3(each / params.Hkv, params.Hkv, several ? std::clamp(plan.blocks / each, 1, room) : room);
}

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile, room = shares_of(params, plan).room;
    flash::DecodeTraits traits{.splits = room, .page_multiple = page_part, .optional_lengths = true};
    if (equal_pieces(params) && room == params.B) return traits;  // nothing to merge
    traits.zeroed_bytes = counter_bytes(plan.heads);
    const size_t slots = size_t(heads_each(params, plan)) * room;
    traits.workspace_bytes = traits.zeroed_bytes + slots * slot_bytes(rows, params.d_head);
    return traits;
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const Shares>;

// Rows that a copy brings: a unit, or as many as lie in one page of any size.
static int box_of(const FlashDecodeParams &params) {
    return params.block_table && params.page_size % unit ? page_part : unit;
}

template <typename T, int d_head, int row_tiles, int warps>
static Kernel instance(const FlashDecodeParams &params, const Plan &plan) {
    auto entry = paged_kernel<T, d_head, row_tiles, warps, false, unit>;
    if (equal_pieces(params)) entry = paged_kernel<T, d_head, row_tiles, warps, true, unit>;
    if (box_of(params) == page_part) entry = paged_kernel<T, d_head, row_tiles, warps, false, page_part>;
    return {entry, grid_of(params, plan), 32 * warps,
            shared_bytes_of(plan, sizeof(SharedStorage<T, d_head, row_tiles, warps>))};
}

static Kernel kernel_of(const FlashDecodeParams &params, const Plan &plan) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        if (plan.warps == 4) return instance<T, d_head, 1, 4>(params, plan);
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
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps, shares_of(*params, plan));
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    FlashStatus status = flash::check_sizes(params, limits_with("any"), page_part);
    if (status == FLASH_OK) status = plan_of(*params, plan);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(plan.name), traits(*params, plan), main, description);
}
