// Kernels over matrices and grids of points: correct programs, each of which prints OK as its last line.
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

// C = alpha * A * B + beta * C, one thread for each element of C: first with threadIdx.x down the rows, then along
// them.
namespace sgemm_naive {

__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < M && y < N) {
        float sum = 0.0f;
        for (int i = 0; i < K; ++i) sum += A[x * K + i] * B[i * N + y];
        C[x * N + y] = alpha * sum + beta * C[x * N + y];
    }
}

template <int BLOCK>
__global__ void sgemm_coalesced(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                float *C) {
    const int row = blockIdx.x * BLOCK + threadIdx.x / BLOCK;
    const int col = blockIdx.y * BLOCK + threadIdx.x % BLOCK;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) sum += A[row * K + i] * B[i * N + col];
    C[row * N + col] = alpha * sum + beta * C[row * N + col];
}

int main() {
    const int M = 70, N = 50, K = 37;
    const float alpha = 0.5f, beta = 3.0f;
    std::vector<float> A(M * K), B(K * N), C(M * N), out(M * N);
    srand(1);
    for (auto *m : {&A, &B, &C}) {
        for (float &v : *m) v = rand() / float(RAND_MAX) - 0.5f;
    }
    float *dA, *dB, *dC;
    CHECK(cudaMalloc(&dA, A.size() * sizeof(float)));
    CHECK(cudaMalloc(&dB, B.size() * sizeof(float)));
    CHECK(cudaMalloc(&dC, C.size() * sizeof(float)));
    CHECK(cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dB, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));
    for (int variant = 0; variant < 2; ++variant) {
        CHECK(cudaMemcpy(dC, C.data(), C.size() * sizeof(float), cudaMemcpyHostToDevice));
        if (variant == 0) {
            dim3 grid((M + 31) / 32, (N + 31) / 32), block(32, 32);
            sgemm_naive<<<grid, block>>>(M, N, K, alpha, dA, dB, beta, dC);
        } else {
            dim3 grid((M + 31) / 32, (N + 31) / 32);
            sgemm_coalesced<32><<<grid, 32 * 32>>>(M, N, K, alpha, dA, dB, beta, dC);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(out.data(), dC, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
        for (int m = 0; m < M; ++m) {
            for (int n = 0; n < N; ++n) {
                double sum = 0;
                for (int k = 0; k < K; ++k) sum += double(A[m * K + k]) * B[k * N + n];
                const double want = alpha * sum + beta * C[m * N + n];
                if (std::fabs(out[m * N + n] - want) > 1e-4) {
                    printf("variant %d: C[%d][%d] = %f, want %f\n", variant, m, n, out[m * N + n], want);
                    return 1;
                }
            }
        }
    }
    CHECK(cudaFree(dA));
    CHECK(cudaFree(dB));
    CHECK(cudaFree(dC));
    printf("OK\n");
    return 0;
}

}  // namespace sgemm_naive

// The shared-memory half of an SGEMM ladder: block tiles, 1D and 2D register tiles, float4 loads with A transposed in
// shared memory, warp tiles.
namespace sgemm_tiled {

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

static void check(cudaError_t error, const char *file, int line) {
    if (error != cudaSuccess) {
        printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define cudaCheck(err) (check(err, __FILE__, __LINE__))

template <const int BS>
__global__ void shared_tile(int M, int N, int K, const float *A, const float *B, float *C) {
    __shared__ float As[BS * BS];
    __shared__ float Bs[BS * BS];
    const int col = threadIdx.x % BS, row = threadIdx.x / BS;
    A += blockIdx.x * BS * K;
    B += blockIdx.y * BS;
    C += blockIdx.x * BS * N + blockIdx.y * BS;
    float tmp = 0.0f;
    for (int bk = 0; bk < K; bk += BS) {
        As[row * BS + col] = A[row * K + col];
        Bs[row * BS + col] = B[row * N + col];
        __syncthreads();
        A += BS;
        B += BS * N;
        for (int dot = 0; dot < BS; ++dot) tmp += As[row * BS + dot] * Bs[dot * BS + col];
        __syncthreads();
    }
    C[row * N + col] = tmp;
}

template <const int BM, const int BN, const int BK, const int TM>
__global__ void tile_1d(int M, int N, int K, const float *A, const float *B, float *C) {
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    const int threadCol = threadIdx.x % BN, threadRow = threadIdx.x / BN;
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    assert(BM * BK == blockDim.x);
    assert(BN * BK == blockDim.x);
    const unsigned innerColA = threadIdx.x % BK, innerRowA = threadIdx.x / BK;
    const unsigned innerColB = threadIdx.x % BN, innerRowB = threadIdx.x / BN;
    float results[TM] = {0.0};
    for (unsigned bk = 0; bk < K; bk += BK) {
        As[innerRowA * BK + innerColA] = A[innerRowA * K + innerColA];
        Bs[innerRowB * BN + innerColB] = B[innerRowB * N + innerColB];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (unsigned dot = 0; dot < BK; ++dot) {
            float tmpB = Bs[dot * BN + threadCol];
            for (unsigned r = 0; r < TM; ++r) results[r] += As[(threadRow * TM + r) * BK + dot] * tmpB;
        }
        __syncthreads();
    }
    for (unsigned r = 0; r < TM; ++r) C[(threadRow * TM + r) * N + threadCol] = results[r];
}

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    tile_2d(int M, int N, int K, const float *A, const float *B, float *C) {
    const unsigned threads = BM * BN / (TM * TN);
    const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    const unsigned innerRowA = threadIdx.x / BK, innerColA = threadIdx.x % BK, strideA = threads / BK;
    const unsigned innerRowB = threadIdx.x / BN, innerColB = threadIdx.x % BN, strideB = threads / BN;
    float results[TM * TN] = {0.0}, regM[TM] = {0.0}, regN[TN] = {0.0};
    for (unsigned bk = 0; bk < K; bk += BK) {
        for (unsigned o = 0; o < BM; o += strideA) {
            As[(innerRowA + o) * BK + innerColA] = A[(innerRowA + o) * K + innerColA];
        }
        for (unsigned o = 0; o < BK; o += strideB) {
            Bs[(innerRowB + o) * BN + innerColB] = B[(innerRowB + o) * N + innerColB];
        }
        __syncthreads();
        A += BK;
        B += BK * N;
        for (unsigned dot = 0; dot < BK; ++dot) {
            for (unsigned i = 0; i < TM; ++i) regM[i] = As[(threadRow * TM + i) * BK + dot];
            for (unsigned i = 0; i < TN; ++i) regN[i] = Bs[dot * BN + threadCol * TN + i];
            for (unsigned m = 0; m < TM; ++m) {
                for (unsigned n = 0; n < TN; ++n) results[m * TN + n] += regM[m] * regN[n];
            }
        }
        __syncthreads();
    }
    for (unsigned m = 0; m < TM; ++m) {
        for (unsigned n = 0; n < TN; ++n) {
            C[(threadRow * TM + m) * N + threadCol * TN + n] = results[m * TN + n];
        }
    }
}

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void vectorized(int M, int N, int K, float *A, float *B, float *C) {
    const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    const unsigned innerRowA = threadIdx.x / (BK / 4), innerColA = threadIdx.x % (BK / 4);
    const unsigned innerRowB = threadIdx.x / (BN / 4), innerColB = threadIdx.x % (BN / 4);
    float results[TM * TN] = {0.0}, regM[TM] = {0.0}, regN[TN] = {0.0};
    for (unsigned bk = 0; bk < K; bk += BK) {
        float4 tmp = reinterpret_cast<float4 *>(&A[innerRowA * K + innerColA * 4])[0];
        As[(innerColA * 4 + 0) * BM + innerRowA] = tmp.x;
        As[(innerColA * 4 + 1) * BM + innerRowA] = tmp.y;
        As[(innerColA * 4 + 2) * BM + innerRowA] = tmp.z;
        As[(innerColA * 4 + 3) * BM + innerRowA] = tmp.w;
        reinterpret_cast<float4 *>(&Bs[innerRowB * BN + innerColB * 4])[0] =
            reinterpret_cast<float4 *>(&B[innerRowB * N + innerColB * 4])[0];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (unsigned dot = 0; dot < BK; ++dot) {
            for (unsigned i = 0; i < TM; ++i) regM[i] = As[dot * BM + threadRow * TM + i];
            for (unsigned i = 0; i < TN; ++i) regN[i] = Bs[dot * BN + threadCol * TN + i];
            for (unsigned m = 0; m < TM; ++m) {
                for (unsigned n = 0; n < TN; ++n) results[m * TN + n] += regM[m] * regN[n];
            }
        }
        __syncthreads();
    }
    for (unsigned m = 0; m < TM; m += 1) {
        for (unsigned n = 0; n < TN; n += 4) {
            float4 tmp;
            tmp.x = results[m * TN + n];
            tmp.y = results[m * TN + n + 1];
            tmp.z = results[m * TN + n + 2];
            tmp.w = results[m * TN + n + 3];
            reinterpret_cast<float4 *>(&C[(threadRow * TM + m) * N + threadCol * TN + n])[0] = tmp;
        }
    }
}

const int WARPSIZE = 32;
template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, int THREADS>
__global__ void __launch_bounds__(THREADS) warptiled(int M, int N, int K, float *A, float *B, float *C) {
    constexpr int WMITER = (WM * WN) / (WARPSIZE * TM * TN * WNITER);
    constexpr int WSUBM = WM / WMITER, WSUBN = WN / WNITER;
    const int warp = threadIdx.x / WARPSIZE, warpCol = warp % (BN / WN), warpRow = warp / (BN / WN);
    const int lane = threadIdx.x % WARPSIZE, laneCol = lane % (WSUBN / TN), laneRow = lane / (WSUBN / TN);
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += (blockIdx.y * BM + warpRow * WM) * N + blockIdx.x * BN + warpCol * WN;
    const int innerRowA = threadIdx.x / (BK / 4), innerColA = threadIdx.x % (BK / 4);
    constexpr int rowStrideA = (THREADS * 4) / BK;
    const int innerRowB = threadIdx.x / (BN / 4), innerColB = threadIdx.x % (BN / 4);
    constexpr int rowStrideB = THREADS / (BN / 4);
    float results[WMITER * TM * WNITER * TN] = {0.0}, regM[WMITER * TM] = {0.0}, regN[WNITER * TN] = {0.0};
    for (int bk = 0; bk < K; bk += BK) {
        for (int o = 0; o + rowStrideA <= BM; o += rowStrideA) {
            const float4 t = reinterpret_cast<const float4 *>(&A[(innerRowA + o) * K + innerColA * 4])[0];
            As[(innerColA * 4 + 0) * BM + innerRowA + o] = t.x;
            As[(innerColA * 4 + 1) * BM + innerRowA + o] = t.y;
            As[(innerColA * 4 + 2) * BM + innerRowA + o] = t.z;
            As[(innerColA * 4 + 3) * BM + innerRowA + o] = t.w;
        }
        for (int o = 0; o + rowStrideB <= BK; o += rowStrideB) {
            reinterpret_cast<float4 *>(&Bs[(innerRowB + o) * BN + innerColB * 4])[0] =
                reinterpret_cast<const float4 *>(&B[(innerRowB + o) * N + innerColB * 4])[0];
        }
        __syncthreads();
        for (int dot = 0; dot < BK; ++dot) {
            for (int wm = 0; wm < WMITER; ++wm) {
                for (int i = 0; i < TM; ++i) {
                    regM[wm * TM + i] = As[dot * BM + warpRow * WM + wm * WSUBM + laneRow * TM + i];
                }
            }
            for (int wn = 0; wn < WNITER; ++wn) {
                for (int i = 0; i < TN; ++i) {
                    regN[wn * TN + i] = Bs[dot * BN + warpCol * WN + wn * WSUBN + laneCol * TN + i];
                }
            }
            for (int wm = 0; wm < WMITER; ++wm) {
                for (int wn = 0; wn < WNITER; ++wn) {
                    for (int m = 0; m < TM; ++m) {
                        for (int n = 0; n < TN; ++n) {
                            results[(wm * TM + m) * (WNITER * TN) + wn * TN + n] +=
                                regM[wm * TM + m] * regN[wn * TN + n];
                        }
                    }
                }
            }
        }
        A += BK;
        B += BK * N;
        __syncthreads();
    }
    for (int wm = 0; wm < WMITER; ++wm) {
        for (int wn = 0; wn < WNITER; ++wn) {
            float *out = C + (wm * WSUBM) * N + wn * WSUBN;
            for (int m = 0; m < TM; ++m) {
                for (int n = 0; n < TN; n += 4) {
                    const int i = (wm * TM + m) * (WNITER * TN) + wn * TN + n;
                    float4 t = make_float4(results[i], results[i + 1], results[i + 2], results[i + 3]);
                    reinterpret_cast<float4 *>(&out[(laneRow * TM + m) * N + laneCol * TN + n])[0] = t;
                }
            }
        }
    }
}

int main() {
    const int M = 128, N = 128, K = 64;
    std::vector<float> A(M * K), B(K * N), want(M * N), C(M * N);
    srand(2);
    for (float &v : A) v = rand() / float(RAND_MAX) - 0.5f;
    for (float &v : B) v = rand() / float(RAND_MAX) - 0.5f;
    for (int m = 0; m < M; ++m) {
        for (int n = 0; n < N; ++n) {
            double sum = 0;
            for (int k = 0; k < K; ++k) sum += double(A[m * K + k]) * B[k * N + n];
            want[m * N + n] = sum;
        }
    }
    float *dA, *dB, *dC;
    cudaCheck(cudaMalloc((void **)&dA, sizeof(float) * M * K));
    cudaCheck(cudaMalloc((void **)&dB, sizeof(float) * K * N));
    cudaCheck(cudaMalloc((void **)&dC, sizeof(float) * M * N));
    cudaCheck(cudaMemcpy(dA, A.data(), sizeof(float) * M * K, cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(dB, B.data(), sizeof(float) * K * N, cudaMemcpyHostToDevice));
    for (int kernel = 0; kernel < 5; ++kernel) {
        cudaCheck(cudaMemset(dC, 0xff, sizeof(float) * M * N));
        switch (kernel) {
            case 0: {
                dim3 grid(CEIL_DIV(M, 32), CEIL_DIV(N, 32));
                cudaCheck(cudaFuncSetAttribute(shared_tile<32>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                               cudaSharedmemCarveoutMaxShared));
                shared_tile<32><<<grid, 1024>>>(M, N, K, dA, dB, dC);
                break;
            }
            case 1:
                tile_1d<64, 64, 8, 8><<<dim3(CEIL_DIV(N, 64), CEIL_DIV(M, 64)), 512>>>(M, N, K, dA, dB, dC);
                break;
            case 2:
                tile_2d<64, 64, 8, 8, 8><<<dim3(CEIL_DIV(N, 64), CEIL_DIV(M, 64)), 64>>>(M, N, K, dA, dB, dC);
                break;
            case 3:
                vectorized<128, 128, 8, 8, 8><<<dim3(CEIL_DIV(N, 128), CEIL_DIV(M, 128)), 256>>>(M, N, K, dA, dB, dC);
                break;
            case 4:
                warptiled<128, 128, 16, 64, 64, 4, 8, 4, 128>
                    <<<dim3(CEIL_DIV(N, 128), CEIL_DIV(M, 128)), 128>>>(M, N, K, dA, dB, dC);
                break;
        }
        cudaCheck(cudaGetLastError());
        cudaCheck(cudaDeviceSynchronize());
        cudaCheck(cudaMemcpy(C.data(), dC, sizeof(float) * M * N, cudaMemcpyDeviceToHost));
        for (int i = 0; i < M * N; ++i) {
            if (!(std::fabs(C[i] - want[i]) < 1e-3)) {
                printf("kernel %d: divergence at %d: is %f, should be %f\n", kernel, i, C[i], want[i]);
                return 1;
            }
        }
    }
    printf("OK\n");
    return 0;
}

}  // namespace sgemm_tiled

// A 1D stencil with halo in shared memory, a 2D heat step with early exit, constant coefficients, a double pointer
// swap.
namespace stencil {

#define RADIUS 3
#define BLOCK_SIZE 96

__constant__ float coef[2 * RADIUS + 1];

__global__ void stencil_1d(const float *in, float *out, int n) {
    __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
    int gindex = threadIdx.x + blockIdx.x * blockDim.x;
    int lindex = threadIdx.x + RADIUS;
    temp[lindex] = gindex < n ? in[gindex] : 0.f;
    if (threadIdx.x < RADIUS) {
        temp[lindex - RADIUS] = gindex >= RADIUS ? in[gindex - RADIUS] : 0.f;
        temp[lindex + BLOCK_SIZE] = gindex + BLOCK_SIZE < n ? in[gindex + BLOCK_SIZE] : 0.f;
    }
    __syncthreads();
    float result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) result += coef[offset + RADIUS] * temp[lindex + offset];
    if (gindex < n) out[gindex] = result;
}

__global__ void heat(float *next, const float *now, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        next[y * w + x] = now[y * w + x];
        return;
    }
    next[y * w + x] = now[y * w + x] + 0.2f * (now[y * w + x - 1] + now[y * w + x + 1] + now[(y - 1) * w + x] +
                                               now[(y + 1) * w + x] - 4 * now[y * w + x]);
}

int main() {
    const int n = 1000;
    static float in[n], out[n], c[2 * RADIUS + 1] = {0.05f, 0.1f, 0.2f, 0.3f, 0.2f, 0.1f, 0.05f};
    for (int i = 0; i < n; i++) in[i] = rand() % 100;
    float *d_in, *d_out;
    cudaMalloc((void **)&d_in, sizeof in);
    cudaMalloc((void **)&d_out, sizeof out);
    cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(coef, c, sizeof c);
    stencil_1d<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(d_in, d_out, n);
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
        float want = 0;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            if (i + k >= 0 && i + k < n) want += c[k + RADIUS] * in[i + k];
        }
        if (!(abs(want - out[i]) < 1e-3f)) {
            printf("stencil %d: %f, want %f\n", i, out[i], want);
            return 1;
        }
    }
    const int w = 70, h = 45, steps = 10;
    float *a, *b, *host = (float *)malloc(w * h * 4), *other = (float *)malloc(w * h * 4),
                  *got = (float *)malloc(w * h * 4);
    for (int i = 0; i < w * h; i++) host[i] = rand() % 1000 / 10.f;
    cudaMalloc((void **)&a, w * h * 4);
    cudaMalloc((void **)&b, w * h * 4);
    cudaMemcpy(a, host, w * h * 4, cudaMemcpyHostToDevice);
    for (int s = 0; s < steps; s++) {
        heat<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(b, a, w, h);
        float *t = a;
        a = b;
        b = t;
        for (int y = 0; y < h; y++) {
            for (int x = 0; x < w; x++) {
                float v = host[y * w + x];
                if (x && y && x < w - 1 && y < h - 1) {
                    v += 0.2f * (host[y * w + x - 1] + host[y * w + x + 1] + host[(y - 1) * w + x] +
                                 host[(y + 1) * w + x] - 4 * v);
                }
                other[y * w + x] = v;
            }
        }
        float *u = host;
        host = other;
        other = u;
    }
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cudaMemcpy(got, a, w * h * 4, cudaMemcpyDeviceToHost);
    for (int i = 0; i < w * h; i++) {
        if (!(abs(got[i] - host[i]) < 1e-2f)) {
            printf("heat %d: %f, want %f\n", i, got[i], host[i]);
            return 1;
        }
    }
    printf("OK\n");
    return 0;
}

}  // namespace stencil

// Transposes: naive, through a shared tile with bank conflicts, with a padded tile, with an XOR swizzle, and of bytes.
namespace transpose {

const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;

__global__ void transposeNaive(float *odata, const float *idata) {
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[x * height + (y + j)] = idata[(y + j) * width + x];
}

template <int PAD>
__global__ void transposeTile(float *odata, const float *idata) {
    __shared__ float tile[TILE_DIM][TILE_DIM + PAD];
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void transposeSwizzled(float *odata, const float *idata) {
    __shared__ float tile[TILE_DIM * TILE_DIM];
    int width = gridDim.x * TILE_DIM, height = gridDim.y * TILE_DIM;
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        int row = threadIdx.y + j;
        tile[row * TILE_DIM + (threadIdx.x ^ row)] = idata[(y + j) * width + x];
    }
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        int col = threadIdx.y + j;
        odata[(y + j) * height + x] = tile[threadIdx.x * TILE_DIM + (col ^ threadIdx.x)];
    }
}

__global__ void transposeBytes(uint8_t *out, const uint8_t *in, int rows, int cols) {
    __shared__ uint8_t tile[16][16 + 1];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = in[r * cols + c];
    __syncthreads();
    r = blockIdx.y * 16 + threadIdx.x;
    c = blockIdx.x * 16 + threadIdx.y;
    if (r < rows && c < cols) out[c * rows + r] = tile[threadIdx.x][threadIdx.y];
}

int main() {
    const int nx = 96, ny = 64;
    std::vector<float> in(nx * ny), out(nx * ny);
    for (int i = 0; i < nx * ny; ++i) in[i] = i;
    float *d_in = nullptr, *d_out = nullptr;
    if (cudaMalloc(&d_in, in.size() * 4) || cudaMalloc(&d_out, in.size() * 4)) return 2;
    cudaMemcpy(d_in, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
    dim3 grid(nx / TILE_DIM, ny / TILE_DIM, 1), block(TILE_DIM, BLOCK_ROWS, 1);
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int kind = 0; kind < 4; ++kind) {
        cudaMemset(d_out, 0, in.size() * 4);
        cudaEventRecord(start, 0);
        if (kind == 0) transposeNaive<<<grid, block>>>(d_out, d_in);
        if (kind == 1) transposeTile<0><<<grid, block>>>(d_out, d_in);
        if (kind == 2) transposeTile<1><<<grid, block>>>(d_out, d_in);
        if (kind == 3) transposeSwizzled<<<grid, block>>>(d_out, d_in);
        cudaEventRecord(stop, 0);
        cudaEventSynchronize(stop);
        float ms = -1;
        if (cudaEventElapsedTime(&ms, start, stop) != cudaSuccess || ms < 0) return 3;
        if (cudaMemcpy(out.data(), d_out, out.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
        for (int y = 0; y < ny; ++y) {
            for (int x = 0; x < nx; ++x) {
                if (out[x * ny + y] != in[y * nx + x]) {
                    printf("kind %d wrong at %d %d\n", kind, y, x);
                    return 1;
                }
            }
        }
    }
    const int rows = 45, cols = 70;
    std::vector<uint8_t> bytes(rows * cols), turned(rows * cols);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 37);
    uint8_t *b_in, *b_out;
    cudaMalloc(&b_in, bytes.size());
    cudaMalloc(&b_out, bytes.size());
    cudaMemcpy(b_in, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    transposeBytes<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(b_out, b_in, rows, cols);
    if (cudaMemcpy(turned.data(), b_out, turned.size(), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < cols; ++c) {
            if (turned[c * rows + r] != bytes[r * cols + c]) return 6;
        }
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(d_in);
    cudaFree(d_out);
    printf("OK\n");
    return 0;
}

}  // namespace transpose

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(sgemm_naive),
                         PROGRAM(sgemm_tiled),
                         PROGRAM(stencil),
                         PROGRAM(transpose),
                     });
}
