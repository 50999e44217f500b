// No test against n: the last block runs past the allocation.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void increment(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i < n)
#endif
        a[i] += 1;  //! out_of_bounds: past the end
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    float *exact;
    cudaMalloc(&exact, 1000 * sizeof(float));
    cudaMemset(exact, 0, 1000 * sizeof(float));
    increment<<<8, 128>>>(exact, 1000);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
