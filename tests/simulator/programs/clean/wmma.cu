// Tensor cores by nvcuda::wmma: correct programs, each of which prints OK as its last line.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "../check.h"
#include "../programs.h"

// wmma in bfloat16 with work on the fragments: softmax(Q K^T / sqrt(d)) of one 16 x 64 tile, the rows through shared
// memory.
namespace wmma_attention_scores {

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

}  // namespace wmma_attention_scores

// relu(A B + bias) in bf16 with f32 sums, several warps to a block, the result through shared memory to its odd edges.
namespace wmma_bf16_epilogue {

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

}  // namespace wmma_bf16_epilogue

// C = alpha * A * B + beta * C as the first tutorial on tensor cores has it: a warp for each 16 x 16 tile of C, all
// operands straight from global memory, f16 in and f32 out.
namespace wmma_gemm {

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

}  // namespace wmma_gemm

// The second step of the tutorials: four warps share tiles of A and B in padded shared memory, brought by cp.async into
// two buffers; each warp has 2 x 2 fragments, and C leaves through shared memory with a bias and a ReLU.
namespace wmma_gemm_tiled {

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

}  // namespace wmma_gemm_tiled

// wmma of bytes: quantised matrices, sums of 32 bits, scales of rows and columns put on afterwards.
namespace wmma_int8 {

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

}  // namespace wmma_int8

// A B in tf32, the operands rounded in the fragments as the documentation asks, and in two terms for more digits.
namespace wmma_tf32_gemm {

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

}  // namespace wmma_tf32_gemm

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(wmma_attention_scores),
                         PROGRAM(wmma_bf16_epilogue),
                         PROGRAM(wmma_gemm),
                         PROGRAM(wmma_gemm_tiled),
                         PROGRAM(wmma_int8),
                         PROGRAM(wmma_tf32_gemm),
                     });
}
