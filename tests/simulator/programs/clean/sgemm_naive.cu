// C = alpha * A * B + beta * C, one thread for each element of C: first with threadIdx.x down the rows, then along
// them.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"

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
