// Short ends. Reading K and V takes most of the time of a long problem. A short one spends more time before the first
// key has arrived and after the last one: this stage shortens both ends.
//
// At the beginning: the launch may begin while the one before it is ending. Q is asked for first, because it would
// arrive last behind K and V. TMA brings a unit of 32 keys as one box, and one thread asks for it in one instruction.
// A warp has one buffer for K and one for V, each as large as a unit, and asks for the next unit's K when it has
// multiplied this one's, for V likewise: few bytes are then left to compute when the last ones arrive.
// At the end: the last of the blocks that share a head merges their parts, so there is no second kernel.

#include "decode_maps.h"
#include "decode_unit.cuh"
#include "launch_decode.h"

constexpr int warps = 8, threads = 32 * warps;
constexpr int blocks_each = 1;            // that a multiprocessor holds, if the sequences are divided
constexpr int least_keys = warps * unit;  // of a part of the longest sequence: a unit for each warp
constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// What a block works on.
struct Part {
    int kv_head, batch;
    int head;              // of all; one whose rows of Q need several blocks counts as several
    int first_row, rows;   // of the head's packed rows: row r is row r % Nq of head r / Nq of the group
    int64_t first_number;  // of the first row, among the rows of all heads
    int length;            // of the sequence
    int begin, end;        // its keys; begin is a multiple of unit
    int split;
};

__device__ Part part_of(const FlashDecodeParams &params, int splits, int rows_each) {
    const int row_blocks = gridDim.x / splits, kv_head = blockIdx.y, batch = blockIdx.z, split = blockIdx.x % splits;
    const int kv_heads_before = batch * params.Hkv + kv_head, first_row = blockIdx.x / splits * rows_each;
    const int rows = params.Hq / params.Hkv * params.Nq, length = params.lengths[batch];
    const int units = (length + unit - 1) / unit, part_keys = (units + splits - 1) / splits * unit;
    return {.kv_head = kv_head,
            .batch = batch,
            .head = kv_heads_before * row_blocks + first_row / rows_each,
            .first_row = first_row,
            .rows = min(rows - first_row, rows_each),
            .first_number = static_cast<int64_t>(kv_heads_before) * rows + first_row,
            .length = length,
            .begin = split * part_keys,
            .end = min((split + 1) * part_keys, length),
            .split = split};
}

// ---- load ----

// One warp's buffers.
template <typename T, int d_head>
struct Buffers {
    T K[unit * d_head];  // [d_head / panel][unit][panel], as TMA brings it
    T V[unit * d_head];  // the same
};

// Brings a unit of K, or of V, from `key` on into a buffer; to be called by one lane. A unit lies in one page.
template <typename T, int elements>
__device__ void load_unit(T (&buffer)[elements], uint64_t *full, const CUtensorMap &map,
                          const FlashDecodeParams &params, const Part &part, int key) {
    int row = key, block = part.batch;
    if (params.block_table) {
        block = params.block_table[static_cast<int64_t>(part.batch) * params.max_pages + key / params.page_size];
        row = key % params.page_size;
    }
    ptx::mbarrier_arrive_expect_tx(full, elements * sizeof(T));
    ptx::tma_load(buffer, &map, full, 0, row, 0, part.kv_head, block);
}

// ---- Q ----

// Asks for the rows of Q, which the lanes need as they lie in memory, and sets out with no keys.
template <typename T, int d_head, int row_tiles>
__device__ void begin(WarpState<d_head, row_tiles> &state, const FlashDecodeParams &params, const Part &part) {
    const int lane = threadIdx.x % 32, group = params.Hq / params.Hkv;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        const int own = t * tile + lane / 4, row = part.first_row + own, head = part.kv_head * group + row / params.Nq;
        const T *from = static_cast<const T *>(params.Q.data) + part.batch * params.Q.stride_batch +
                        head * params.Q.stride_head + row % params.Nq * params.Q.stride_row + lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                state.Q[t][k][half] =
                    own < part.rows ? *reinterpret_cast<const uint32_t *>(from + 16 * k + 8 * half) : 0;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int query = (part.first_row + t * tile + lane % 4 * 2 + j) % params.Nq;
            state.row_max[t][j] = -INFINITY;
            state.row_sum[t][j] = 0.0f;
            state.end[t][j] = min(part.length + 1 + query - params.Nq, part.end);  // the last row sees all
        }
    }
}

// ---- mask ----

// Scores in powers of 2; -infinity where a row does not see a key. S[m][t][x] is of key 16 m + x / 2 * 8 + lane / 4.
template <int d_head, int row_tiles>
__device__ void mask(float (&S)[m_tiles][row_tiles][4], const WarpState<d_head, row_tiles> &state, int key,
                     float scale_log2) {
    const int first = key + threadIdx.x % 32 / 4;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int t = 0; t < row_tiles; ++t)
#pragma unroll
            for (int x = 0; x < 4; ++x)
                S[m][t][x] = first + m * 16 + x / 2 * 8 < state.end[t][x % 2] ? S[m][t][x] * scale_log2 : -INFINITY;
}

// ---- merge ----

// What the warps leave for one another when their keys are over.
template <int d_head, int row_tiles>
struct Results {
    float O[warps][row_tiles * tile][d_head + 4];  // the rows 16 bytes apart in the banks
    float row_max[warps][row_tiles * tile], row_sum[warps][row_tiles * tile];
};

// What part of the whole the sums of a warp or of a part are: those without keys count nothing. exp2 of their -infinity
// less a whole without keys would be a NaN.
__device__ float weight_of(float row_max, float whole_max) {
    return row_max == -INFINITY ? 0.0f : ptx::exp2(row_max - whole_max);
}

// a + weight * b
__device__ float4 add_weighted(float4 a, float weight, float4 b) {
    return make_float4(a.x + weight * b.x, a.y + weight * b.y, a.z + weight * b.z, a.w + weight * b.w);
}

// Four columns of a row's O, not divided by the sum, and the row's maximum and sum.
struct RowPiece {
    float4 O = {};
    float row_max = -INFINITY, row_sum = 0.0f;
};

// The warp's sums, for the others.
template <int d_head, int row_tiles>
__device__ void share(Results<d_head, row_tiles> &results, const WarpState<d_head, row_tiles> &state) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = t * tile + lane % 4 * 2 + j;
            float row_sum = state.row_sum[t][j];
#pragma unroll
            for (int step = 4; step < 32; step *= 2) row_sum += __shfl_xor_sync(0xffffffff, row_sum, step);
            if (lane / 4 == 0) {
                results.row_max[warp][row] = state.row_max[t][j];
                results.row_sum[warp][row] = row_sum;
            }
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {
                results.O[warp][row][16 * k + lane / 4] = state.O[t][k][j];
                results.O[warp][row][16 * k + 8 + lane / 4] = state.O[t][k][j + 2];
            }
        }
}

// Puts the warps' results of four columns of a row together.
template <int d_head, int row_tiles>
__device__ RowPiece merge_warps(const Results<d_head, row_tiles> &results, int row, int column) {
    RowPiece merged;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) merged.row_max = fmaxf(merged.row_max, results.row_max[warp][row]);
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) {
        const float weight = weight_of(results.row_max[warp][row], merged.row_max);
        merged.row_sum += weight * results.row_sum[warp][row];
        merged.O = add_weighted(merged.O, weight, *reinterpret_cast<const float4 *>(&results.O[warp][row][column]));
    }
    return merged;
}

// ---- parts ----

// The workspace. A slot has what a block leaves of a head.
template <int d_head, int row_tiles>
struct Parts {
    uint32_t *arrived;                     // [heads]: blocks that have left their part; zeros between the launches
    float (*O)[row_tiles * tile][d_head];  // [slots]: not divided by the sum
    float2 (*softmax)[row_tiles * tile];   // [slots]: row_max and row_sum
};

// Of the counters, rounded up so that the slots are aligned.
__host__ __device__ inline size_t counter_bytes(int64_t heads) {
    return (heads * sizeof(uint32_t) + 15) / 16 * 16;
}

// Of a slot for `rows` rows.
inline size_t slot_bytes(int rows, int d_head) {
    return rows * (d_head * sizeof(float) + sizeof(float2));
}

template <int d_head, int row_tiles>
__device__ Parts<d_head, row_tiles> parts_in(void *workspace, int64_t heads, int64_t slots) {
    Parts<d_head, row_tiles> parts;
    auto *O = static_cast<unsigned char *>(workspace) + counter_bytes(heads);
    auto *softmax = O + slots * sizeof(*parts.O);
    parts.arrived = static_cast<uint32_t *>(workspace);
    parts.O = reinterpret_cast<decltype(parts.O)>(O);
    parts.softmax = reinterpret_cast<decltype(parts.softmax)>(softmax);
    return parts;
}

// Merges the warps' results and stores them as a part: a thread has four columns of a row at a time.
template <int d_head, int row_tiles>
__device__ void store_part(const Results<d_head, row_tiles> &results, const Parts<d_head, row_tiles> &parts,
                           int64_t slot, int rows) {
    for (int i = threadIdx.x; i < rows * (d_head / 4); i += threads) {
        const int row = i / (d_head / 4), column = i % (d_head / 4) * 4;
        const RowPiece merged = merge_warps(results, row, column);
        *reinterpret_cast<float4 *>(&parts.O[slot][row][column]) = merged.O;
        if (column == 0) parts.softmax[slot][row] = make_float2(merged.row_max, merged.row_sum);
    }
}

// Tells that this block has left its part of a head: true in the last one of the `blocks` that share it. That block
// then sees the parts of the others: the barrier and the counter, which releases and acquires, order what they wrote
// before what it reads.
__device__ bool is_last_block(bool &last_block, uint32_t &arrived, int blocks) {
    __syncthreads();  // all threads have stored their share of the part
    if (threadIdx.x == 0) {
        last_block = ptx::add_acq_rel(&arrived, 1) == blocks - 1;
        if (last_block) arrived = 0;  // for the next launch
    }
    __syncthreads();
    return last_block;
}

// Puts `count` parts where the warps' results were: each warp merges every eighth one. So that a lane waits for memory
// once and not once for each row, it asks for its columns of all rows together.
template <int d_head, int row_tiles>
__device__ void gather_parts(Results<d_head, row_tiles> &results, const Parts<d_head, row_tiles> &parts,
                             int64_t first_slot, int count, int rows) {
    constexpr int row_lanes = d_head / 4, pieces = row_tiles * tile * row_lanes / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % row_lanes * 4;
    RowPiece sums[pieces];  // of row piece * 32 / row_lanes + lane / row_lanes
    for (int number = warp; number < count; number += warps) {
        RowPiece part[pieces];
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) {
            const int row = piece * 32 / row_lanes + lane / row_lanes;
            if (row < rows) {
                const float2 softmax = parts.softmax[first_slot + number][row];
                part[piece].O = *reinterpret_cast<const float4 *>(&parts.O[first_slot + number][row][column]);
                part[piece].row_max = softmax.x;
                part[piece].row_sum = softmax.y;
            }
        }
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) {
            RowPiece &sum = sums[piece];
            const float new_max = fmaxf(sum.row_max, part[piece].row_max);
            const float old_weight = weight_of(sum.row_max, new_max), weight = weight_of(part[piece].row_max, new_max);
            sum.row_max = new_max;
            sum.row_sum = sum.row_sum * old_weight + weight * part[piece].row_sum;
            sum.O = add_weighted(add_weighted({}, old_weight, sum.O), weight, part[piece].O);
        }
    }
#pragma unroll
    for (int piece = 0; piece < pieces; ++piece) {
        const int row = piece * 32 / row_lanes + lane / row_lanes;
        *reinterpret_cast<float4 *>(&results.O[warp][row][column]) = sums[piece].O;
        if (column == 0) {
            results.row_max[warp][row] = sums[piece].row_max;
            results.row_sum[warp][row] = sums[piece].row_sum;
        }
    }
}

// ---- store ----

// Merges the warps' results and stores O and the log-sum-exp.
template <typename T, int d_head, int row_tiles>
__device__ void store_O(const Results<d_head, row_tiles> &results, const FlashDecodeParams &params, const Part &part) {
    const int group = params.Hq / params.Hkv;
    for (int i = threadIdx.x; i < part.rows * (d_head / 4); i += threads) {
        const int r = i / (d_head / 4), column = i % (d_head / 4) * 4;
        const RowPiece merged = merge_warps(results, r, column);
        const float inverse = merged.row_sum > 0.0f ? 1.0f / merged.row_sum : 0.0f;
        const int row = part.first_row + r, head = part.kv_head * group + row / params.Nq;
        T *to = static_cast<T *>(params.O.data) + part.batch * params.O.stride_batch + head * params.O.stride_head +
                row % params.Nq * params.O.stride_row + column;
        *reinterpret_cast<uint2 *>(to) = make_uint2(pack<T>(merged.O.x * inverse, merged.O.y * inverse),
                                                    pack<T>(merged.O.z * inverse, merged.O.w * inverse));
        if (params.log_sum_exp && column == 0)
            params.log_sum_exp[part.first_number + r] =
                merged.row_sum > 0.0f ? merged.row_max * ln_2 + logf(merged.row_sum) : -INFINITY;
    }
}

// ---- kernel ----

template <typename T, int d_head, int row_tiles>
struct SharedStorage {
    Buffers<T, d_head> buffers[warps];
    Results<d_head, row_tiles> results;
    uint64_t K_full[warps], V_full[warps];  // complete a phase when a unit has arrived
    bool last_block;
};

// grid: (splits * blocks that share a head's rows of Q, Hkv, B)
template <typename T, int d_head, int row_tiles>
__global__ void __launch_bounds__(threads)
    short_ends_kernel(const FlashDecodeParams params, const __grid_constant__ CacheMaps maps, const int splits) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, row_tiles> *>(shared_bytes);
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

    const Part part = part_of(params, splits, row_tiles * tile);
    WarpState<d_head, row_tiles> state;
    begin<T>(state, params, part);

    constexpr int step = warps * unit;
    int key = part.begin + warp * unit;
    if (lane == 0 && key < part.end) {
        load_unit(own.K, K_full, maps.K, params, part, key);
        load_unit(own.V, V_full, maps.V, params, part, key);
    }
    for (uint32_t phase = 0; key < part.end; key += step, phase ^= 1) {
        const int next_key = key + step;
        float S[m_tiles][row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
        ptx::mbarrier_wait(K_full, phase);
        multiply_QK<unit>(S, own.K, state);
        __syncwarp();  // all lanes have read K
        if (lane == 0 && next_key < part.end) load_unit(own.K, K_full, maps.K, params, part, next_key);

        mask(S, state, key, params.scale * log2_e);
        online_softmax(S, state);

        ptx::mbarrier_wait(V_full, phase);
        if (key + unit > part.length) clear_rows<unit>(own.V, part.length - key);
        multiply_PV<unit>(state, S, own.V);
        __syncwarp();  // all lanes have read V
        if (lane == 0 && next_key < part.end) load_unit(own.V, V_full, maps.V, params, part, next_key);
    }

    share(shared.results, state);
    __syncthreads();  // the results are there for all
    if (splits > 1) {
        const int heads = params.B * params.Hkv * (gridDim.x / splits);
        const auto parts = parts_in<d_head, row_tiles>(params.workspace, heads, int64_t{heads} * splits);
        const int64_t first_slot = int64_t{part.head} * splits;
        store_part(shared.results, parts, first_slot + part.split, part.rows);
        if (!is_last_block(shared.last_block, parts.arrived[part.head], splits)) return;
        gather_parts(shared.results, parts, first_slot, splits, part.rows);
        __syncthreads();  // the parts are there for all
    }
    store_O<T>(shared.results, params, part);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Short ends",
                                  .min_compute = 90,
                                  .Br = 0,
                                  .Bc = unit,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .log_sum_exp = true};

// Blocks that share a head's rows of Q: a block has one tile of them, or two.
static int row_blocks(const FlashDecodeParams &params) {
    return (params.Hq / params.Hkv * params.Nq + 2 * tile - 1) / (2 * tile);
}

static bool one_tile(const FlashDecodeParams &params) {
    return params.Hq / params.Hkv * params.Nq <= tile;
}

static flash::DecodeTraits traits(const FlashDecodeParams &params) {
    const int64_t heads = static_cast<int64_t>(params.B) * params.Hkv * row_blocks(params);
    const int splits = flash::splits_for(heads, blocks_each, params.Nmax, least_keys);
    if (splits == 1) return {.page_multiple = unit};
    const int rows = one_tile(params) ? tile : 2 * tile;
    return {.workspace_bytes = counter_bytes(heads) + heads * splits * slot_bytes(rows, params.d_head),
            .splits = splits,
            .page_multiple = unit,
            .zeroed_bytes = counter_bytes(heads)};
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const CacheMaps, const int>;

static Kernel plan(const FlashDecodeParams &params, int splits) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        const dim3 grid(splits * row_blocks(params), params.Hkv, params.B);
        const Kernel one{short_ends_kernel<T, d_head, 1>, grid, threads, sizeof(SharedStorage<T, d_head, 1>)};
        const Kernel two{short_ends_kernel<T, d_head, 2>, grid, threads, sizeof(SharedStorage<T, d_head, 2>)};
        return one_tile(params) ? one : two;
    });
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits, unit);
    if (status == FLASH_OK) status = flash::check(params, limits, traits(*params));
    CacheMaps maps;
    if (status == FLASH_OK) status = make_cache_maps(*params, unit, maps);
    if (status != FLASH_OK) return status;
    const int splits = traits(*params).splits;
    return flash::launch_early(plan(*params, splits), stream, *params, maps, splits);
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits, unit);
    if (status != FLASH_OK) return status;
    const flash::DecodeTraits needed = traits(*params);
    return flash::describe(limits, needed, flash::untyped(plan(*params, needed.splits)), description);
}
