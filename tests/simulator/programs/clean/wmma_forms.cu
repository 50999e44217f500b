// Every shape and type of <mma.h>, all four combinations of layouts, several strides, from shared and global memory,
// against sums of doubles. The fragments' elements are touched between load and multiplication, as programs do.
#include <mma.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "../check.h"

using namespace nvcuda;

constexpr int kMost = 1280;  // elements of a matrix with its padding

template <class T>
struct Memory {  // what lies in memory for fragments of T
    using type = T;
};
template <>
struct Memory<wmma::precision::tf32> {
    using type = float;
};

// C = 2 A * B + C by one warp. lda, ldb, ldc: elements. Shared: A, B and C lie in shared memory.
template <int M, int N, int K, class T, class Sum, class Result, class LayoutA, class LayoutB, bool Shared>
__global__ void multiply(const typename Memory<T>::type *a, const typename Memory<T>::type *b, const Sum *c, Result *d,
                         unsigned lda, unsigned ldb, unsigned ldc, bool c_by_row) {
    using Element = typename Memory<T>::type;
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
    wmma::fragment<wmma::accumulator, M, N, K, Result> fd;
    const wmma::layout_t layout = c_by_row ? wmma::mem_row_major : wmma::mem_col_major;
    if constexpr (Shared) {
        __shared__ __align__(32) Element sa[kMost], sb[kMost];
        __shared__ __align__(32) Sum sc[kMost];
        constexpr bool row_a = std::is_same_v<LayoutA, wmma::row_major>;
        constexpr bool row_b = std::is_same_v<LayoutB, wmma::row_major>;
        for (int i = threadIdx.x; i < (row_a ? M : K) * lda; i += 32) sa[i] = a[i];
        for (int i = threadIdx.x; i < (row_b ? K : N) * ldb; i += 32) sb[i] = b[i];
        for (int i = threadIdx.x; i < (c_by_row ? M : N) * ldc; i += 32) sc[i] = c[i];
        __syncwarp();
        wmma::load_matrix_sync(fa, sa, lda);
        wmma::load_matrix_sync(fb, sb, ldb);
        wmma::load_matrix_sync(fc, sc, ldc, layout);
    } else {
        wmma::load_matrix_sync(fa, a, lda);
        wmma::load_matrix_sync(fb, b, ldb);
        wmma::load_matrix_sync(fc, c, ldc, layout);
    }
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i] + fa.x[i];
    if constexpr (std::is_same_v<T, wmma::precision::tf32>) {
        for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
        for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    }
    wmma::mma_sync(fd, fa, fb, fc);
    if constexpr (Shared) {
        __shared__ __align__(32) Result sd[kMost];
        for (int i = threadIdx.x; i < kMost; i += 32) sd[i] = Result(0);
        __syncwarp();
        wmma::store_matrix_sync(sd, fd, ldc, layout);
        __syncwarp();
        for (int i = threadIdx.x; i < (c_by_row ? M : N) * ldc; i += 32) d[i] = sd[i];
    } else {
        wmma::store_matrix_sync(d, fd, ldc, layout);
    }
}

template <class T>
T *managed(size_t n) {
    T *p;
    CHECK(cudaMallocManaged(&p, n * sizeof(T)));
    for (size_t i = 0; i < n; ++i) p[i] = T(0.0f);
    return p;
}

// Small integers and quarters: exact in every type, and so are the sums.
double value(int i, int j, int seed, bool integer) {
    const int x = (i * 7 + j * 13 + seed * 5) % 11 - 5;
    return integer ? (x < 0 ? x + 5 : x) : x / 4.0;
}

template <int M, int N, int K, class T, class Sum, class Result, class LayoutA, class LayoutB, bool Shared>
void try_one(int padding, bool c_by_row) {
    using Element = typename Memory<T>::type;
    constexpr bool row_a = std::is_same_v<LayoutA, wmma::row_major>, row_b = std::is_same_v<LayoutB, wmma::row_major>;
    constexpr bool integer = std::is_integral_v<Sum>;
    const unsigned lda = (row_a ? K : M) + padding, ldb = (row_b ? N : K) + padding, ldc = (c_by_row ? N : M) + padding;
    Element *a = managed<Element>(kMost), *b = managed<Element>(kMost);
    Sum *c = managed<Sum>(kMost);
    Result *d = managed<Result>(kMost);
    for (int i = 0; i < M; ++i)
        for (int k = 0; k < K; ++k) a[row_a ? i * lda + k : k * lda + i] = Element(float(value(i, k, 1, integer)));
    for (int k = 0; k < K; ++k)
        for (int j = 0; j < N; ++j) b[row_b ? k * ldb + j : j * ldb + k] = Element(float(value(k, j, 2, integer)));
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) c[c_by_row ? i * ldc + j : j * ldc + i] = Sum(float(value(i, j, 3, integer)));
    multiply<M, N, K, T, Sum, Result, LayoutA, LayoutB, Shared><<<1, 32>>>(a, b, c, d, lda, ldb, ldc, c_by_row);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            double want = value(i, j, 3, integer);
            for (int k = 0; k < K; ++k) want += 2 * value(i, k, 1, integer) * value(k, j, 2, integer);
            const double have = double(float(d[c_by_row ? i * ldc + j : j * ldc + i]));
            if (have != want) {
                std::printf("m%dn%dk%d, %zu bytes, row %d, column %d: %f, want %f\n", M, N, K, sizeof(Element), i, j,
                            have, want);
                std::exit(1);
            }
        }
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    CHECK(cudaFree(d));
}

template <int M, int N, int K, class T, class Sum, class Result, bool Shared>
void try_layouts() {
    constexpr int kPadding = 16 / sizeof(typename Memory<T>::type);  // lines keep their alignment
    using Row = wmma::row_major;
    using Column = wmma::col_major;
    try_one<M, N, K, T, Sum, Result, Row, Row, Shared>(0, true);
    try_one<M, N, K, T, Sum, Result, Row, Column, Shared>(kPadding, true);
    try_one<M, N, K, T, Sum, Result, Column, Row, Shared>(2 * kPadding, false);
    try_one<M, N, K, T, Sum, Result, Column, Column, Shared>(kPadding, false);
}

template <class T, class Sum, class Result>
void try_shapes() {
    try_layouts<16, 16, 16, T, Sum, Result, true>();
    try_layouts<32, 8, 16, T, Sum, Result, true>();
    try_layouts<8, 32, 16, T, Sum, Result, false>();
}

int main() {
    try_shapes<__half, float, float>();
    try_shapes<__half, __half, __half>();
    try_layouts<16, 16, 16, __half, __half, float, false>();
    try_layouts<8, 32, 16, __half, float, __half, true>();
    try_shapes<__nv_bfloat16, float, float>();
    try_shapes<signed char, int, int>();
    try_shapes<unsigned char, int, int>();
    try_layouts<16, 16, 8, wmma::precision::tf32, float, float, true>();
    try_layouts<16, 16, 8, wmma::precision::tf32, float, float, false>();
    try_layouts<8, 8, 4, double, double, double, true>();
    try_layouts<8, 8, 4, double, double, double, false>();
    std::printf("OK\n");
}
