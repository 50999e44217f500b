// Naive gradients of attention. Four kernels, one after the other; P and dS lie in global memory, [B, Hq, Nq, Nkv]
// each.
//
//   D = rowsum(dO * O)     P = exp(scale * Q Kᵀ - log_sum_exp)     dS = P * (dO Vᵀ - D)
//   dQ = scale * dS K      dK = scale * dSᵀ Q                      dV = Pᵀ dO
//
// One thread computes one element of each matrix, or one row of D. Every operand is read from global memory each time
// that it is needed.

#include "launch_backward.h"
#include "numbers.cuh"

constexpr int threads = 256;  // per block, in all four kernels
constexpr int side = 16;      // matrices are cut into blocks of side x side elements: side * side = threads

// A head of a tensor, by whose head it is and the batch.
template <typename T>
__device__ T *of_head(const FlashTensor &tensor, int head, int batch) {
    return static_cast<T *>(tensor.data) + batch * tensor.stride_batch + head * tensor.stride_head;
}

// The workspace: P, dS and D, one after the other, in fp32.
struct Workspace {
    float *P, *dS;  // [B, Hq, Nq, Nkv]
    float *D;       // [B, Hq, Nq]
};

// Of one head of Q.
__device__ Workspace of_head(const FlashBackwardParams &params, int head, int batch) {
    const int64_t heads = static_cast<int64_t>(params.B) * params.Hq,
                  index = static_cast<int64_t>(batch) * params.Hq + head;
    const int64_t scores = static_cast<int64_t>(params.Nq) * params.Nkv;
    float *P = static_cast<float *>(params.workspace), *dS = P + heads * scores, *D = dS + heads * scores;
    return {P + index * scores, dS + index * scores, D + index * params.Nq};
}

// D = rowsum(dO * O): one thread for each row. grid: (blocks of threads rows, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) row_sums_kernel(const FlashBackwardParams params) {
    const int row = blockIdx.x * threads + threadIdx.x, head = blockIdx.y, batch = blockIdx.z;
    if (row >= params.Nq) return;
    const T *O = of_head<T>(params.O, head, batch) + row * params.O.stride_row;
    const T *dO = of_head<T>(params.dO, head, batch) + row * params.dO.stride_row;
    float sum = 0.0f;
    for (int x = 0; x < d_head; ++x) sum += to_float(dO[x]) * to_float(O[x]);
    of_head(params, head, batch).D[row] = sum;
}

// P and dS: one thread for each element (row, column). grid: (blocks of side x side, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) weights_kernel(const FlashBackwardParams params) {
    const int blocks_across = (params.Nkv + side - 1) / side;
    const int row = blockIdx.x / blocks_across * side + threadIdx.x / side;
    const int column = blockIdx.x % blocks_across * side + threadIdx.x % side;
    if (row >= params.Nq || column >= params.Nkv) return;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (params.Hq / params.Hkv);
    const Workspace workspace = of_head(params, head, batch);

    const T *Q = of_head<T>(params.Q, head, batch) + row * params.Q.stride_row;        // [d_head]
    const T *K = of_head<T>(params.K, kv_head, batch) + column * params.K.stride_row;  // [d_head]
    const T *V = of_head<T>(params.V, kv_head, batch) + column * params.V.stride_row;  // [d_head]
    const T *dO = of_head<T>(params.dO, head, batch) + row * params.dO.stride_row;     // [d_head]

    float S = 0.0f, dP = 0.0f;
    for (int x = 0; x < d_head; ++x) {
        S += to_float(Q[x]) * to_float(K[x]);
        dP += to_float(dO[x]) * to_float(V[x]);
    }
    // Row i sees columns 0 to i + Nkv - Nq: the last row sees all of K. What a row does not see has P = 0.
    const bool seen = !params.causal || column <= row + params.Nkv - params.Nq;
    const float log_sum_exp = params.log_sum_exp[(static_cast<int64_t>(batch) * params.Hq + head) * params.Nq + row];
    const float P = seen ? __expf(S * params.scale - log_sum_exp) : 0.0f;
    const int64_t at = static_cast<int64_t>(row) * params.Nkv + column;
    workspace.P[at] = P;
    workspace.dS[at] = P * (dP - workspace.D[row]);
}

// dQ = scale * dS K: one thread for each element (row, column). grid: (blocks of side x side, Hq, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) dQ_kernel(const FlashBackwardParams params) {
    constexpr int blocks_across = d_head / side;
    const int row = blockIdx.x / blocks_across * side + threadIdx.x / side;
    const int column = blockIdx.x % blocks_across * side + threadIdx.x % side;
    if (row >= params.Nq) return;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (params.Hq / params.Hkv);

    const float *dS = of_head(params, head, batch).dS + static_cast<int64_t>(row) * params.Nkv;  // [Nkv]
    const T *K = of_head<T>(params.K, kv_head, batch) + column;                                  // [Nkv], rows apart
    float dQ = 0.0f;
    for (int j = 0; j < params.Nkv; ++j) dQ += dS[j] * to_float(K[j * params.K.stride_row]);
    of_head<T>(params.dQ, head, batch)[row * params.dQ.stride_row + column] = from_float<T>(params.scale * dQ);
}

// dK = scale * dSᵀ Q and dV = Pᵀ dO: one thread for each element (row, column) of both. All heads of Q that use a head
// of K and V add to its gradients. grid: (blocks of side x side, Hkv, B)
template <typename T, int d_head>
__global__ void __launch_bounds__(threads) dK_dV_kernel(const FlashBackwardParams params) {
    constexpr int blocks_across = d_head / side;
    const int row = blockIdx.x / blocks_across * side + threadIdx.x / side;
    const int column = blockIdx.x % blocks_across * side + threadIdx.x % side;
    if (row >= params.Nkv) return;
    const int kv_head = blockIdx.y, batch = blockIdx.z, group = params.Hq / params.Hkv;

    float dK = 0.0f, dV = 0.0f;
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const Workspace workspace = of_head(params, head, batch);
        const float *P = workspace.P + row, *dS = workspace.dS + row;  // [Nq], rows apart
        const T *Q = of_head<T>(params.Q, head, batch) + column;       // [Nq], rows apart
        const T *dO = of_head<T>(params.dO, head, batch) + column;     // [Nq], rows apart
        for (int i = 0; i < params.Nq; ++i) {
            const int64_t at = static_cast<int64_t>(i) * params.Nkv;
            dK += dS[at] * to_float(Q[i * params.Q.stride_row]);
            dV += P[at] * to_float(dO[i * params.dO.stride_row]);
        }
    }
    of_head<T>(params.dK, kv_head, batch)[row * params.dK.stride_row + column] = from_float<T>(params.scale * dK);
    of_head<T>(params.dV, kv_head, batch)[row * params.dV.stride_row + column] = from_float<T>(dV);
}

// ---- launch ----

constexpr flash::Limits limits = {
    .title = "Naive gradients", .min_compute = 75, .Br = 0, .Bc = 0, .causal = true, .grouped_heads = true};

static int blocks(int n, int size) {
    return (n + size - 1) / size;
}

static flash::BackwardTraits traits(const FlashBackwardParams &params) {
    const size_t rows = static_cast<size_t>(params.B) * params.Hq * params.Nq;
    return {.workspace_bytes = sizeof(float) * rows * (2 * static_cast<size_t>(params.Nkv) + 1), .deterministic = true};
}

using Kernel = flash::TypedKernel<const FlashBackwardParams>;

struct Kernels {
    Kernel row_sums, weights, dQ, dK_dV;
};

static Kernels plan(const FlashBackwardParams &params) {
    return flash::choose_instance(params, [&]<typename T, int d_head>() {
        const int across = d_head / side, Q_blocks = blocks(params.Nq, side), KV_blocks = blocks(params.Nkv, side);
        return Kernels{
            {row_sums_kernel<T, d_head>, dim3(blocks(params.Nq, threads), params.Hq, params.B), threads},
            {weights_kernel<T, d_head>, dim3(Q_blocks * KV_blocks, params.Hq, params.B), threads},
            {dQ_kernel<T, d_head>, dim3(Q_blocks * across, params.Hq, params.B), threads},
            {dK_dV_kernel<T, d_head>, dim3(KV_blocks * across, params.Hkv, params.B), threads},
        };
    });
}

extern "C" FlashStatus flash_backward(const FlashBackwardParams *params, cudaStream_t stream) {
    FlashStatus status = flash::check_sizes(params, limits);
    if (status == FLASH_OK) status = flash::check(params, limits, traits(*params));
    if (status != FLASH_OK) return status;
    const Kernels kernels = plan(*params);
    flash::KernelQueue queue(stream);
    queue.add(kernels.row_sums, *params).add(kernels.weights, *params);
    queue.add(kernels.dQ, *params).add(kernels.dK_dV, *params);
    return queue.status();
}

extern "C" FlashStatus flash_describe_backward(const FlashBackwardParams *params,
                                               FlashBackwardDescription *description) {
    const FlashStatus status = flash::check_sizes(params, limits);
    if (status != FLASH_OK) return status;
    return flash::describe(limits, traits(*params), flash::untyped(plan(*params).dK_dV), description);
}
