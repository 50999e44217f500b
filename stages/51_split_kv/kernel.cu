// Split KV. Each sequence is divided into parts, as many as fill the machine, and a block computes one row of Q over
// one part of the keys. A second kernel merges the parts.
//
// A part's result is O before it is divided, its largest score and its sum. Two results are merged as two warps' are:
// both are scaled to the larger of the two maxima. So the order of the keys does not matter, nor who has read them.

#include "launch_decode.h"
#include "numbers.cuh"
#include "ptx.cuh"

constexpr int warps = 8, threads = 32 * warps;
constexpr int blocks_each = 5;  // that a multiprocessor holds: 48 registers for each of 256 threads
constexpr int least_keys = 64;  // of a part of the longest sequence

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

// ---- load ----

// Row `key` of a head of K or V, in its sequence or in the page that the block table names.
template <typename T>
__device__ const T *key_row(const FlashDecodeParams &params, const FlashTensor &tensor, int kv_head, int batch,
                            int key) {
    int64_t block = batch;
    int row = key;
    if (params.block_table) {
        block = params.block_table[static_cast<int64_t>(batch) * params.max_pages + key / params.page_size];
        row = key % params.page_size;
    }
    return static_cast<const T *>(tensor.data) + block * tensor.stride_batch + kv_head * tensor.stride_head +
           row * tensor.stride_row;
}

// The column that element i of a lane is of: pairs of neighbours, so that a warp reads 128 bytes in one piece.
__device__ int column_of(int i) {
    return i / 2 * 64 + threadIdx.x % 32 * 2 + i % 2;
}

// The lane's columns of a row, in fp32.
template <typename T, int width>
__device__ void load_row(float (&to)[width], const T *row) {
#pragma unroll
    for (int i = 0; i < width; i += 2) {
        const float2 two = to_float2(row + column_of(i));
        to[i] = two.x;
        to[i + 1] = two.y;
    }
}

// ---- S = QKᵀ ----

// The score of one key, in every lane.
template <int width>
__device__ float score_of(const float (&Q)[width], const float (&K)[width]) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < width; ++i) sum += Q[i] * K[i];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    return sum;
}

// ---- online softmax ----

// What a warp knows of the row after some keys: the largest score, the sum of exp2(score - row_max), and O before it is
// divided by that sum. No key: -infinity, 0 and 0.
template <int width>
struct RowState {
    float row_max = -INFINITY, row_sum = 0.0f;
    float O[width] = {};

    __device__ void add(float score, const float (&V)[width]) {
        const float new_max = fmaxf(row_max, score);
        const float rescale = ptx::exp2(row_max - new_max), P = ptx::exp2(score - new_max);
        row_max = new_max;
        row_sum = row_sum * rescale + P;
#pragma unroll
        for (int i = 0; i < width; ++i) O[i] = O[i] * rescale + P * V[i];
    }
};

// What part of the whole the sums of a warp or of a part are: those without keys count nothing. exp2 of their -infinity
// less a whole without keys would be a NaN.
__device__ float weight_of(float row_max, float whole_max) {
    return row_max == -INFINITY ? 0.0f : ptx::exp2(row_max - whole_max);
}

// ---- kernel ----

template <int d_head>
struct SharedStorage {
    float O[warps][d_head];
    float row_max[warps], row_sum[warps];
};

// Puts the warps' results together and stores the part's, each thread one column.
template <int d_head>
__device__ void store_part(const SharedStorage<d_head> &shared, const Workspace &workspace, int64_t part) {
    float row_max = -INFINITY, row_sum = 0.0f, O = 0.0f;
    for (int warp = 0; warp < warps; ++warp) row_max = fmaxf(row_max, shared.row_max[warp]);
    for (int warp = 0; warp < warps; ++warp) {
        const float weight = weight_of(shared.row_max[warp], row_max);
        row_sum += weight * shared.row_sum[warp];
        O += weight * shared.O[warp][threadIdx.x];
    }
    workspace.O[part * d_head + threadIdx.x] = O;
    if (threadIdx.x == 0) workspace.softmax[part] = make_float2(row_max, row_sum);
}

// grid: (splits * Nq, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) split_kernel(const FlashDecodeParams params, const int splits) {
    constexpr int width = d_head / 32;  // columns of a lane
    __shared__ SharedStorage<d_head> shared;
    const int row = blockIdx.x % params.Nq, split = blockIdx.x / params.Nq;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (params.Hq / params.Hkv);
    const int warp = threadIdx.x / 32;
    const int length = params.lengths[batch];
    const int keys = length + 1 + row - params.Nq;  // that the row sees; the last row sees all
    const int part_keys = (length + splits - 1) / splits, begin = split * part_keys;
    const int end = min(begin + part_keys, keys);

    float Q[width];  // [d_head] per warp
    const T *Q_row = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch +
                     head * params.Q.stride_head + row * params.Q.stride_row;
    load_row(Q, Q_row);
#pragma unroll
    for (int i = 0; i < width; ++i) Q[i] *= params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    RowState<width> state;
    for (int key = begin + warp; key < end; key += warps) {
        float K[width], V[width];  // [d_head] each per warp
        load_row(K, key_row<T>(params, params.K, kv_head, batch, key));
        load_row(V, key_row<T>(params, params.V, kv_head, batch, key));
        state.add(score_of(Q, K), V);
    }

#pragma unroll
    for (int i = 0; i < width; ++i) shared.O[warp][column_of(i)] = state.O[i];
    if (threadIdx.x % 32 == 0) {
        shared.row_max[warp] = state.row_max;
        shared.row_sum[warp] = state.row_sum;
    }
    __syncthreads();  // the warps' results are there for all
    const int64_t part = row_number(params, row, head, batch) * splits + split;
    if (threadIdx.x < d_head) store_part(shared, workspace_of<d_head>(params, splits), part);
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
        params.log_sum_exp[number] = row_sum > 0.0f ? row_max * 0.693147181f + logf(row_sum) : -INFINITY;
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Split KV",
                                  .min_compute = 75,
                                  .Br = 0,
                                  .Bc = 0,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .log_sum_exp = true};

static flash::DecodeTraits traits(const FlashDecodeParams &params) {
    const int64_t rows = static_cast<int64_t>(params.B) * params.Hq * params.Nq;
    const int splits = flash::splits_for(rows, blocks_each, params.Nmax, least_keys);
    const size_t part_bytes = sizeof(float) * params.d_head + sizeof(float2);
    return {.workspace_bytes = part_bytes * rows * splits, .splits = splits};
}

using Kernel = flash::TypedKernel<const FlashDecodeParams, const int>;

struct Kernels {
    Kernel split, merge;
};

static Kernels plan(const FlashDecodeParams &params, int splits) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        return Kernels{
            {split_kernel<T, d_head>, dim3(splits * params.Nq, params.Hq, params.B), threads},
            {merge_kernel<T, d_head>, dim3(params.Nq, params.Hq, params.B), d_head},
        };
    });
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits, 1);
    if (status == FLASH_OK) status = flash::check(params, limits, traits(*params));
    if (status != FLASH_OK) return status;
    const int splits = traits(*params).splits;
    const Kernels kernels = plan(*params, splits);
    return flash::KernelQueue(stream).add(kernels.split, *params, splits).add(kernels.merge, *params, splits).status();
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits, 1);
    if (status != FLASH_OK) return status;
    const flash::DecodeTraits needed = traits(*params);
    return flash::describe(limits, needed, flash::untyped(plan(*params, needed.splits).split), description);
}
