// Lean. Stage 53 divides every sequence into the same number of parts, and has code for all that may come. Here the
// blocks share the work equally: the units of all heads stand in one row, and each block takes the same number of them.
// It may begin within a head and end within another. So any number of blocks can share the work, no more than keep the
// memory busy: the fewer they are, the fewer parts have to be merged, and none at all where each block has whole heads.
// How many, and how many warps each has, a table says.
//
// An instance for sequences that are all Nmax long and lie in one piece has no code for lengths and pages: in a short
// kernel each phase runs once, and instructions that are not there need not be fetched. Only the units at a sequence's
// end are masked.

#include "decode_maps.h"
#include "decode_parts.cuh"
#include "decode_plan.cuh"
#include "decode_unit.cuh"
#include "launch_decode.h"

constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// ---- shares ----

// Who has which units. They are numbered over all heads, each of which counts as many as Nmax keys have.
struct Shares {
    int head_units;   // of a head
    int each, extra;  // units of a block; the first `extra` blocks have one more

    __device__ int begin(int block) const { return block * each + min(block, extra); }

    // Whose share the unit is in.
    __device__ int block_of(int number) const {
        const int longer = extra * (each + 1);  // units of the blocks that have one more
        return number < longer ? number / (each + 1) : extra + (number - longer) / each;
    }
};

// A head of K and V with the rows of Q that a block computes at a time. With more rows it counts as several heads.
struct Head {
    int number;      // of all
    int begin, end;  // its units
    int kv_head, batch;
    int first_row, rows;  // of the packed rows: row r is row r % Nq of head r / Nq of the group
    int length;           // of the sequence
};

// The head that a unit is of, but for its length.
__device__ Head place_of(const FlashDecodeParams &params, const Shares &shares, int unit_number, int rows_each) {
    const int group_rows = params.Hq / params.Hkv * params.Nq, row_blocks = (group_rows + rows_each - 1) / rows_each;
    Head head;
    head.number = unit_number / shares.head_units;
    head.begin = head.number * shares.head_units;
    head.end = head.begin + shares.head_units;
    const int heads_before = head.number / row_blocks;
    head.first_row = head.number % row_blocks * rows_each;
    head.rows = min(group_rows - head.first_row, rows_each);
    head.batch = heads_before / params.Hkv;
    head.kv_head = heads_before % params.Hkv;
    return head;
}

template <bool equal>
__device__ int length_of(const FlashDecodeParams &params, int batch) {
    return equal || !params.lengths ? params.Nmax : params.lengths[batch];
}

template <bool equal>
__device__ Head head_of(const FlashDecodeParams &params, const Shares &shares, int unit_number, int rows_each) {
    Head head = place_of(params, shares, unit_number, rows_each);
    head.length = length_of<equal>(params, head.batch);
    return head;
}

// ---- Q ----

// A row of Q of those of a head.
template <typename T>
__device__ const T *Q_row(const FlashDecodeParams &params, const Head &head, int own) {
    const int row = head.first_row + own, q_head = head.kv_head * (params.Hq / params.Hkv) + row / params.Nq;
    return static_cast<const T *>(params.Q.data) + head.batch * params.Q.stride_batch + q_head * params.Q.stride_head +
           row % params.Nq * params.Q.stride_row;
}

// Has the head's rows brought into L2, where they are close when the block begins with it.
template <typename T, int d_head>
__device__ void prefetch_Q(const FlashDecodeParams &params, const Head &head) {
    const int lane = threadIdx.x % 32, row = lane / (d_head / panel);
    if (row < head.rows) ptx::prefetch_L2(Q_row<T>(params, head, row) + lane % (d_head / panel) * panel);
}

// Asks for the rows of Q, which the lanes need as they lie in memory, and sets out with no keys.
template <typename T, int d_head, int row_tiles>
__device__ void begin(WarpState<d_head, row_tiles> &state, const FlashDecodeParams &params, const Head &head) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        const int own = t * tile + lane / 4;
        const T *from = Q_row<T>(params, head, own) + lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                state.Q[t][k][half] =
                    own < head.rows ? *reinterpret_cast<const uint32_t *>(from + 16 * k + 8 * half) : 0;
#pragma unroll
            for (int x = 0; x < 4; ++x) state.O[t][k][x] = 0.0f;
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int query = (head.first_row + t * tile + lane % 4 * 2 + j) % params.Nq;
            state.row_max[t][j] = -INFINITY;
            state.row_sum[t][j] = 0.0f;
            state.end[t][j] = head.length + 1 + query - params.Nq;  // the last row sees all
        }
    }
}

// ---- load ----

// One warp's buffers.
template <typename T, int d_head>
struct Buffers {
    T K[unit * d_head];  // [d_head / panel][unit][panel], as TMA brings it
    T V[unit * d_head];  // the same
};

// The unit that a warp asks for next: of its block's share every `warps`-th.
template <bool equal>
struct NextUnit {
    Head head;
    int number;
    bool has_keys = false;  // else there is nothing to be loaded, in the share or before the sequence's end

    __device__ int key() const { return (number - head.begin) * unit; }

    // Brings the unit of K, or of V, into a buffer; to be called by the whole warp. A unit lies in one page.
    template <typename T, int elements>
    __device__ void load(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map,
                         const FlashDecodeParams &params) const {
        if (!has_keys || threadIdx.x % 32 != 0) return;
        int row = key(), block = head.batch;
        if (!equal && params.block_table) {
            block = params.block_table[static_cast<int64_t>(block) * params.max_pages + row / params.page_size];
            row %= params.page_size;
        }
        ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
        ptx::tma_load(buffer, &map, full, 0, row, 0, head.kv_head, block);
    }
};

// ---- mask ----

// Scores in powers of 2; where the unit reaches the end of a row's keys, -infinity from there on. S[m][t][x] is of key
// 16 m + x / 2 * 8 + lane / 4.
template <int d_head, int row_tiles>
__device__ void mask(float (&S)[m_tiles][row_tiles][4], const WarpState<d_head, row_tiles> &state, int key,
                     int first_end, float scale_log2) {
    const int first = key + threadIdx.x % 32 / 4;
    const bool whole = key + unit <= first_end;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int t = 0; t < row_tiles; ++t)
#pragma unroll
            for (int x = 0; x < 4; ++x) S[m][t][x] *= scale_log2;
    if (whole) return;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int t = 0; t < row_tiles; ++t)
#pragma unroll
            for (int x = 0; x < 4; ++x)
                if (first + m * 16 + x / 2 * 8 >= state.end[t][x % 2]) S[m][t][x] = -INFINITY;
}

// ---- store ----

// Stores O and the log-sum-exp. merge: gives four columns of a row.
template <typename T, int d_head, int threads, typename Merge>
__device__ void store_O(const FlashDecodeParams &params, const Head &head, const Merge &merge) {
    const int group = params.Hq / params.Hkv;
    const int64_t kv_heads_before = static_cast<int64_t>(head.batch) * params.Hkv + head.kv_head;
    for (int i = threadIdx.x; i < head.rows * (d_head / 4); i += threads) {
        const int own = i / (d_head / 4), column = i % (d_head / 4) * 4;
        const RowPiece merged = merge(own, column);
        const float inverse = merged.row_sum > 0.0f ? 1.0f / merged.row_sum : 0.0f;
        const int row = head.first_row + own, q_head = head.kv_head * group + row / params.Nq;
        T *to = static_cast<T *>(params.O.data) + head.batch * params.O.stride_batch + q_head * params.O.stride_head +
                row % params.Nq * params.O.stride_row + column;
        *reinterpret_cast<uint2 *>(to) = make_uint2(pack<T>(merged.O.x * inverse, merged.O.y * inverse),
                                                    pack<T>(merged.O.z * inverse, merged.O.w * inverse));
        if (params.log_sum_exp && column == 0)
            params.log_sum_exp[kv_heads_before * group * params.Nq + row] =
                merged.row_sum > 0.0f ? merged.row_max * ln_2 + logf(merged.row_sum) : -INFINITY;
    }
}

// ---- kernel ----

template <typename T, int d_head, int row_tiles, int warps>
struct SharedStorage {
    Buffers<T, d_head> buffers[warps];
    Results<warps, d_head, row_tiles> results;
    uint64_t K_full[warps], V_full[warps];  // complete a phase when a unit has arrived
    bool last_block;
};

// The end of a head in this block: stores it, or leaves the block's part of it and merges if the block is the last one.
// Its part is in slot block + head. That is another one for each part, because from a part to the next one, in the
// order of their units, the block or the head is a later one; and a head's parts lie side by side.
template <typename T, int d_head, int row_tiles, int warps>
__device__ void finish(SharedStorage<T, d_head, row_tiles, warps> &shared, const FlashDecodeParams &params,
                       const Shares &shares, const Head &head, int heads) {
    if (shares.begin(blockIdx.x) > head.begin || shares.begin(blockIdx.x + 1) < head.end) {
        const int first_block = shares.block_of(head.begin), blocks = shares.block_of(head.end - 1) - first_block + 1;
        const auto parts = parts_in<d_head, row_tiles>(params.workspace, heads, int64_t{heads} + gridDim.x);
        store_part(shared.results, parts, int64_t{head.number} + blockIdx.x, head.rows);
        if (!is_last_block(shared.last_block, parts.arrived[head.number], blocks)) return;
        gather_parts(shared.results, parts, int64_t{head.number} + first_block, blocks, head.rows);
        __syncthreads();  // the parts are there for all
    }
    const auto merge = [&shared](int row, int column) { return merge_warps(shared.results, row, column); };
    store_O<T, d_head, 32 * warps>(params, head, merge);
}

// grid: as many blocks as share the work. equal: all sequences are Nmax long and lie in one piece. With room for one
// block, __launch_bounds__ leaves the compiler all registers. By itself it takes so few that gather_parts() asks for
// one row after the other, and waits for each.
template <typename T, int d_head, int row_tiles, int warps, bool equal>
__global__ void __launch_bounds__(32 * warps, 1)
    lean_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const Shares shares,
                const int heads) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, row_tiles, warps> *>(shared_bytes);
    const int warp = threadIdx.x / 32;
    Buffers<T, d_head> &own = shared.buffers[warp];
    uint64_t *const K_full = &shared.K_full[warp], *const V_full = &shared.V_full[warp];

    // What needs nothing from the launch before this one: Q, too, can be brought into L2, where that launch may still
    // change it.
    if (threadIdx.x % 32 == 0) {
        ptx::mbarrier_init(K_full, 1);
        ptx::mbarrier_init(V_full, 1);
        ptx::fence_mbarrier_init();
        ptx::prefetch_tensor_map(&maps.K);
        ptx::prefetch_tensor_map(&maps.V);
    }
    __syncwarp();  // the warp's barriers are there for all of its lanes
    constexpr int rows_each = row_tiles * tile;
    int number = shares.begin(blockIdx.x);  // of the unit that comes next
    const int share_end = shares.begin(blockIdx.x + 1);
    Head head = place_of(params, shares, number, rows_each);
    if (warp == 0) prefetch_Q<T, d_head>(params, head);
    ptx::let_next_launch_begin();
    ptx::wait_for_launch_before();

    head.length = length_of<equal>(params, head.batch);
    WarpState<d_head, row_tiles> state;
    begin<T>(state, params, head);

    NextUnit<equal> next{.head = head, .number = number + warp};
    const auto find_next = [&next, &params, &shares, share_end, warp] {
        if (next.number < share_end && next.number >= next.head.end) {
            next.head = head_of<equal>(params, shares, next.number, rows_each);
            if (warp == 0) prefetch_Q<T, d_head>(params, next.head);
        }
        next.has_keys = next.number < share_end && (equal || next.key() < next.head.length);
    };
    find_next();
    next.load(own.K, K_full, maps.K, params);
    next.load(own.V, V_full, maps.V, params);

    uint32_t phase = 0;
    number += warp;
    while (true) {
        const int head_end = min(head.end, share_end), first_end = head.length + 1 - params.Nq;
        for (; number < head_end; number += warps) {
            const bool has_keys = next.has_keys;
            const int key = (number - head.begin) * unit;
            float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
            next.number += warps;
            find_next();
            if (has_keys) {
                ptx::mbarrier_wait(K_full, phase);
                multiply_QK<unit>(S, own.K, state);
            }
            __syncwarp();  // all lanes have read K
            next.load(own.K, K_full, maps.K, params);

            if (has_keys) {
                mask(S, state, key, first_end, params.scale * log2_e);
                online_softmax(S, state);
                ptx::mbarrier_wait(V_full, phase);
                if (!equal && key + unit > head.length) clear_rows<unit>(own.V, head.length - key);
                multiply_PV<unit>(state, S, own.V);
                phase ^= 1;
            }
            __syncwarp();  // all lanes have read V
            next.load(own.V, V_full, maps.V, params);
        }

        share(shared.results, state);
        __syncthreads();  // the results are there for all
        finish(shared, params, shares, head, heads);
        if (head_end == share_end) return;
        __syncthreads();  // all have read the results
        head = head_of<equal>(params, shares, head_end, rows_each);
        begin<T>(state, params, head);
    }
}

// ---- launch ----

constexpr char title[] = "Lean";

static flash::DecodeTraits traits(const FlashDecodeParams &params, const Plan &plan) {
    const int rows = one_tile(params) ? tile : 2 * tile;
    const bool whole_heads = plan.extra == 0 && plan.each % plan.head_units == 0;
    flash::DecodeTraits traits{.splits = plan.blocks, .page_multiple = unit, .optional_lengths = true};
    if (whole_heads) return traits;
    traits.zeroed_bytes = counter_bytes(plan.heads);
    const size_t slots = size_t(plan.heads) + plan.blocks;
    traits.workspace_bytes = traits.zeroed_bytes + slots * slot_bytes(rows, params.d_head);
    return traits;
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const Shares, const int>;

template <typename T, int d_head, int row_tiles, int warps>
static Kernel instance(const FlashDecodeParams &params, const Plan &plan) {
    const auto entry = equal_pieces(params) ? lean_kernel<T, d_head, row_tiles, warps, true>
                                            : lean_kernel<T, d_head, row_tiles, warps, false>;
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
    FlashStatus status = make_plan(title, params, unit, plan);
    if (status == FLASH_OK) status = flash::check(params, limits_with(title, plan.name), traits(*params, plan));
    CacheMaps maps;
    if (status == FLASH_OK) status = make_cache_maps(*params, unit, maps);
    if (status != FLASH_OK) return status;
    const Shares shares{.head_units = plan.head_units, .each = plan.each, .extra = plan.extra};
    return flash::launch_early(kernel_of(*params, plan), stream, *params, maps, shares, plan.heads);
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    static thread_local Plan plan;  // whose name the description points to
    const FlashStatus status = make_plan(title, params, unit, plan);
    if (status != FLASH_OK) return status;
    const flash::Launch main = flash::untyped(kernel_of(*params, plan));
    return flash::describe(limits_with(title, plan.name), traits(*params, plan), main, description);
}
