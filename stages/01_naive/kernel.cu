// Naive attention. Three kernels, one after the other; S and P lie in global memory, [B, Hq, Nq, Nkv] each.
//
// One thread computes one element of S, one warp one row of P, one thread one element of O. Every operand is
// read from global memory each time that it is needed.

#include "launch.h"
#include "numbers.cuh"

constexpr int threads = 256;  // per block, in all three kernels
constexpr int side = 16;      // S and O are cut into blocks of side x side elements: side * side = threads

// Row `row` of the [B, Hq, Nq, Nkv] matrix in the workspace: S first, P in its place later.
__device__ float *workspace_row(const FlashParams &params, int row) {
    const int64_t batch = blockIdx.z, head = blockIdx.y;
    return static_cast<float *>(params.workspace) +
           ((batch * params.Hq + head) * params.Nq + row) * static_cast<int64_t>(params.Nkv);
}

// The first element of this block's batch and head.
template <typename T>
__device__ T *of_this_head(const FlashTensor &tensor) {
    return static_cast<T *>(tensor.data) + blockIdx.z * tensor.stride_batch + blockIdx.y * tensor.stride_head;
}

// S = scale QKᵀ: one thread for each element (row, column). grid: (blocks of side x side, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) scores_kernel(const FlashParams params) {
    const int blocks_across = (params.Nkv + side - 1) / side;
    const int row = blockIdx.x / blocks_across * side + threadIdx.x / side;
    const int column = blockIdx.x % blocks_across * side + threadIdx.x % side;
    if (row >= params.Nq || column >= params.Nkv) return;

    // ---- load ---- and ---- S = QKᵀ ----
    const T *Q = of_this_head<T>(params.Q) + row * params.Q.stride_row;     // [d_head]
    const T *K = of_this_head<T>(params.K) + column * params.K.stride_row;  // [d_head]
    float S = 0.0f;
    for (int k = 0; k < d_head; ++k) S += to_float(Q[k]) * to_float(K[k]);
    workspace_row(params, row)[column] = S * params.scale;
}

// P = softmax(S) in place: one warp for each row. grid: (blocks of threads / 32 rows, Hq, B)
__global__ void __launch_bounds__(threads) softmax_kernel(const FlashParams params) {
    const int row = blockIdx.x * (threads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= params.Nq) return;
    float *S = workspace_row(params, row);  // [Nkv]

    // ---- softmax ---- three passes over the row: maximum, sum, division
    float row_max = -INFINITY;
    for (int j = lane; j < params.Nkv; j += 32) row_max = fmaxf(row_max, S[j]);
    for (int step = 16; step > 0; step /= 2) row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffff, row_max, step));

    float row_sum = 0.0f;
    for (int j = lane; j < params.Nkv; j += 32) row_sum += __expf(S[j] - row_max);
    for (int step = 16; step > 0; step /= 2) row_sum += __shfl_xor_sync(0xffffffff, row_sum, step);

    for (int j = lane; j < params.Nkv; j += 32) S[j] = __expf(S[j] - row_max) / row_sum;
}

// O = PV: one thread for each element (row, column). grid: (blocks of side x side, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) output_kernel(const FlashParams params) {
    constexpr int blocks_across = d_head / side;
    const int row = blockIdx.x / blocks_across * side + threadIdx.x / side;
    const int column = blockIdx.x % blocks_across * side + threadIdx.x % side;
    if (row >= params.Nq) return;

    // ---- O += PV ----
    const float *P = workspace_row(params, row);      // [Nkv]
    const T *V = of_this_head<T>(params.V) + column;  // [Nkv], rows apart
    float O = 0.0f;
    for (int j = 0; j < params.Nkv; ++j) O += P[j] * to_float(V[j * params.V.stride_row]);

    // ---- store ----
    of_this_head<T>(params.O)[row * params.O.stride_row + column] = from_float<T>(O);
}

// ---- launch ----

constexpr flash::Limits limits = {.title = "Naive attention", .min_compute = 75, .Br = 0, .Bc = 0};

static int blocks(int n, int size) {
    return (n + size - 1) / size;
}

static flash::Launch scores(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        const int grid_x = blocks(params.Nq, side) * blocks(params.Nkv, side);
        return flash::Launch{scores_kernel<T, d_head>, dim3(grid_x, params.Hq, params.B), threads};
    });
}

static flash::Launch softmax(const FlashParams &params) {
    return {softmax_kernel, dim3(blocks(params.Nq, threads / 32), params.Hq, params.B), threads};
}

static flash::Launch output(const FlashParams &params) {
    return flash::choose(params, [&]<typename T, int d_head>() {
        const int grid_x = blocks(params.Nq, side) * (d_head / side);
        return flash::Launch{output_kernel<T, d_head>, dim3(grid_x, params.Hq, params.B), threads};
    });
}

static size_t workspace_bytes(const FlashParams &params) {
    return sizeof(float) * params.B * params.Hq * params.Nq * params.Nkv;
}

extern "C" FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits);
    if (status == FLASH_OK) status = flash::check(params, limits, workspace_bytes(*params));
    if (status == FLASH_OK) status = flash::launch(scores(*params), *params, stream);
    if (status == FLASH_OK) status = flash::launch(softmax(*params), *params, stream);
    if (status == FLASH_OK) status = flash::launch(output(*params), *params, stream);
    return status;
}

extern "C" FlashStatus flash_describe(const FlashParams *params, FlashDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    if (status != FLASH_OK) return status;
    return flash::describe(limits, output(*params), workspace_bytes(*params), description);
}
