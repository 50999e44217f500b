// relu(A B + bias) in bf16 with f32 sums, several warps to a block, the result through shared memory to its odd edges.
#include <cuda_bf16.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../check.h"

using namespace nvcuda;

constexpr int kWarps = 4, kTile = 16;

__global__ void layer(float *out, const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *bias, int m, int n,
                      int k) {
    __shared__ __nv_bfloat16 sa[kTile][kTile + 8], sb[kTile][kWarps * kTile + 8];
    __shared__ float sc[kWarps][kTile][kTile + 4];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.y * kTile;
    const int column = blockIdx.x * kWarps * kTile;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int first = 0; first < k; first += kTile) {
        for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) {
            const int r = row + i / kTile, c = first + i % kTile;
            sa[i / kTile][i % kTile] = r < m && c < k ? a[r * k + c] : __float2bfloat16(0.0f);
        }
        for (int i = threadIdx.x; i < kTile * kWarps * kTile; i += blockDim.x) {
            const int r = first + i / (kWarps * kTile), c = column + i % (kWarps * kTile);
            sb[i / (kWarps * kTile)][i % (kWarps * kTile)] = r < k && c < n ? b[r * n + c] : __float2bfloat16(0.0f);
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, &sa[0][0], kTile + 8);
        wmma::load_matrix_sync(fb, &sb[0][warp * kTile], kWarps * kTile + 8);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(&sc[warp][0][0], sum, kTile + 4, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < kTile * kTile; i += 32) {
        const int r = row + i / kTile, c = column + warp * kTile + i % kTile;
        if (r < m && c < n) out[r * n + c] = fmaxf(sc[warp][i / kTile][i % kTile] + bias[c], 0.0f);
    }
}

bool run(int m, int n, int k) {
    __nv_bfloat16 *a, *b;
    float *bias, *out;
    CHECK(cudaMallocManaged(&a, m * k * sizeof *a));
    CHECK(cudaMallocManaged(&b, k * n * sizeof *b));
    CHECK(cudaMallocManaged(&bias, n * sizeof *bias));
    CHECK(cudaMallocManaged(&out, m * n * sizeof *out));
    // Eighths: sums are exact.
    for (int i = 0; i < m * k; ++i) a[i] = __float2bfloat16((i * 37 % 31 - 15) / 8.0f);
    for (int i = 0; i < k * n; ++i) b[i] = __float2bfloat16((i * 53 % 29 - 14) / 8.0f);
    for (int i = 0; i < n; ++i) bias[i] = i % 5 - 2;
    layer<<<dim3((n + kWarps * kTile - 1) / (kWarps * kTile), (m + kTile - 1) / kTile), kWarps * 32>>>(out, a, b, bias,
                                                                                                       m, n, k);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double want = bias[j];
            for (int x = 0; x < k; ++x) want += double(__bfloat162float(a[i * k + x])) * __bfloat162float(b[x * n + j]);
            right = right && out[i * n + j] == std::max(want, 0.0);
        }
    for (void *p : {(void *)a, (void *)b, (void *)bias, (void *)out}) CHECK(cudaFree(p));
    return right;
}

int main() {
    if (!run(16, 64, 16) || !run(33, 100, 50) || !run(5, 7, 3)) return std::printf("wrong\n"), 1;
    std::printf("OK\n");
    return 0;
}
