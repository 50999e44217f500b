// Packed GQA. All heads of Q that share a head of K and V are computed by one block, which reads K and V once for all
// of them, and the products run on the tensor cores.
//
// The heads' rows of Q, `rows` in number, stand side by side as the columns of the second operand: Sᵀ = K Qᵀ has 16
// keys by 8 rows of Q in one mma, and Oᵀ = Vᵀ Pᵀ 16 columns by 8 rows. With Q as the first operand half of the 16 rows
// would be empty. Each warp is by itself: it has every fourth unit of 16 keys of the block's part, a ring of buffers of
// its own, which it fills with cp.async, and waits for no other warp until its keys are over. The parts are merged as
// in stage split_kv.

#include "launch_decode.h"
#include "numbers.cuh"
#include "ptx.cuh"
#include "ptx_decode.cuh"

constexpr int warps = 4, threads = 32 * warps;
constexpr int unit = 16;         // keys that a warp computes at a time, the rows of a first operand
constexpr int buffers = 3;       // of a unit of K and of V each, for each warp
constexpr int tile = 8;          // rows of Q in one second operand
constexpr int chunk = 8;         // elements in 16 bytes
constexpr int blocks_each = 1;   // that a multiprocessor holds, if the sequences are divided
constexpr int least_keys = 128;  // of a part of the longest sequence
constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// The workspace: what each part of each row of Q has come to. rows = B * Hq * Nq.
struct Workspace {
    float *O;         // [rows, splits, d_head], not divided by the sum
    float2 *softmax;  // [rows, splits]: row_max and row_sum
};

template <int d_head>
__device__ Workspace workspace_of(const FlashDecodeParams &params, int splits) {
    float *O = static_cast<float *>(params.workspace);
    const int64_t rows = static_cast<int64_t>(params.B) * params.Hq * params.Nq;
    return {O, reinterpret_cast<float2 *>(O + rows * splits * d_head)};
}

// The number of a row of Q among all.
__device__ int64_t row_number(const FlashDecodeParams &params, int row, int head, int batch) {
    return (static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + row;
}

// What a block works on.
struct Part {
    int kv_head, batch;
    int first_row;   // of the head's packed rows: row r is row r % Nq of head r / Nq of the group
    int length;      // of the sequence
    int begin, end;  // its keys; begin is a multiple of unit
};

__device__ Part part_of(const FlashDecodeParams &params, int splits, int rows_each) {
    const int length = params.lengths[blockIdx.z], split = blockIdx.x % splits, units = (length + unit - 1) / unit;
    const int part_keys = (units + splits - 1) / splits * unit, begin = split * part_keys;
    const int first_row = blockIdx.x / splits * rows_each;
    return {static_cast<int>(blockIdx.y),  static_cast<int>(blockIdx.z), first_row, length, begin,
            min(begin + part_keys, length)};
}

// ---- load ----

// One warp's ring of buffers.
template <typename T, int d_head>
struct Ring {
    T K[buffers][unit * d_head];  // [unit, d_head] each
    T V[buffers][unit * d_head];
};

// What the warps leave for one another when their keys are over.
template <int d_head, int row_tiles>
struct Results {
    float O[warps][row_tiles * tile][d_head + 4];  // the rows 16 bytes apart in the banks
    float row_max[warps][row_tiles * tile], row_sum[warps][row_tiles * tile];
};

template <typename T, int d_head, int row_tiles>
union SharedStorage {
    Ring<T, d_head> rings[warps];
    Results<d_head, row_tiles> results;
};

// Where element 8 * c of row `row` lies in a unit, as in stage swizzle.
template <int d_head>
__device__ int unit_offset(int row, int c) {
    return row * d_head + (c ^ row % 8) * chunk;
}

// Row `key` of a head of K or V, in its sequence or in the page that the block table names. A unit lies in one page.
template <typename T>
__device__ const T *key_row(const FlashDecodeParams &params, const FlashTensor &tensor, const Part &part, int key) {
    int64_t block = part.batch;
    int row = key;
    if (params.block_table) {
        block = params.block_table[static_cast<int64_t>(part.batch) * params.max_pages + key / params.page_size];
        row = key % params.page_size;
    }
    return static_cast<const T *>(tensor.data) + block * tensor.stride_batch + part.kv_head * tensor.stride_head +
           row * tensor.stride_row;
}

// Starts copying `keys` rows of K or V into a buffer; zeros arrive in place of the others, up to a whole unit.
template <typename T, int d_head>
__device__ void load_rows(T *buffer, const T *from, int64_t stride, int keys) {
    constexpr int chunks = d_head / chunk;
    const uint32_t to = ptx::shared_address(buffer);
#pragma unroll
    for (int i = threadIdx.x % 32; i < unit * chunks; i += 32) {
        const int row = i / chunks, c = i % chunks;
        const T *source = row < keys ? from + row * stride + c * chunk : from;
        ptx::cp_async_16(to + unit_offset<d_head>(row, c) * sizeof(T), source, row < keys ? 16 : 0);
    }
}

// Starts loading the unit of K and V from `key` on, if the part has it. The batch of copies is closed in any case, so
// that the warp can count batches.
template <typename T, int d_head>
__device__ void load_unit(Ring<T, d_head> &ring, int buffer, const FlashDecodeParams &params, const Part &part,
                          int key) {
    if (key < part.end) {
        const int keys = part.end - key;
        load_rows<T, d_head>(ring.K[buffer], key_row<T>(params, params.K, part, key), params.K.stride_row, keys);
        load_rows<T, d_head>(ring.V[buffer], key_row<T>(params, params.V, part, key), params.V.stride_row, keys);
    }
    ptx::cp_async_commit();
}

// ---- what a warp holds ----

// Columns are rows of Q: of a tile's 8 a lane has number lane % 4 * 2 and the next one.
template <int d_head, int row_tiles>
struct WarpState {
    uint32_t Q[row_tiles][d_head / 16][2];               // Qᵀ: [d_head, 8] a tile
    float row_max[row_tiles][2], row_sum[row_tiles][2];  // row_sum: of the lane's keys
    float O[row_tiles][d_head / 16][4] = {};             // Oᵀ: [d_head, 8] a tile
    int end[row_tiles][2];                               // the keys from here on the row does not see
};

// Loads the rows of Q, which the lanes need as they lie in memory, and sets out with no keys.
template <typename T, int d_head, int row_tiles>
__device__ void begin(WarpState<d_head, row_tiles> &state, const FlashDecodeParams &params, const Part &part) {
    const int lane = threadIdx.x % 32, group = params.Hq / params.Hkv, rows = group * params.Nq;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        const int row = part.first_row + t * tile + lane / 4, head = part.kv_head * group + row / params.Nq;
        const T *from = static_cast<const T *>(params.Q.data) + part.batch * params.Q.stride_batch +
                        head * params.Q.stride_head + row % params.Nq * params.Q.stride_row + lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < d_head / 16; ++k)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                state.Q[t][k][half] = row < rows ? *reinterpret_cast<const uint32_t *>(from + 16 * k + 8 * half) : 0;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int query = (part.first_row + t * tile + lane % 4 * 2 + j) % params.Nq;
            state.row_max[t][j] = -INFINITY;
            state.row_sum[t][j] = 0.0f;
            state.end[t][j] = min(part.length + 1 + query - params.Nq, part.end);  // the last row sees all
        }
    }
}

// ---- S = QKᵀ ----

// Sᵀ = K Qᵀ of one unit.
template <typename T, int d_head, int row_tiles>
__device__ void multiply_QK(float (&S)[row_tiles][4], const T *K, const WarpState<d_head, row_tiles> &state) {
    const int lane = threadIdx.x % 32;
    const uint32_t first = ptx::shared_address(K + unit_offset<d_head>(lane % 16, lane / 16));
#pragma unroll
    for (int k = 0; k < d_head / 16; ++k) {
        uint32_t A[4];
        ptx::ldmatrix_x4(A, first ^ 2 * k * chunk * static_cast<int>(sizeof(T)));
#pragma unroll
        for (int t = 0; t < row_tiles; ++t) ptx::mma_m16n8k16<T>(S[t], A, state.Q[t][k]);
    }
}

// ---- mask ----

// Scores in powers of 2; -infinity where a row does not see a key. S[t][x] is of key x / 2 * 8 + lane / 4.
template <int d_head, int row_tiles>
__device__ void mask(float (&S)[row_tiles][4], const WarpState<d_head, row_tiles> &state, int key, float scale_log2) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int x = 0; x < 4; ++x)
            S[t][x] = key + x / 2 * 8 + lane / 4 < state.end[t][x % 2] ? S[t][x] * scale_log2 : -INFINITY;
}

// ---- online softmax ----

// P in place of S. Row_max is the same in the eight lanes that share a column; row_sum is added up at the end.
template <int d_head, int row_tiles>
__device__ void online_softmax(float (&S)[row_tiles][4], WarpState<d_head, row_tiles> &state) {
#pragma unroll
    for (int t = 0; t < row_tiles; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float new_max = fmaxf(state.row_max[t][j], fmaxf(S[t][j], S[t][j + 2]));
#pragma unroll
            for (int step = 4; step < 32; step *= 2)
                new_max = fmaxf(new_max, __shfl_xor_sync(0xffffffff, new_max, step));
            const float shift = new_max == -INFINITY ? 0.0f : new_max;  // of a row that has seen no key yet
            const float rescale = ptx::exp2(state.row_max[t][j] - shift);
            S[t][j] = ptx::exp2(S[t][j] - shift);
            S[t][j + 2] = ptx::exp2(S[t][j + 2] - shift);
            state.row_max[t][j] = new_max;
            state.row_sum[t][j] = state.row_sum[t][j] * rescale + S[t][j] + S[t][j + 2];
#pragma unroll
            for (int k = 0; k < d_head / 16; ++k) {
                state.O[t][k][j] *= rescale;
                state.O[t][k][j + 2] *= rescale;
            }
        }
}

// ---- O += PV ----

// Oᵀ += Vᵀ Pᵀ of one unit. Pᵀ comes out of the tensor cores with a key's rows side by side in a lane, and goes in with
// a row's keys side by side: each 8x8 matrix is transposed.
template <typename T, int d_head, int row_tiles>
__device__ void multiply_PV(WarpState<d_head, row_tiles> &state, const float (&P)[row_tiles][4], const T *V) {
    const int lane = threadIdx.x % 32;
    uint32_t B[row_tiles][2];
#pragma unroll
    for (int t = 0; t < row_tiles; ++t) {
        B[t][0] = ptx::movmatrix_trans(pack<T>(P[t][0], P[t][1]));
        B[t][1] = ptx::movmatrix_trans(pack<T>(P[t][2], P[t][3]));
    }
    const uint32_t first = ptx::shared_address(V + unit_offset<d_head>(lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll
    for (int k = 0; k < d_head / 16; ++k) {
        uint32_t A[4];
        ptx::ldmatrix_x4_trans(A, first ^ 2 * k * chunk * static_cast<int>(sizeof(T)));
#pragma unroll
        for (int t = 0; t < row_tiles; ++t) ptx::mma_m16n8k16<T>(state.O[t][k], A, B[t]);
    }
}

// ---- merge ----

// What part of the whole the sums of a warp or of a part are: those without keys count nothing. exp2 of their -infinity
// less a whole without keys would be a NaN.
__device__ float weight_of(float row_max, float whole_max) {
    return row_max == -INFINITY ? 0.0f : ptx::exp2(row_max - whole_max);
}

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

// Puts the warps' results together and stores the part's: a thread has four columns of a row at a time.
template <int d_head, int row_tiles>
__device__ void store_part(const Results<d_head, row_tiles> &results, const FlashDecodeParams &params, const Part &part,
                           int splits) {
    const int group = params.Hq / params.Hkv, rows = min(group * params.Nq - part.first_row, row_tiles * tile);
    const int split = blockIdx.x % splits;
    const Workspace workspace = workspace_of<d_head>(params, splits);
    for (int i = threadIdx.x; i < rows * (d_head / 4); i += threads) {
        const int r = i / (d_head / 4), column = i % (d_head / 4) * 4;
        float row_max = -INFINITY, row_sum = 0.0f;
        float4 O = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int warp = 0; warp < warps; ++warp) row_max = fmaxf(row_max, results.row_max[warp][r]);
#pragma unroll
        for (int warp = 0; warp < warps; ++warp) {
            const float weight = weight_of(results.row_max[warp][r], row_max);
            const float4 one = *reinterpret_cast<const float4 *>(&results.O[warp][r][column]);
            row_sum += weight * results.row_sum[warp][r];
            O = make_float4(O.x + weight * one.x, O.y + weight * one.y, O.z + weight * one.z, O.w + weight * one.w);
        }
        const int row = part.first_row + r, head = part.kv_head * group + row / params.Nq;
        const int64_t to = row_number(params, row % params.Nq, head, part.batch) * splits + split;
        *reinterpret_cast<float4 *>(workspace.O + to * d_head + column) = O;
        if (column == 0) workspace.softmax[to] = make_float2(row_max, row_sum);
    }
}

// ---- kernels ----

// grid: (splits * blocks that share a head's rows of Q, Hkv, B)
template <typename T, int d_head, int row_tiles>
__global__ void __launch_bounds__(threads) packed_kernel(const FlashDecodeParams params, const int splits) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    auto &shared = *reinterpret_cast<SharedStorage<T, d_head, row_tiles> *>(shared_bytes);
    const int warp = threadIdx.x / 32;
    const Part part = part_of(params, splits, row_tiles * tile);
    Ring<T, d_head> &ring = shared.rings[warp];

    const int first_key = part.begin + warp * unit, step = warps * unit;
    int next_key = first_key;  // of the unit to be loaded
#pragma unroll
    for (int buffer = 0; buffer < buffers - 1; ++buffer, next_key += step)
        load_unit(ring, buffer, params, part, next_key);
    WarpState<d_head, row_tiles> state;
    begin<T>(state, params, part);

    int buffer = 0;
    for (int key = first_key; key < part.end; key += step, next_key += step) {
        ptx::cp_async_wait<buffers - 2>();
        __syncwarp();  // the unit is there for all lanes, and they are done with the last one
        load_unit(ring, (buffer + buffers - 1) % buffers, params, part, next_key);

        float S[row_tiles][4] = {};  // Sᵀ, then Pᵀ: [unit, 8] a tile
        multiply_QK(S, ring.K[buffer], state);
        mask(S, state, key, params.scale * log2_e);
        online_softmax(S, state);
        multiply_PV(state, S, ring.V[buffer]);
        buffer = (buffer + 1) % buffers;
    }

    __syncthreads();  // no warp reads its ring any more, whose place the results take
    share(shared.results, state);
    __syncthreads();  // the results are there for all
    store_part(shared.results, params, part, splits);
}

// Merges the parts of one row, each thread one column. grid: (Nq, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(d_head) merge_kernel(const FlashDecodeParams params, const int splits) {
    const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int64_t number = row_number(params, row, head, batch);
    const Workspace workspace = workspace_of<d_head>(params, splits);
    const float *parts_O = workspace.O + number * splits * d_head;      // [splits, d_head]
    const float2 *parts_softmax = workspace.softmax + number * splits;  // [splits]

    float row_max = -INFINITY, row_sum = 0.0f, O = 0.0f;
    for (int split = 0; split < splits; ++split) row_max = fmaxf(row_max, parts_softmax[split].x);
    for (int split = 0; split < splits; ++split) {
        const float weight = weight_of(parts_softmax[split].x, row_max);
        row_sum += weight * parts_softmax[split].y;
        O += weight * parts_O[split * d_head + threadIdx.x];
    }
    T *to = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
            row * params.O.stride_row;
    to[threadIdx.x] = from_float<T>(row_sum > 0.0f ? O / row_sum : 0.0f);
    if (params.log_sum_exp && threadIdx.x == 0)
        params.log_sum_exp[number] = row_sum > 0.0f ? row_max * ln_2 + logf(row_sum) : -INFINITY;
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Packed GQA",
                                  .min_compute = 80,
                                  .Br = 0,
                                  .Bc = unit,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .log_sum_exp = true};

// Blocks that share a head's rows of Q: a block has one tile of them, or two.
static int row_blocks(const FlashDecodeParams &params) {
    return (params.Hq / params.Hkv * params.Nq + 2 * tile - 1) / (2 * tile);
}

static flash::DecodeTraits traits(const FlashDecodeParams &params) {
    const int64_t heads = static_cast<int64_t>(params.B) * params.Hkv * row_blocks(params);
    const int splits = flash::splits_for(heads, blocks_each, params.Nmax, least_keys);
    const size_t rows = static_cast<size_t>(params.B) * params.Hq * params.Nq;
    const size_t part_bytes = sizeof(float) * params.d_head + sizeof(float2);
    return {.workspace_bytes = part_bytes * rows * splits, .splits = splits, .page_multiple = unit};
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const int>;

struct Kernels {
    Kernel packed, merge;
};

static Kernels plan(const FlashDecodeParams &params, int splits) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        const dim3 grid(splits * row_blocks(params), params.Hkv, params.B);
        const bool one_tile = params.Hq / params.Hkv * params.Nq <= tile;
        const Kernel one{packed_kernel<T, d_head, 1>, grid, threads, sizeof(SharedStorage<T, d_head, 1>)};
        const Kernel two{packed_kernel<T, d_head, 2>, grid, threads, sizeof(SharedStorage<T, d_head, 2>)};
        return Kernels{one_tile ? one : two, {merge_kernel<T, d_head>, dim3(params.Nq, params.Hq, params.B), d_head}};
    });
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits, unit);
    if (status == FLASH_OK) status = flash::check(params, limits, traits(*params));
    if (status != FLASH_OK) return status;
    const int splits = traits(*params).splits;
    const Kernels kernels = plan(*params, splits);
    return flash::KernelQueue(stream).add(kernels.packed, *params, splits).add(kernels.merge, *params, splits).status();
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits, unit);
    if (status != FLASH_OK) return status;
    const flash::DecodeTraits needed = traits(*params);
    return flash::describe(limits, needed, flash::untyped(plan(*params, needed.splits).packed), description);
}
