// The second step of the tutorials: four warps share tiles of A and B in padded shared memory, brought by cp.async into
// two buffers; each warp has 2 x 2 fragments, and C leaves through shared memory with a bias and a ReLU.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "../check.h"

using namespace nvcuda;

constexpr int kTile = 64, kDepth = 32, kStrideA = kDepth + 8, kStrideB = kTile + 8, kStrideC = kTile + 4;

struct Tiles {
    union {
        struct {
            half a[2][kTile * kStrideA], b[2][kDepth * kStrideB];
        };
        float c[kTile * kStrideC];
    };
};

__device__ void fetch(Tiles &t, int buffer, const half *a, const half *b, int n, int k, int row, int column, int step) {
    for (int i = threadIdx.x; i < kTile * kDepth / 8; i += blockDim.x) {
        const int r = i / (kDepth / 8), x = i % (kDepth / 8) * 8;
        __pipeline_memcpy_async(&t.a[buffer][r * kStrideA + x], &a[(row + r) * k + step + x], 16);
    }
    for (int i = threadIdx.x; i < kDepth * kTile / 8; i += blockDim.x) {
        const int r = i / (kTile / 8), x = i % (kTile / 8) * 8;
        __pipeline_memcpy_async(&t.b[buffer][r * kStrideB + x], &b[(step + r) * n + column + x], 16);
    }
    __pipeline_commit();
}

__global__ void __launch_bounds__(128) gemm(half *c, const half *a, const half *b, const float *bias, int n, int k) {
    __shared__ __align__(128) Tiles t;
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (auto &line : sum)
        for (auto &fragment : line) wmma::fill_fragment(fragment, 0.0f);
    fetch(t, 0, a, b, n, k, row, column, 0);
    for (int step = 0; step < k; step += kDepth) {
        const int buffer = step / kDepth % 2;
        if (step + kDepth < k) {
            fetch(t, buffer ^ 1, a, b, n, k, row, column, step + kDepth);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        for (int x = 0; x < kDepth; x += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(fa[i], &t.a[buffer][(warp_row + 16 * i) * kStrideA + x], kStrideA);
                wmma::load_matrix_sync(fb[i], &t.b[buffer][x * kStrideB + warp_column + 16 * i], kStrideB);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&t.c[(warp_row + 16 * i) * kStrideC + warp_column + 16 * j], sum[i][j], kStrideC,
                                    wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) {
        const int r = i / kTile, x = i % kTile;
        const float value = t.c[r * kStrideC + x] + bias[column + x];
        c[(row + r) * n + column + x] = __float2half(fmaxf(value, 0.0f));
    }
}

int main() {
    const int m = 64, n = 128, k = 96;
    std::vector<half> a(m * k), b(k * n), got(m * n);
    std::vector<float> bias(n);
    for (int i = 0; i < m * k; ++i) a[i] = __float2half((i * 37 % 101 - 50) / 64.0f);
    for (int i = 0; i < k * n; ++i) b[i] = __float2half((i * 53 % 97 - 48) / 64.0f);
    for (int i = 0; i < n; ++i) bias[i] = (i % 9 - 4) / 4.0f;
    half *da, *db, *dc;
    float *dbias;
    CHECK(cudaMalloc(&da, a.size() * sizeof(half)));
    CHECK(cudaMalloc(&db, b.size() * sizeof(half)));
    CHECK(cudaMalloc(&dc, got.size() * sizeof(half)));
    CHECK(cudaMalloc(&dbias, n * sizeof(float)));
    CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dbias, bias.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    gemm<<<dim3(n / kTile, m / kTile), 128>>>(dc, da, db, dbias, n, k);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), dc, got.size() * sizeof(half), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double want = bias[j];
            for (int x = 0; x < k; ++x) want += double(__half2float(a[i * k + x])) * __half2float(b[x * n + j]);
            want = want > 0 ? want : 0;
            if (std::fabs(__half2float(got[i * n + j]) - want) > 1e-3 * (1 + std::fabs(want)))
                return std::printf("%d %d: %f, want %f\n", i, j, __half2float(got[i * n + j]), want), 1;
        }
    std::printf("OK\n");
    return 0;
}
