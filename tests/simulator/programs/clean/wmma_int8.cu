// wmma of bytes: quantised matrices, sums of 32 bits, scales of rows and columns put on afterwards.
#include <mma.h>

#include <cstdio>

#include "../check.h"

using namespace nvcuda;

constexpr int kM = 32, kN = 32, kK = 48;

__global__ void multiply(float *c, const signed char *a, const signed char *b, const float *row, const float *column) {
    __shared__ alignas(32) int sums[kM * kN];
    const int warp = threadIdx.x / 32, i = warp / 2 * 16, j = warp % 2 * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < kK; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
        wmma::load_matrix_sync(fa, a + i * kK + k, kK);
        wmma::load_matrix_sync(fb, b + j * kK + k, kK);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(sums + i * kN + j, sum, kN, wmma::mem_row_major);
    __syncthreads();
    for (int x = threadIdx.x; x < kM * kN; x += blockDim.x) c[x] = sums[x] * row[x / kN] * column[x % kN];
}

int main() {
    signed char *a, *b;
    float *c, *row, *column;
    CHECK(cudaMallocManaged(&a, kM * kK));
    CHECK(cudaMallocManaged(&b, kN * kK));
    CHECK(cudaMallocManaged(&c, kM * kN * sizeof(float)));
    CHECK(cudaMallocManaged(&row, kM * sizeof(float)));
    CHECK(cudaMallocManaged(&column, kN * sizeof(float)));
    for (int i = 0; i < kM * kK; ++i) a[i] = (signed char)(i * 37 % 256 - 128);
    for (int i = 0; i < kN * kK; ++i) b[i] = (signed char)(i * 91 % 256 - 128);
    for (int i = 0; i < kM; ++i) row[i] = 1.0f / (1 << i % 4), column[i] = 1.0f / (1 << i % 3);
    multiply<<<1, 128>>>(c, a, b, row, column);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kM; ++i)
        for (int j = 0; j < kN; ++j) {
            int sum = 0;
            for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[j * kK + k];
            if (c[i * kN + j] != sum * row[i] * column[j]) return std::printf("%d %d\n", i, j), 1;
        }
    std::printf("OK\n");
    return 0;
}
