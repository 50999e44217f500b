// C = alpha * A * B + beta * C as the first tutorial on tensor cores has it: a warp for each 16 x 16 tile of C, all
// operands straight from global memory, f16 in and f32 out.
#include <cuda_fp16.h>
#include <mma.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "../check.h"

using namespace nvcuda;

__global__ void gemm(float *c, const half *a, const half *b, int m, int n, int k, float alpha, float beta) {
    const int row = 16 * ((blockIdx.x * blockDim.x + threadIdx.x) / warpSize);
    const int column = 16 * (blockIdx.y * blockDim.y + threadIdx.y);
    if (row >= m || column >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + column * k + i, k);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::load_matrix_sync(old, c + row * n + column, n, wmma::mem_row_major);
    for (int i = 0; i < old.num_elements; ++i) old.x[i] = alpha * sum.x[i] + beta * old.x[i];
    wmma::store_matrix_sync(c + row * n + column, old, n, wmma::mem_row_major);
}

int main() {
    const int m = 80, n = 48, k = 64;
    std::vector<half> a(m * k), b(k * n);  // b column by column
    std::vector<float> c(m * n), got(m * n);
    for (int i = 0; i < m * k; ++i) a[i] = __float2half((i * 37 % 101 - 50) / 64.0f);
    for (int i = 0; i < k * n; ++i) b[i] = __float2half((i * 53 % 97 - 48) / 64.0f);
    for (int i = 0; i < m * n; ++i) c[i] = i % 7;
    half *da, *db;
    float *dc;
    CHECK(cudaMalloc(&da, a.size() * sizeof(half)));
    CHECK(cudaMalloc(&db, b.size() * sizeof(half)));
    CHECK(cudaMalloc(&dc, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dc, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice));
    const dim3 block(64, 2), grid((m / 16 + 1) / 2, (n / 16 + 1) / 2);
    gemm<<<grid, block>>>(dc, da, db, m, n, k, 0.5f, 2.0f);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), dc, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double want = 0;
            for (int x = 0; x < k; ++x) want += double(__half2float(a[i * k + x])) * __half2float(b[j * k + x]);
            want = 0.5 * want + 2.0 * c[i * n + j];
            if (std::fabs(got[i * n + j] - want) > 1e-4)
                return std::printf("%d %d: %f, want %f\n", i, j, got[i * n + j], want), 1;
        }
    std::printf("OK\n");
    return 0;
}
