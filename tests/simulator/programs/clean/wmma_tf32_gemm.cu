// A B in tf32, the operands rounded in the fragments as the documentation asks, and in two terms for more digits.
#include <mma.h>

#include <cmath>
#include <cstdio>

#include "../check.h"

using namespace nvcuda;

using A = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using B = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major>;

// What tf32 keeps of each element, and what that leaves.
template <class F>
__device__ void halves(const F &all, F &high, F &low) {
    for (int i = 0; i < all.num_elements; ++i) {
        high.x[i] = wmma::__float_to_tf32(all.x[i]);
        low.x[i] = wmma::__float_to_tf32(all.x[i] - high.x[i]);
    }
}

template <bool TWO_TERMS>
__global__ void gemm(float *c, const float *a, const float *b, int n, int k) {
    const int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
    if (column >= n) return;  // the whole warp
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 8) {
        A fa, ah, al;
        B fb, bh, bl;
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + column * k + i, k);
        halves(fa, ah, al);
        halves(fb, bh, bl);
        if (TWO_TERMS) {
            wmma::mma_sync(sum, al, bh, sum);
            wmma::mma_sync(sum, ah, bl, sum);
        }
        wmma::mma_sync(sum, ah, bh, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

template <bool TWO_TERMS>
double worst(int m, int n, int k) {
    float *a, *b, *c;  // b column by column
    CHECK(cudaMallocManaged(&a, m * k * sizeof *a));
    CHECK(cudaMallocManaged(&b, k * n * sizeof *b));
    CHECK(cudaMallocManaged(&c, m * n * sizeof *c));
    for (int i = 0; i < m * k; ++i) a[i] = std::sin(i * 0.37f);
    for (int i = 0; i < k * n; ++i) b[i] = std::cos(i * 0.53f);
    gemm<TWO_TERMS><<<dim3((n / 16 + 2) / 3, m / 16), dim3(32, 3)>>>(c, a, b, n, k);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    double most = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double want = 0;
            for (int x = 0; x < k; ++x) want += double(a[i * k + x]) * b[j * k + x];
            most = std::fmax(most, std::fabs(c[i * n + j] - want));
        }
    for (float *p : {a, b, c}) CHECK(cudaFree(p));
    return most;
}

int main() {
    const int sizes[][3] = {{16, 16, 8}, {32, 64, 40}, {48, 80, 72}};
    for (auto [m, n, k] : sizes) {
        // Each product is wrong by at most 2^-11 + 2^-11 of 1; in two terms by some 2^-21.
        const double one = worst<false>(m, n, k), two = worst<true>(m, n, k);
        if (one > k / 1000.0 || two > k * 2e-6 || two * 20 > one)
            return std::printf("%d %d %d: wrong by %g, in two terms by %g\n", m, n, k, one, two), 1;
    }
    std::printf("OK\n");
    return 0;
}
