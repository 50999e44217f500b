// wmma in bfloat16 with work on the fragments: softmax(Q K^T / sqrt(d)) of one 16 x 64 tile, the rows through shared
// memory.
#include <cuda_bf16.h>
#include <mma.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "../check.h"

using namespace nvcuda;

constexpr int kRows = 16, kKeys = 64, kDepth = 32, kStride = kKeys + 4;

__global__ void scores(float *out, const __nv_bfloat16 *q, const __nv_bfloat16 *k) {
    __shared__ alignas(32) float s[kRows * kStride];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int d = 0; d < kDepth; d += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fq;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fk;
        wmma::load_matrix_sync(fq, q + d, kDepth);
        wmma::load_matrix_sync(fk, k + 16 * warp * kDepth + d, kDepth);
        wmma::mma_sync(sum, fq, fk, sum);
    }
    for (float &x : sum.x) x *= rsqrtf(float(kDepth));
    wmma::store_matrix_sync(s + 16 * warp, sum, kStride, wmma::mem_row_major);
    __syncthreads();
    for (int row = warp; row < kRows; row += 4) {
        const float a = s[row * kStride + lane], b = s[row * kStride + lane + 32];
        float most = fmaxf(a, b);
        for (int i = 16; i; i /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
        const float x = expf(a - most), y = expf(b - most);
        float total = x + y;
        for (int i = 16; i; i /= 2) total += __shfl_xor_sync(~0u, total, i);
        out[row * kKeys + lane] = x / total;
        out[row * kKeys + lane + 32] = y / total;
    }
}

int main() {
    __nv_bfloat16 *q, *k;
    float *out;
    CHECK(cudaMallocManaged(&q, kRows * kDepth * sizeof *q));
    CHECK(cudaMallocManaged(&k, kKeys * kDepth * sizeof *k));
    CHECK(cudaMallocManaged(&out, kRows * kKeys * sizeof *out));
    for (int i = 0; i < kRows * kDepth; ++i) q[i] = __float2bfloat16((i * 37 % 64 - 32) / 16.0f);
    for (int i = 0; i < kKeys * kDepth; ++i) k[i] = __float2bfloat16((i * 29 % 64 - 32) / 32.0f);
    scores<<<1, 128>>>(out, q, k);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kRows; ++i) {
        std::vector<double> row(kKeys);
        double total = 0;
        for (int j = 0; j < kKeys; ++j) {
            for (int d = 0; d < kDepth; ++d)
                row[j] += double(__bfloat162float(q[i * kDepth + d])) * __bfloat162float(k[j * kDepth + d]);
            total += row[j] = std::exp(row[j] / std::sqrt(double(kDepth)));
        }
        for (int j = 0; j < kKeys; ++j)
            if (std::fabs(out[i * kKeys + j] - row[j] / total) > 1e-5) return std::printf("%d %d\n", i, j), 1;
    }
    std::printf("OK\n");
    return 0;
}
