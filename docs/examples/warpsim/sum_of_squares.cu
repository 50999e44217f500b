// The sum of squares of a * x + y: a block adds up in shared memory. A barrier is missing; -DMENDED puts it in.
#include <cstdio>
#include <vector>

constexpr int kThreads = 256;

__global__ void sum_of_squares(int n, float a, const float *x, const float *y, float *sum) {
    __shared__ float partial[kThreads];
    float own = 0;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
        const float value = a * x[i] + y[i];
        own += value * value;
    }
    partial[threadIdx.x] = own;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
#ifdef MENDED
        __syncthreads();
#endif
    }
    if (threadIdx.x == 0) atomicAdd(sum, partial[0]);
}

int main() {
    const int n = 10000;
    const std::vector<float> ones(n, 1);
    float *x, *y, *sum, result = 0;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    cudaMemcpy(x, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(y, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(sum, 0, sizeof(float));
    sum_of_squares<<<8, kThreads>>>(n, 2, x, y, sum);
    cudaMemcpy(&result, sum, sizeof(float), cudaMemcpyDeviceToHost);
    const cudaError_t error = cudaGetLastError();
    std::printf("%s: %.0f, expected %d\n", cudaGetErrorString(error), result, 9 * n);
    return error != cudaSuccess || result != 9 * n;
}
