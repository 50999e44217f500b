// Kernels of neural networks: correct programs, each of which prints OK as its last line.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

// Layer norm forward (one warp for a row, cooperative groups) and backward (shared-memory accumulators for the
// weights).
namespace layernorm {

namespace cg = cooperative_groups;

#define CUDA_CHECK(x)                                                             \
    if (cudaError_t e = (x); e != cudaSuccess) {                                  \
        fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
        exit(1);                                                                  \
    }

__global__ void layernorm_forward(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd,
                                  const float *__restrict__ inp, const float *__restrict__ weight,
                                  const float *__restrict__ bias, int N, int C) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (idx >= N) return;
    const float *x = inp + idx * C;
    float sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float m = sum / C;
    if (warp.thread_rank() == 0 && mean != nullptr) __stcs(mean + idx, m);
    sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        float diff = x[i] - m;
        sum += diff * diff;
    }
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float s = rsqrtf(sum / C + 1e-5f);
    if (warp.thread_rank() == 0 && rstd != nullptr) __stcs(rstd + idx, s);
    float *o = out + idx * C;
    for (int c = warp.thread_rank(); c < C; c += warp.size()) {
        float n = s * (__ldcs(x + c) - m);
        __stcs(o + c, n * weight[c] + bias[c]);
    }
}

__global__ void layernorm_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                                   const float *weight, const float *mean, const float *rstd, int N, int C) {
    extern __shared__ float shared[];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    float *dbias_shared = shared;
    float *dweight_shared = shared + C;
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        dbias_shared[i] = 0.0f;
        dweight_shared[i] = 0.0f;
    }
    __syncthreads();
    if (idx < N) {
        const float *dout_i = dout + idx * C;
        const float *inp_i = inp + idx * C;
        float *dinp_i = dinp + idx * C;
        const float mean_i = mean[idx], rstd_i = rstd[idx];
        float dnorm_mean = 0.0f, dnorm_norm_mean = 0.0f;
        for (int i = warp.thread_rank(); i < C; i += warp.size()) {
            float norm = (inp_i[i] - mean_i) * rstd_i;
            float dnorm = weight[i] * dout_i[i];
            dnorm_mean += dnorm;
            dnorm_norm_mean += dnorm * norm;
        }
        dnorm_mean = cg::reduce(warp, dnorm_mean, cg::plus<float>{}) / C;
        dnorm_norm_mean = cg::reduce(warp, dnorm_norm_mean, cg::plus<float>{}) / C;
        for (int i = warp.thread_rank(); i < C; i += warp.size()) {
            float norm = (inp_i[i] - mean_i) * rstd_i;
            float dnorm = weight[i] * dout_i[i];
            atomicAdd(&dbias_shared[i], dout_i[i]);
            atomicAdd(&dweight_shared[i], norm * dout_i[i]);
            dinp_i[i] += (dnorm - dnorm_mean - norm * dnorm_norm_mean) * rstd_i;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        atomicAdd(&dbias[i], dbias_shared[i]);
        atomicAdd(&dweight[i], dweight_shared[i]);
    }
}

static float *upload(const std::vector<float> &v) {
    float *d;
    CUDA_CHECK(cudaMalloc(&d, v.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice));
    return d;
}

static bool close(const char *what, const float *device, const std::vector<double> &want, double tol) {
    std::vector<float> got(want.size());
    CUDA_CHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i) {
        if (!(std::fabs(got[i] - want[i]) <= tol + tol * std::fabs(want[i]))) {
            printf("%s[%zu] = %f, want %f\n", what, i, got[i], want[i]);
            return false;
        }
    }
    return true;
}

int main() {
    const int N = 37, C = 100, threads = 128;
    srand(3);
    std::vector<float> x(N * C), w(C), b(C), dy(N * C);
    for (auto *v : {&x, &w, &b, &dy}) {
        for (float &f : *v) f = rand() / float(RAND_MAX) * 2 - 1;
    }
    std::vector<double> y(N * C), mean(N), rstd(N), dx(N * C), dw(C), db(C);
    for (int n = 0; n < N; ++n) {
        double m = 0, v = 0, a = 0, c2 = 0;
        for (int c = 0; c < C; ++c) m += x[n * C + c];
        m /= C;
        for (int c = 0; c < C; ++c) v += (x[n * C + c] - m) * (x[n * C + c] - m);
        double s = 1 / std::sqrt(v / C + 1e-5);
        mean[n] = m;
        rstd[n] = s;
        for (int c = 0; c < C; ++c) {
            double norm = (x[n * C + c] - m) * s, dn = w[c] * dy[n * C + c];
            y[n * C + c] = norm * w[c] + b[c];
            db[c] += dy[n * C + c];
            dw[c] += norm * dy[n * C + c];
            a += dn;
            c2 += dn * norm;
        }
        a /= C;
        c2 /= C;
        for (int c = 0; c < C; ++c) {
            double norm = (x[n * C + c] - m) * s;
            dx[n * C + c] = (w[c] * dy[n * C + c] - a - norm * c2) * s;
        }
    }
    float *dX = upload(x), *dW = upload(w), *dB = upload(b), *dDY = upload(dy);
    float *dY, *dMean, *dRstd, *dDX, *dDW, *dDB;
    CUDA_CHECK(cudaMalloc(&dY, N * C * 4));
    CUDA_CHECK(cudaMalloc(&dMean, N * 4));
    CUDA_CHECK(cudaMalloc(&dRstd, N * 4));
    CUDA_CHECK(cudaMalloc(&dDX, N * C * 4));
    CUDA_CHECK(cudaMalloc(&dDW, C * 4));
    CUDA_CHECK(cudaMalloc(&dDB, C * 4));
    CUDA_CHECK(cudaMemset(dDX, 0, N * C * 4));
    CUDA_CHECK(cudaMemset(dDW, 0, C * 4));
    CUDA_CHECK(cudaMemset(dDB, 0, C * 4));
    const int blocks = (N * 32 + threads - 1) / threads;
    layernorm_forward<<<blocks, threads>>>(dY, dMean, dRstd, dX, dW, dB, N, C);
    CUDA_CHECK(cudaGetLastError());
    layernorm_backward<<<blocks, threads, 2 * C * sizeof(float)>>>(dDX, dDW, dDB, dDY, dX, dW, dMean, dRstd, N, C);
    CUDA_CHECK(cudaGetLastError());
    bool fine = close("out", dY, y, 1e-4) && close("mean", dMean, mean, 1e-4) && close("rstd", dRstd, rstd, 1e-4) &&
                close("dinp", dDX, dx, 1e-3) && close("dweight", dDW, dw, 1e-3) && close("dbias", dDB, db, 1e-3);
    if (!fine) return 1;
    printf("OK\n");
    return 0;
}

}  // namespace layernorm

// half and bfloat16: conversions, half2 arithmetic, fma, comparisons, intrinsics, atomics, a dot product, integer SIMD
// dp4a.
namespace low_precision {

__global__ void axpy(__half2 *y, const __half2 *x, float a, int n2) {
    __half2 a2 = __float2half2_rn(a);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n2; i += blockDim.x * gridDim.x)
        y[i] = __hfma2(a2, x[i], y[i]);
}
template <class T>
__global__ void dot(float *out, const T *a, const T *b, int n) {
    __shared__ float s[128];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += float(a[i]) * float(b[i]);
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = s[0];
}
__global__ void half_ops(float *out, const float *in) {
    int i = threadIdx.x;
    half a = __float2half(in[i]), b = __float2half_rn(in[i] * 0.5f + 1.0f);
    half c = a * b + __hsub(a, b);
    if (__hgt(c, __float2half(3.0f))) c = __hdiv(c, b);
    c = __hmax(c, hsqrt(__habs(a)));
    __nv_bfloat16 x = __float2bfloat16(in[i]), y = x * x + __float2bfloat16(0.25f);
    out[i] = __half2float(c);
    out[32 + i] = __bfloat162float(y) + __bfloat162float(hexp(__float2bfloat16(in[i] * 0.1f)));
    out[64 + i] =
        float(__half2int_rn(a)) + __half2float(__int2half_rn(i)) + __low2float(__floats2half2_rn(in[i], 1.0f));
}
__global__ void half_atomics(half *h, __half2 *h2, __nv_bfloat16 *b) {
    atomicAdd(h, __float2half(0.5f));
    atomicAdd(h2, __floats2half2_rn(1.0f, -0.25f));
    atomicAdd(b, __float2bfloat16(1.0f));
}
__global__ void packed_dot(int *out, const int *a, const int *b) {
    int i = threadIdx.x;
    out[i] = __dp4a(a[i], b[i], 7) + int(__vadd4(a[i], b[i]) & 0xff) + __byte_perm(a[i], b[i], 0x5140) % 100;
}

int main() {
    const int n = 1000;
    static half hx[n], hy[n], got[n];
    static __nv_bfloat16 bx[n], by[n];
    double want_dot = 0, want_bdot = 0;
    for (int i = 0; i < n; ++i) {
        hx[i] = __float2half((rand() % 401 - 200) / 64.0f);
        hy[i] = __float2half((rand() % 401 - 200) / 64.0f);
        bx[i] = __float2bfloat16((rand() % 401 - 200) / 64.0f);
        by[i] = __float2bfloat16((rand() % 401 - 200) / 64.0f);
        want_dot += double(__half2float(hx[i])) * __half2float(hy[i]);
        want_bdot += double(__bfloat162float(bx[i])) * __bfloat162float(by[i]);
    }
    half *x, *y;
    __nv_bfloat16 *b1, *b2;
    float *out, h[96], in[32];
    CHECK(cudaMalloc(&x, sizeof hx));
    CHECK(cudaMalloc(&y, sizeof hy));
    CHECK(cudaMalloc(&b1, sizeof bx));
    CHECK(cudaMalloc(&b2, sizeof by));
    CHECK(cudaMalloc(&out, sizeof h));
    CHECK(cudaMemcpy(x, hx, sizeof hx, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(y, hy, sizeof hy, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b1, bx, sizeof bx, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b2, by, sizeof by, cudaMemcpyHostToDevice));
    dot<half><<<1, 128>>>(out, x, y, n);
    dot<__nv_bfloat16><<<1, 128>>>(out + 1, b1, b2, n);
    axpy<<<2, 64>>>((__half2 *)y, (const __half2 *)x, 0.375f, n / 2);
    CHECK(cudaMemcpy(h, out, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost));
    if (std::fabs(h[0] - want_dot) > 1e-2 || std::fabs(h[1] - want_bdot) > 1e-2)
        return printf("dot %f %f\n", h[0], h[1]), 1;
    for (int i = 0; i < n; ++i) {
        half want = __float2half(0.375f * __half2float(hx[i]) + __half2float(hy[i]));
        if (__half2float(got[i]) != __half2float(want)) return printf("axpy %d\n", i), 1;
    }
    for (int i = 0; i < 32; ++i) in[i] = (i - 16) * 0.3125f;
    float *d_in;
    CHECK(cudaMalloc(&d_in, sizeof in));
    CHECK(cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice));
    half_ops<<<1, 32>>>(out, d_in);
    CHECK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        double a = in[i], b = a * 0.5 + 1, c = a * b + (a - b);
        if (c > 3) c /= b;
        c = std::fmax(c, std::sqrt(std::fabs(a)));
        if (std::fabs(h[i] - c) > 4e-3 * (1 + std::fabs(c))) return printf("half_ops %d: %f, want %f\n", i, h[i], c), 1;
        double y2 = a * a + 0.25 + std::exp(a * 0.1);
        if (std::fabs(h[32 + i] - y2) > 2e-2 * (1 + std::fabs(y2)))
            return printf("bf16 %d: %f, want %f\n", i, h[32 + i], y2), 1;
        double z = std::nearbyint(a) + i + a;
        if (std::fabs(h[64 + i] - z) > 1e-3) return printf("conversions %d: %f, want %f\n", i, h[64 + i], z), 1;
    }
    struct {
        half h;
        short pad;
        __half2 h2;
        __nv_bfloat16 b;
    } sums, *d_sums;
    sums.h = __float2half(0);
    sums.h2 = __floats2half2_rn(0, 0);
    sums.b = __float2bfloat16(0);
    CHECK(cudaMalloc((void **)&d_sums, sizeof sums));
    CHECK(cudaMemcpy(d_sums, &sums, sizeof sums, cudaMemcpyHostToDevice));
    half_atomics<<<2, 64>>>(&d_sums->h, &d_sums->h2, &d_sums->b);
    CHECK(cudaMemcpy(&sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost));
    if (__half2float(sums.h) != 64 || __low2float(sums.h2) != 128 || __high2float(sums.h2) != -32 ||
        __bfloat162float(sums.b) != 128) {
        return printf("atomics %f %f\n", __half2float(sums.h), __bfloat162float(sums.b)), 1;
    }
    int ia[32], ib[32], io[32], *da, *db, *dout;
    for (int i = 0; i < 32; ++i) ia[i] = rand() * 3, ib[i] = rand() * 5;
    CHECK(cudaMalloc(&da, sizeof ia));
    CHECK(cudaMalloc(&db, sizeof ib));
    CHECK(cudaMalloc(&dout, sizeof io));
    CHECK(cudaMemcpy(da, ia, sizeof ia, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, ib, sizeof ib, cudaMemcpyHostToDevice));
    packed_dot<<<1, 32>>>(dout, da, db);
    CHECK(cudaMemcpy(io, dout, sizeof io, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        int s = 7;
        unsigned a = ia[i], b = ib[i];
        for (int k = 0; k < 4; ++k) s += int((signed char)(a >> 8 * k)) * int((signed char)(b >> 8 * k));
        s += (a + b) & 0xff;
        unsigned perm = (a & 0xff) | (b & 0xff) << 8 | (a >> 8 & 0xff) << 16 | (b >> 8 & 0xff) << 24;
        s += int(perm % 100);
        if (io[i] != s) return printf("packed %d: %d, want %d\n", i, io[i], s), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace low_precision

// Row softmax four ways: a block for a row with shared-memory trees, a warp for a row, online, and in place with
// float4.
namespace softmax {

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

}  // namespace softmax

// Element-wise kernels of a training loop: GELU forward and backward, residual, AdamW, cross entropy, encoder, bias.
namespace training_kernels {

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)

inline void cudaCheck(cudaError_t error, const char *file, int line) {
    if (error != cudaSuccess) {
        printf("[CUDA ERROR] at file %s:%d: %s\n", file, line, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define cudaCheck(err) (cudaCheck(err, __FILE__, __LINE__))

__global__ void gelu_forward(float *out, const float *inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float xi = inp[i];
        float cube = 0.044715f * xi * xi * xi;
        out[i] = 0.5f * xi * (1.0f + tanhf(GELU_SCALING_FACTOR * (xi + cube)));
    }
}

__global__ void gelu_backward(float *dinp, const float *inp, const float *dout, const int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float x = inp[i];
        float cube = 0.044715f * x * x * x;
        float tanh_arg = GELU_SCALING_FACTOR * (x + cube);
        float tanh_out = tanhf(tanh_arg);
        float coshf_out = coshf(tanh_arg);
        float sech_out = 1.0f / (coshf_out * coshf_out);
        float local_grad =
            0.5f * (1.0f + tanh_out) + x * 0.5f * sech_out * GELU_SCALING_FACTOR * (1.0f + 3.0f * 0.044715f * x * x);
        dinp[i] = local_grad * dout[i];
    }
}

__device__ inline float lerp(float start, float end, float weight) {
    return fma(weight, end, fma(-weight, start, start));
}

__global__ void adamw(float *params, float *grads, float *m_memory, float *v_memory, long num_parameters,
                      float learning_rate, float beta1, float beta2, float beta1_correction, float beta2_correction,
                      float eps, float weight_decay) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_parameters) return;
    float grad = grads[i];
    float m = m_memory[i];
    float v = v_memory[i];
    m = lerp(grad, m, beta1);
    m_memory[i] = m;
    v = lerp(grad * grad, v, beta2);
    v_memory[i] = v;
    m /= beta1_correction;
    v /= beta2_correction;
    params[i] -= learning_rate * (m / (sqrtf(v) + eps) + weight_decay * params[i]);
}

__global__ void encoder(float *out, const int *inp, const float *wte, const float *wpe, int B, int T, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * T * C) {
        int bt = idx / C, b = bt / T, t = bt % T, c = idx % C;
        out[idx] = wte[inp[b * T + t] * C + c] + wpe[t * C + c];
    }
}

__global__ void cross_entropy(float *losses, const float *probs, const int *targets, int B, int T, int V) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < B * T) {
        int b = i / T, t = i % T;
        losses[b * T + t] = -logf(probs[b * T * V + t * V + targets[b * T + t]]);
    }
}

// Column sums with one block for 32 columns, partial sums of the warps in shared memory.
__global__ void bias_backward(float *dbias, const float *dout, int rows, int cols) {
    __shared__ float sums[1024 / 32][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, col = blockIdx.x * 32 + lane;
    float sum = 0;
    for (int row = warp; row < rows; row += blockDim.x / 32) sum += dout[row * cols + col];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0) {
        for (int w = 1; w < blockDim.x / 32; ++w) sum += sums[w][lane];
        dbias[col] += sum;
    }
}

template <class T>
struct Device {
    T *p;
    size_t n;
    explicit Device(const std::vector<T> &v) : n(v.size()) {
        cudaCheck(cudaMalloc(&p, n * sizeof(T)));
        cudaCheck(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Device() { cudaFree(p); }
    std::vector<T> get() const {
        std::vector<T> v(n);
        cudaCheck(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
};

static void expect(const char *what, size_t i, double got, double want, double tol) {
    if (std::fabs(got - want) <= tol * (1 + std::fabs(want))) return;
    printf("%s[%zu]: %.8g, want %.8g\n", what, i, got, want);
    exit(1);
}

int main() {
    const int N = 3000;
    std::vector<float> x(N), dy(N), zero(N, 0.f), p(N), g(N), m(N), v(N);
    for (int i = 0; i < N; ++i) {
        x[i] = (rand() % 20001 - 10000) / 1500.f;
        dy[i] = (rand() % 2001 - 1000) / 1000.f;
        p[i] = (rand() % 2001 - 1000) / 1000.f;
        g[i] = (rand() % 2001 - 1000) / 500.f;
        m[i] = (rand() % 2001 - 1000) / 3000.f;
        v[i] = (rand() % 1000) / 1000.f;
    }
    Device<float> dx(x), ddy(dy), out(zero), dinp(zero), dp(p), dg(g), dm(m), dv(v);
    const int blocks = (N + 255) / 256;
    gelu_forward<<<blocks, 256>>>(out.p, dx.p, N);
    gelu_backward<<<blocks, 256>>>(dinp.p, dx.p, ddy.p, N);
    adamw<<<blocks, 256>>>(dp.p, dg.p, dm.p, dv.p, N, 1e-2f, 0.9f, 0.999f, 1 - 0.9f, 1 - 0.999f, 1e-8f, 0.1f);
    cudaCheck(cudaGetLastError());
    auto y = out.get(), dxv = dinp.get(), pv = dp.get();
    const double k = std::sqrt(2 / M_PI);
    for (int i = 0; i < N; ++i) {
        double xi = x[i], t = std::tanh(k * (xi + 0.044715 * xi * xi * xi)),
               sech = 1 / std::cosh(k * (xi + 0.044715 * xi * xi * xi));
        expect("gelu", i, y[i], 0.5 * xi * (1 + t), 1e-5);
        double grad = 0.5 * (1 + t) + xi * 0.5 * sech * sech * k * (1 + 3 * 0.044715 * xi * xi);
        expect("gelu'", i, dxv[i], grad * dy[i], 1e-4);
        double mi = 0.9 * m[i] + 0.1 * g[i], vi = 0.999 * v[i] + 0.001 * g[i] * g[i];
        double want = p[i] - 1e-2 * (mi / 0.1 / (std::sqrt(vi / 0.001) + 1e-8) + 0.1 * p[i]);
        expect("adamw", i, pv[i], want, 1e-5);
    }
    const int B = 2, T = 10, C = 24, V = 50;
    std::vector<int> tokens(B * T), targets(B * T);
    std::vector<float> wte(V * C), wpe(T * C), probs(B * T * V);
    for (int &t : tokens) t = rand() % V;
    for (int &t : targets) t = rand() % V;
    for (auto *w : {&wte, &wpe})
        for (float &f : *w) f = rand() / float(RAND_MAX);
    for (float &f : probs) f = (rand() % 1000 + 1) / 1001.f;
    Device<int> dtok(tokens), dtar(targets);
    Device<float> dwte(wte), dwpe(wpe), dprobs(probs), enc(std::vector<float>(B * T * C)),
        loss(std::vector<float>(B * T));
    encoder<<<(B * T * C + 127) / 128, 128>>>(enc.p, dtok.p, dwte.p, dwpe.p, B, T, C);
    cross_entropy<<<1, 32>>>(loss.p, dprobs.p, dtar.p, B, T, V);
    cudaCheck(cudaDeviceSynchronize());
    auto e = enc.get(), l = loss.get();
    for (int i = 0; i < B * T * C; ++i)
        expect("encoder", i, e[i], double(wte[tokens[i / C] * C + i % C]) + wpe[i / C % T * C + i % C], 1e-6);
    for (int i = 0; i < B * T; ++i) expect("loss", i, l[i], -std::log(double(probs[i * V + targets[i]])), 1e-5);
    const int rows = 33, cols = 64;
    std::vector<float> d(rows * cols);
    for (float &f : d) f = (rand() % 201 - 100) / 100.f;
    Device<float> dd(d), db(std::vector<float>(cols, 1.f));
    bias_backward<<<cols / 32, 256>>>(db.p, dd.p, rows, cols);
    cudaCheck(cudaGetLastError());
    auto b = db.get();
    for (int c = 0; c < cols; ++c) {
        double sum = 1;
        for (int r = 0; r < rows; ++r) sum += d[r * cols + c];
        expect("bias", c, b[c], sum, 1e-5);
    }
    printf("OK\n");
    return 0;
}

}  // namespace training_kernels

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(layernorm),
                         PROGRAM(low_precision),
                         PROGRAM(softmax),
                         PROGRAM(training_kernels),
                     });
}
