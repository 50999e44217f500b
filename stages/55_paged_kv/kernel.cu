// Paged KV. Sequences of unequal length, whose keys and values lie in pages anywhere in memory. Stage 54 shares the
// cache's room equally, so blocks with short sequences have little to do, and a thread looks up a page when it asks for
// it: the copy waits for the block table. Here heads are divided by what they have: only those that are longer than a
// share, and each block has one part of one head. The longest parts come first, so that the short ones fill the end.
// Each lane looks up another unit: a warp knows where its next 32 units are while it asks the block table for the 32
// after them. Where a page is smaller than a unit, the unit comes in several boxes, one for each page part.

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

__device__ int length_of(const FlashDecodeParams &params, int batch) {
    return params.lengths ? params.lengths[batch] : params.Nmax;
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

// How a lane's sequence is divided; each of its heads has as many parts. Quotients are rounded as floats are: that they
// are the same in all blocks is enough.
struct Division {
    int length = 0, count = 0;  // count: parts; 0 past the last sequence
    int size_class = 0;         // 0: the longest parts; those of the next class are about a fifth shorter

    __device__ Division(const FlashDecodeParams &params, int batch, int most, int longest) {
        if (batch >= params.B) return;
        length = length_of(params, batch);
        const int units = units_of(length);
        count = static_cast<int>(__fdividef(units - 1, most)) + 1;
        size_class = min(max(0, fourths(longest) - fourths(__fdividef(units, count))), classes - 1);
    }

    // Of a number's logarithm to base 2, about.
    static __device__ int fourths(float x) { return __float_as_int(x) >> 21; }
};

// The parts of all sequences stand in a row, the classes one after the other, and in a class the sequences. Each block
// takes the one with its own number. Each warp finds it by itself, 32 sequences at a time. false: there are fewer.
__device__ bool find_part(Part &part, const FlashDecodeParams &params, float most_of_all, int warps) {
    const int lane = threadIdx.x % 32;
    int units = 0, longest = 0;
    for (int b = lane; b < params.B; b += 32) {
        const int own = units_of(length_of(params, b));
        units += own;
        longest = max(longest, own);
    }
    units = __reduce_add_sync(0xffffffff, units);
    longest = __reduce_max_sync(0xffffffff, longest);
    const int most = max(warps, static_cast<int>(units * most_of_all) + 1);  // units of a part
    longest = min(longest, most);

    int number = blockIdx.z;
    Division own(params, lane, most, longest);
    for (int c = 0; c < classes; ++c)
        for (int first = 0; first < params.B; first += 32) {
            if (params.B > 32) own = Division(params, first + lane, most, longest);
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

// A head's parts share its units equally.
__device__ void set_units(Part &part) {
    const int units = units_of(part.head.length);
    const float each = __fdividef(units, part.count);
    part.begin = static_cast<int>(part.number * each);
    part.end = part.number + 1 == part.count ? units : static_cast<int>((part.number + 1) * each);
}

// ---- load ----

// Where a unit lies: its boxes of `box` rows.
template <int box>
struct Place {
    bool has_keys;
    int block[unit / box], row[unit / box];  // the sequence or the page, and the box's first row there
};

// The units of a warp: of the block's part every `warps`-th. Lane i looks up number i of 32.
template <bool equal, int box>
struct UnitList {
    int number;               // of the head's units: the lane's in the 32 after the next ones
    Place<box> now, further;  // the lane's unit in the 32 from which the warp asks, and in those after them

    // Looks up the lane's unit and goes on to the one 32 further.
    __device__ Place<box> look_up(const FlashDecodeParams &params, const Part &part, int warps) {
        const Head &head = part.head;
        const int key = number * unit;
        Place<box> place;
        place.has_keys = number < part.end && key < head.length;
        if (place.has_keys) {
#pragma unroll
            for (int i = 0; i < unit / box; ++i) {
                // A box without keys is the first one once more: its rows are masked, and the unit has all its bytes.
                const int first = key + i * box < head.length ? key + i * box : key;
                place.block[i] = head.batch;
                place.row[i] = first;
                if (!equal && params.block_table) {
                    const int page = static_cast<unsigned>(first) / static_cast<unsigned>(params.page_size);
                    place.block[i] = params.block_table[static_cast<int64_t>(head.batch) * params.max_pages + page];
                    place.row[i] = first - page * params.page_size;
                }
            }
        }
        number += 32 * warps;
        return place;
    }

    // Brings the warp's unit number `step` of K, or of V, into a buffer; to be called by the whole warp.
    template <typename T, int elements>
    __device__ void load(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map, int kv_head, int step) const {
        const int from = step % 32, lane = threadIdx.x % 32;  // from: the lane that knows where it is
        if (!__shfl_sync(0xffffffff, now.has_keys, from)) return;
        if (lane == 0) ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
#pragma unroll
        for (int i = 0; i < unit / box; ++i) {
            const int block = __shfl_sync(0xffffffff, now.block[i], from);
            const int row = __shfl_sync(0xffffffff, now.row[i], from);
            if (lane == 0) ptx::tma_load(buffer + i * box * (elements / unit), &map, full, 0, row, 0, kv_head, block);
        }
    }
};

// ---- store ----

// The end of a part: stores O, or leaves the part in the block's slot and merges all of the head if it is the last one.
template <typename T, int d_head, int row_tiles, int warps>
__device__ void finish(SharedStorage<T, d_head, row_tiles, warps> &shared, const FlashDecodeParams &params,
                       const Part &part, int heads) {
    const Head &head = part.head;
    if (part.count > 1) {
        const auto parts =
            parts_in<d_head, row_tiles>(params.workspace, heads, int64_t{gridDim.x} * gridDim.y * gridDim.z);
        const int64_t slot = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * gridDim.z + blockIdx.z;
        store_part(shared.results, parts, slot, head.rows);
        if (!is_last_block(shared.last_block, parts.arrived[head.number], part.count)) return;
        gather_parts(shared.results, parts, slot - part.number, part.count, head.rows);
        __syncthreads();  // the parts are there for all
    }
    store_O<T>(shared.results, params, head);
}

// ---- kernel ----

// grid: (blocks that share a head's rows of Q, Hkv, at least as many as a head has parts in all sequences). equal: all
// sequences are Nmax long and lie in one piece. box: rows of a copy. most_of_all: units of the longest part, over those
// of a head in all sequences. equal_count: parts of a head, if all are equal. __launch_bounds__ as in stage lean.
template <typename T, int d_head, int row_tiles, int warps, bool equal, int box>
__global__ void __launch_bounds__(32 * warps, 1)
    paged_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const float most_of_all,
                 const int equal_count) {
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
    if (warp == 0 && blockIdx.z < params.B) {  // Q of some sequence: together the blocks bring all of it into L2
        Head some{.batch = static_cast<int>(blockIdx.z)};
        complete(some, params, rows_each);
        prefetch_Q<T, d_head>(params, some);
    }
    __syncwarp();  // the warp's barriers are there for all of its lanes
    ptx::let_next_launch_begin();
    ptx::wait_for_launch_before();

    Part part;
    if (equal) {
        part.count = equal_count;
        part.head.batch = blockIdx.z / equal_count;
        part.head.length = params.Nmax;
        part.number = blockIdx.z % equal_count;
    } else if (!find_part(part, params, most_of_all, warps)) {
        return;
    }
    complete(part.head, params, rows_each);
    set_units(part);
    const Head &head = part.head;
    WarpState<d_head, row_tiles> state;
    begin<T>(state, params, head);

    UnitList<equal, box> units{.number = part.begin + warp + lane * warps};
    units.now = units.look_up(params, part, warps);
    units.further = units.look_up(params, part, warps);
    units.load(own.K, K_full, maps.K, head.kv_head, 0);
    units.load(own.V, V_full, maps.V, head.kv_head, 0);
    int step = 0;  // of the warp's units
    const auto load_next_K = [&units, &own, &maps, &params, &part, &step, K_full] {
        if (step % 32 == 0) {
            units.now = units.further;
            units.further = units.look_up(params, part, warps);
        }
        units.load(own.K, K_full, maps.K, part.head.kv_head, step);
    };
    const int first_end = head.length + 1 - params.Nq, end = min(part.end * unit, head.length);
    uint32_t phase = 0;
    for (int key = (part.begin + warp) * unit; key < end; key += warps * unit, phase ^= 1) {
        float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
        ptx::mbarrier_wait(K_full, phase);
        multiply_QK<box>(S, own.K, state);
        __syncwarp();  // all lanes have read K
        ++step;
        load_next_K();

        mask(S, state, key, first_end, params.scale * log2_e);
        online_softmax(S, state);
        ptx::mbarrier_wait(V_full, phase);
        if (!equal && key + unit > head.length) clear_rows<box>(own.V, head.length - key);
        multiply_PV<box>(state, S, own.V);
        __syncwarp();  // all lanes have read V
        units.load(own.V, V_full, maps.V, head.kv_head, step);
    }

    share(shared.results, state);
    __syncthreads();  // the results are there for all
    finish(shared, params, part, params.B * params.Hkv * gridDim.x);
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
    {0.36, 1.0, 16384, true, {8, 0.82, 0}, {8, 0.82, 1}},
    {0.36, 1e9, any_length, true, {8, 1, 0}, {8, 0.82, 1}},
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

// Parts of a head, where all are equal.
static int equal_count(const Plan &plan) {
    return (plan.blocks + plan.heads - 1) / plan.heads;
}

// Enough blocks for all parts: rounded up, a head has one more than it has shares.
static dim3 grid_of(const FlashDecodeParams &params, const Plan &plan) {
    const int each = heads_each(params, plan), shares = (plan.blocks + each - 1) / each;
    const int parts = equal_pieces(params) ? equal_count(plan) * params.B : shares + params.B;
    return dim3(each / params.Hkv, params.Hkv, parts);
}

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile, parts = static_cast<int>(grid_of(params, plan).z);
    flash::DecodeTraits traits{.splits = parts, .page_multiple = page_part, .optional_lengths = true};
    if (equal_pieces(params) && parts == params.B) return traits;  // nothing to merge
    traits.zeroed_bytes = counter_bytes(plan.heads);
    const size_t slots = size_t(heads_each(params, plan)) * parts;
    traits.workspace_bytes = traits.zeroed_bytes + slots * slot_bytes(rows, params.d_head);
    return traits;
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const float, const int>;

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
    const float most_of_all = static_cast<float>(heads_each(*params, plan)) / plan.blocks;
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps, most_of_all, equal_count(plan));
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    FlashStatus status = flash::check_sizes(params, limits_with("any"), page_part);
    if (status == FLASH_OK) status = plan_of(*params, plan);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(plan.name), traits(*params, plan), main, description);
}
