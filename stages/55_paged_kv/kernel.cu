// Paged KV. Sequences of unequal length, whose keys and values lie in pages anywhere in memory. Stage 54 shares the
// cache's room equally, so blocks with short sequences have little to do, and a thread looks up a page when it asks for
// it: the copy waits for the block table. Here the units that are shared are those that the sequences have. Each lane
// looks up another unit: a warp knows where its next 32 units are while it asks the block table for the 32 after them.
// Where a page is smaller than a unit, the unit comes in several boxes, one for each page part.

#include "decode_maps.h"
#include "decode_parts.cuh"
#include "decode_plan.cuh"
#include "decode_shares.cuh"
#include "decode_unit.cuh"
#include "launch_decode.h"

// ---- shares by lengths ----

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

// How the sequences' units are shared; each warp adds them up by itself. Blocks that would have fewer units than warps
// have none.
__device__ Shares shares_by_length(const FlashDecodeParams &params, int heads_each, int warps) {
    int units = 0;
    for (int b = threadIdx.x % 32; b < params.B; b += 32) units += units_of(length_of(params, b));
    units = __reduce_add_sync(0xffffffff, units) * heads_each;
    const int blocks = min(static_cast<int>(gridDim.x), (units + warps - 1) / warps);
    if (blockIdx.x >= blocks) return {.head_units = 0, .each = 0, .extra = 0};
    return {.head_units = 0, .each = units / blocks, .extra = units % blocks};
}

// The head that has the unit, of which there are `heads_each` for each sequence.
__device__ Head find_head(const FlashDecodeParams &params, int unit_number, int heads_each, int rows_each) {
    const int lane = threadIdx.x % 32, row_blocks = heads_each / params.Hkv;
    int batch = 0, begin = 0, length = 0;  // begin: of the sequence's units
    while (true) {                         // 32 sequences at a time
        const int own_length = batch + lane < params.B ? length_of(params, batch + lane) : 0;
        const int units = batch + lane < params.B ? units_of(own_length) * heads_each : 0, upto = sums_up_to(units);
        const int all = __shfl_sync(0xffffffff, upto, 31);
        if (unit_number < begin + all) {
            const int first = __ffs(__ballot_sync(0xffffffff, begin + upto > unit_number)) - 1;
            batch += first;
            begin += __shfl_sync(0xffffffff, upto - units, first);
            length = __shfl_sync(0xffffffff, own_length, first);
            break;
        }
        batch += 32;
        begin += all;
    }
    const int units = units_of(length), within = (unit_number - begin) / units;
    Head head{.batch = batch, .length = length};
    head.number = batch * heads_each + within;
    head.begin = begin + within * units;
    head.end = head.begin + units;
    head.kv_head = within / row_blocks;
    head.first_row = within % row_blocks * rows_each;
    head.rows = min(params.Hq / params.Hkv * params.Nq - head.first_row, rows_each);
    return head;
}

// Goes on to the head that has a later unit, which there must be.
template <bool equal>
__device__ void move_to(Head &head, const FlashDecodeParams &params, int unit_number, int rows_each) {
    const int rows = params.Hq / params.Hkv * params.Nq;
    while (unit_number >= head.end) {
        ++head.number;
        head.begin = head.end;
        head.first_row += rows_each;
        if (head.first_row >= rows) {
            head.first_row = 0;
            ++head.kv_head;
        }
        if (head.kv_head == params.Hkv) {
            head.kv_head = 0;
            ++head.batch;
            if (!equal) head.length = length_of(params, head.batch);
        }
        head.end = head.begin + units_of(head.length);
        head.rows = min(rows - head.first_row, rows_each);
    }
}

// ---- load ----

// Where a unit lies: its boxes of `box` rows.
template <int box>
struct Place {
    bool has_keys = false;
    int kv_head;
    int block[unit / box], row[unit / box];  // the sequence or the page, and the box's first row there
};

// The units of a warp: of the block's share every `warps`-th. Lane i looks up number i of 32.
template <bool equal, int box>
struct UnitList {
    Head head;                // of the lane's unit in the 32 after the next ones
    int number;               // of that unit
    Place<box> now, further;  // the lane's unit in the 32 from which the warp asks, and in those after them

    // Looks up the lane's unit and goes on to the one 32 further.
    __device__ Place<box> look_up(const FlashDecodeParams &params, int share_end, int warps, int rows_each) {
        Place<box> place;
        if (number < share_end) {
            move_to<equal>(head, params, number, rows_each);
            const int key = (number - head.begin) * unit;
            place.has_keys = key < head.length;
            place.kv_head = head.kv_head;
#pragma unroll
            for (int i = 0; i < unit / box; ++i) {
                // A box without keys is the first one once more: its rows are masked, and the unit has all its bytes.
                const int first = key + i * box < head.length ? key + i * box : key;
                place.block[i] = head.batch;
                place.row[i] = first;
                if (!equal && params.block_table && place.has_keys) {
                    const int page = first / params.page_size;
                    place.block[i] = params.block_table[static_cast<int64_t>(head.batch) * params.max_pages + page];
                    place.row[i] = first % params.page_size;
                }
            }
        }
        number += 32 * warps;
        return place;
    }

    // Brings the warp's unit number `step` of K, or of V, into a buffer; to be called by the whole warp.
    template <typename T, int elements>
    __device__ void load(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map, int step) const {
        const int from = step % 32;  // the lane that knows where it is
        if (!__shfl_sync(0xffffffff, now.has_keys, from)) return;
        const int kv_head = __shfl_sync(0xffffffff, now.kv_head, from), lane = threadIdx.x % 32;
        if (lane == 0) ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
#pragma unroll
        for (int i = 0; i < unit / box; ++i) {
            const int block = __shfl_sync(0xffffffff, now.block[i], from);
            const int row = __shfl_sync(0xffffffff, now.row[i], from);
            if (lane == 0) ptx::tma_load(buffer + i * box * (elements / unit), &map, full, 0, row, 0, kv_head, block);
        }
    }
};

// ---- kernel ----

// grid: as many blocks as share the work. equal: all sequences are Nmax long and lie in one piece. box: rows of a copy.
template <typename T, int d_head, int row_tiles, int warps, bool equal, int box>
__global__ void __launch_bounds__(32 * warps)
    paged_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const Shares equal_shares,
                 const int heads_each) {
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
    __syncwarp();  // the warp's barriers are there for all of its lanes
    ptx::let_next_launch_begin();
    ptx::wait_for_launch_before();

    constexpr int rows_each = row_tiles * tile;
    const Shares shares = equal ? equal_shares : shares_by_length(params, heads_each, warps);
    const int share_begin = shares.begin(blockIdx.x), share_end = shares.begin(blockIdx.x + 1);
    if (share_begin == share_end) return;
    Head head = equal ? head_of<true>(params, shares, share_begin, rows_each)
                      : find_head(params, share_begin, heads_each, rows_each);
    WarpState<d_head, row_tiles> state;
    begin<T>(state, params, head);

    UnitList<equal, box> units{.head = head, .number = share_begin + warp + lane * warps};
    units.further = units.look_up(params, share_end, warps, rows_each);
    int step = 0;  // of the warp's units
    const auto load_next_K = [&units, &own, &maps, &params, &step, K_full, share_end] {
        if (step % 32 == 0) {
            units.now = units.further;
            units.further = units.look_up(params, share_end, warps, rows_each);
        }
        units.load(own.K, K_full, maps.K, step);
    };
    load_next_K();
    units.load(own.V, V_full, maps.V, step);

    uint32_t phase = 0;
    int number = share_begin + warp;  // of the unit that comes next
    while (true) {
        const int head_end = min(head.end, share_end), first_end = head.length + 1 - params.Nq;
        if (head_end < share_end && warp == 0) {
            Head next_head = head;
            move_to<equal>(next_head, params, head_end, rows_each);
            prefetch_Q<T, d_head>(params, next_head);
        }
        for (; number < head_end; number += warps) {
            const int key = (number - head.begin) * unit;
            const bool has_keys = key < head.length;
            float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
            if (has_keys) {
                ptx::mbarrier_wait(K_full, phase);
                multiply_QK<box>(S, own.K, state);
            }
            __syncwarp();  // all lanes have read K
            ++step;
            load_next_K();

            if (has_keys) {
                mask(S, state, key, first_end, params.scale * log2_e);
                online_softmax(S, state);
                ptx::mbarrier_wait(V_full, phase);
                if (!equal && key + unit > head.length) clear_rows<box>(own.V, head.length - key);
                multiply_PV<box>(state, S, own.V);
                phase ^= 1;
            }
            __syncwarp();  // all lanes have read V
            units.load(own.V, V_full, maps.V, step);
        }

        share(shared.results, state);
        __syncthreads();  // the results are there for all
        finish(shared, params, shares, head, params.B * heads_each);
        if (head_end == share_end) return;
        __syncthreads();  // all have read the results
        move_to<equal>(head, params, head_end, rows_each);
        begin<T>(state, params, head);
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

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile;
    const bool whole_heads = equal_pieces(params) && plan.extra == 0 && plan.each % plan.head_units == 0;
    flash::DecodeTraits traits{.splits = plan.blocks, .page_multiple = page_part, .optional_lengths = true};
    if (whole_heads) return traits;
    traits.zeroed_bytes = counter_bytes(plan.heads);
    const size_t slots = size_t(plan.heads) + plan.blocks;
    traits.workspace_bytes = traits.zeroed_bytes + slots * slot_bytes(rows, params.d_head);
    return traits;
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const Shares, const int>;

// Rows that a copy brings: a unit, or as many as lie in one page of any size.
static int box_of(const FlashDecodeParams &params) {
    return params.block_table && params.page_size % unit ? page_part : unit;
}

template <typename T, int d_head, int row_tiles, int warps>
static Kernel instance(const FlashDecodeParams &params, const Plan &plan) {
    auto entry = paged_kernel<T, d_head, row_tiles, warps, false, unit>;
    if (equal_pieces(params)) entry = paged_kernel<T, d_head, row_tiles, warps, true, unit>;
    if (box_of(params) == page_part) entry = paged_kernel<T, d_head, row_tiles, warps, false, page_part>;
    return {entry, dim3(plan.blocks), 32 * warps,
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
    if (status == FLASH_OK) status = make_plan("Paged KV", *params, plan);
    if (status == FLASH_OK) status = flash::check(params, limits_with(plan.name), traits(*params, plan));
    CacheMaps maps;
    if (status == FLASH_OK) status = make_cache_maps(*params, box_of(*params), maps);
    if (status != FLASH_OK) return status;
    const Shares shares{.head_units = plan.head_units, .each = plan.each, .extra = plan.extra};
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps, shares, plan.heads / params->B);
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    FlashStatus status = flash::check_sizes(params, limits_with("any"), page_part);
    if (status == FLASH_OK) status = make_plan("Paged KV", *params, plan);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(plan.name), traits(*params, plan), main, description);
}
