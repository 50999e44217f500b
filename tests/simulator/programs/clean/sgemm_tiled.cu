// The shared-memory half of an SGEMM ladder: block tiles, 1D and 2D register tiles, float4 loads with A transposed in
// shared memory, warp tiles.
#include <cuda_runtime.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

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
