// Naive decode. One block for each row of Q: its warps share the keys of the sequence, and each warp computes a whole
// score and the online softmax for one key after the other.
//
// A lane holds the same columns of Q, K, V and O. A score is a sum over lanes. Every head of Q reads the K and V of its
// head for itself, and a sequence keeps Hq * Nq blocks busy, however long it is.

#include "launch_decode.h"
#include "numbers.cuh"
#include "ptx.cuh"

constexpr int warps = 8, threads = 32 * warps;

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

// What part of the whole a warp's sums are: those of a warp without keys count nothing. exp2 of its -infinity less a
// whole without keys would be a NaN.
__device__ float weight_of(float row_max, float whole_max) {
    return row_max == -INFINITY ? 0.0f : ptx::exp2(row_max - whole_max);
}

// ---- kernel ----

template <int d_head>
struct SharedStorage {
    float O[warps][d_head];
    float row_max[warps], row_sum[warps];
};

// Puts the warps' results together and stores the row, each thread one column.
template <typename T, int d_head>
__device__ void store_row(const SharedStorage<d_head> &shared, const FlashDecodeParams &params, int row, int head,
                          int batch) {
    float row_max = -INFINITY, row_sum = 0.0f, O = 0.0f;
    for (int warp = 0; warp < warps; ++warp) row_max = fmaxf(row_max, shared.row_max[warp]);
    for (int warp = 0; warp < warps; ++warp) {
        const float weight = weight_of(shared.row_max[warp], row_max);
        row_sum += weight * shared.row_sum[warp];
        O += weight * shared.O[warp][threadIdx.x];
    }
    T *to = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
            row * params.O.stride_row;
    to[threadIdx.x] = from_float<T>(row_sum > 0.0f ? O / row_sum : 0.0f);
    if (params.log_sum_exp && threadIdx.x == 0) {
        const int64_t at = (static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + row;
        params.log_sum_exp[at] = row_sum > 0.0f ? row_max * 0.693147181f + logf(row_sum) : -INFINITY;
    }
}

// grid: (Nq, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) decode_kernel(const FlashDecodeParams params) {
    constexpr int width = d_head / 32;  // columns of a lane
    __shared__ SharedStorage<d_head> shared;
    const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, kv_head = head / (params.Hq / params.Hkv);
    const int warp = threadIdx.x / 32;
    const int keys = params.lengths[batch] + 1 + row - params.Nq;  // that the row sees; the last row sees all

    float Q[width];  // [d_head] per warp
    const T *Q_row = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch +
                     head * params.Q.stride_head + row * params.Q.stride_row;
    load_row(Q, Q_row);
#pragma unroll
    for (int i = 0; i < width; ++i) Q[i] *= params.scale * 1.44269504f;  // exp(scale x) = 2^(scale log2(e) x)

    RowState<width> state;
    for (int key = warp; key < keys; key += warps) {
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
    if (threadIdx.x < d_head) store_row<T, d_head>(shared, params, row, head, batch);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Naive decode",
                                  .min_compute = 75,
                                  .Br = 0,
                                  .Bc = 0,
                                  .causal = true,
                                  .grouped_heads = true,
                                  .log_sum_exp = true};

using Kernel = flash::TypedKernel<const FlashDecodeParams>;

static Kernel plan(const FlashDecodeParams &params) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        return Kernel{decode_kernel<T, d_head>, dim3(params.Nq, params.Hq, params.B), threads};
    });
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream) {
    const FlashStatus status = flash::check(params, limits, {});
    if (status != FLASH_OK) return status;
    return flash::KernelQueue(stream).add(plan(*params), *params).status();
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits, 1);
    if (status != FLASH_OK) return status;
    return flash::describe(limits, {}, flash::untyped(plan(*params)), description);
}
