// Layer norm forward (one warp for a row, cooperative groups) and backward (shared-memory accumulators for the
// weights).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

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
