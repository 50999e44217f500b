// Row softmax four ways: a block for a row with shared-memory trees, a warp for a row, online, and in place with
// float4.
#include <cuda_runtime.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CUDA_CALL(x)                                        \
    do {                                                    \
        if ((x) != cudaSuccess) {                           \
            printf("Error at %s:%d\n", __FILE__, __LINE__); \
            return EXIT_FAILURE;                            \
        }                                                   \
    } while (0)

__global__ void softmax_block(float *out, const float *inp, int C) {
    extern __shared__ float shared[];
    int row = blockIdx.x, tid = threadIdx.x, block_size = blockDim.x;
    const float *x = inp + row * C;
    float maxval = -INFINITY;
    for (int i = tid; i < C; i += block_size) maxval = fmaxf(maxval, x[i]);
    shared[tid] = maxval;
    for (int stride = block_size / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (tid < stride) shared[tid] = fmaxf(shared[tid], shared[tid + stride]);
    }
    __syncthreads();
    float offset = shared[0];
    for (int i = tid; i < C; i += block_size) out[row * C + i] = expf(x[i] - offset);
    __syncthreads();
    float sumval = 0.0f;
    for (int i = tid; i < C; i += block_size) sumval += out[row * C + i];
    shared[tid] = sumval;
    for (int stride = block_size / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (tid < stride) shared[tid] += shared[tid + stride];
    }
    __syncthreads();
    float sum = shared[0];
    for (int i = tid; i < C; i += block_size) out[row * C + i] /= sum;
}

__device__ float warpReduceMax(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_down_sync(0xFFFFFFFF, val, offset));
    return val;
}

__device__ float warpReduceSum(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(0xFFFFFFFF, val, offset);
    return val;
}

// Warps reduce by shuffles, their results meet in shared memory, thread 0 ends it.
__global__ void softmax_warps(float *out, const float *inp, int C) {
    extern __shared__ float shared[];
    int idx = blockIdx.x, tid = threadIdx.x, warpId = threadIdx.x / 32, laneId = threadIdx.x % 32;
    int warpsPerBlock = blockDim.x / 32;
    float *maxvals = shared;
    float *sumvals = &shared[warpsPerBlock];
    const float *x = inp + idx * C;
    float maxval = -INFINITY;
    for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
    maxval = warpReduceMax(maxval);
    if (laneId == 0) maxvals[warpId] = maxval;
    __syncthreads();
    if (tid == 0) {
        float val = maxvals[tid];
        for (int i = 1; i < warpsPerBlock; i++) val = fmaxf(val, maxvals[i]);
        maxvals[0] = val;
    }
    __syncthreads();
    float offset = maxvals[0];
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = expf(x[i] - offset);
    x = out + idx * C;
    float sumval = 0.0f;
    for (int i = tid; i < C; i += blockDim.x) sumval += x[i];
    sumval = warpReduceSum(sumval);
    if (laneId == 0) sumvals[warpId] = sumval;
    __syncthreads();
    if (tid == 0) {
        float val = sumvals[tid];
        for (int i = 1; i < warpsPerBlock; ++i) val += sumvals[i];
        sumvals[0] = val;
    }
    __syncthreads();
    float sum = sumvals[0];
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = x[i] / sum;
}

struct __align__(8) SumMax {
    float maxval;
    float sum;
};

__device__ __forceinline__ SumMax reduce_op(SumMax a, SumMax b) {
    bool a_bigger = a.maxval > b.maxval;
    SumMax bigger = a_bigger ? a : b, smaller = a_bigger ? b : a;
    SumMax res;
    res.maxval = bigger.maxval;
    res.sum = bigger.sum + smaller.sum * expf(smaller.maxval - bigger.maxval);
    return res;
}

__global__ void softmax_online(float *out, const float *inp, int C) {
    __shared__ SumMax partial[32];
    SumMax mine = {-FLT_MAX, 0.0f};
    const float *x = inp + blockIdx.x * C;
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        SumMax v = {x[i], 1.0f};
        mine = reduce_op(mine, v);
    }
    for (int offset = 16; offset; offset >>= 1) {
        SumMax other;
        other.maxval = __shfl_xor_sync(0xffffffffu, mine.maxval, offset);
        other.sum = __shfl_xor_sync(0xffffffffu, mine.sum, offset);
        mine = reduce_op(mine, other);
    }
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    SumMax total = partial[0];
    for (int w = 1; w < (blockDim.x + 31) / 32; ++w) total = reduce_op(total, partial[w]);
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        out[blockIdx.x * C + i] = __expf(x[i] - total.maxval) / total.sum;
    }
}

__global__ void softmax_float4(float4 *out, const float4 *inp, int C4) {
    const float4 *x = inp + blockIdx.x * C4;
    float m = -INFINITY, s = 0.f;
    for (int i = threadIdx.x; i < C4; i += 32) {
        float4 v = __ldg(x + i);
        m = fmaxf(fmaxf(m, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
    }
#pragma unroll
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    for (int i = threadIdx.x; i < C4; i += 32) {
        float4 v = x[i];
        s += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
    }
#pragma unroll
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    const float inv = 1.f / s;
    for (int i = threadIdx.x; i < C4; i += 32) {
        float4 v = x[i];
        out[blockIdx.x * C4 + i] =
            make_float4(expf(v.x - m) * inv, expf(v.y - m) * inv, expf(v.z - m) * inv, expf(v.w - m) * inv);
    }
}

int main() {
    const int N = 9, C = 300;
    size_t bytes = N * C * sizeof(float);
    float *inp = (float *)malloc(bytes), *out = (float *)malloc(bytes), *want = (float *)malloc(bytes);
    for (int i = 0; i < N * C; i++) inp[i] = (float)rand() / RAND_MAX * 40.f - 20.f;
    for (int n = 0; n < N; n++) {
        double m = -1e30, s = 0;
        for (int c = 0; c < C; c++) m = fmax(m, inp[n * C + c]);
        for (int c = 0; c < C; c++) s += exp(inp[n * C + c] - m);
        for (int c = 0; c < C; c++) want[n * C + c] = exp(inp[n * C + c] - m) / s;
    }
    float *d_inp, *d_out;
    CUDA_CALL(cudaMalloc(&d_inp, bytes));
    CUDA_CALL(cudaMalloc(&d_out, bytes));
    CUDA_CALL(cudaMemcpy(d_inp, inp, bytes, cudaMemcpyHostToDevice));
    for (int variant = 0; variant < 4; variant++) {
        CUDA_CALL(cudaMemset(d_out, 0, bytes));
        if (variant == 0) softmax_block<<<N, 128, 128 * sizeof(float)>>>(d_out, d_inp, C);
        if (variant == 1) softmax_warps<<<N, 128, 2 * 128 / 32 * sizeof(float)>>>(d_out, d_inp, C);
        if (variant == 2) softmax_online<<<N, 96>>>(d_out, d_inp, C);
        if (variant == 3) softmax_float4<<<N, 32>>>((float4 *)d_out, (float4 *)d_inp, C / 4);
        CUDA_CALL(cudaPeekAtLastError());
        CUDA_CALL(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N * C; i++) {
            if (!(fabs(out[i] - want[i]) < 1e-5)) {
                printf("variant %d: mismatch at %d: %g vs %g\n", variant, i, out[i], want[i]);
                return 1;
            }
        }
    }
    cudaFree(d_inp);
    cudaFree(d_out);
    free(inp);
    free(out);
    free(want);
    puts("OK");
    return 0;
}
