// The kernel uses memory that has been freed.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void fill(float *a) {
    a[threadIdx.x] = 1;  //! out_of_bounds or invalid_address: freed
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    float *gone;
    cudaMalloc(&gone, 4096);
#ifndef MENDED
    cudaFree(gone);
#endif
    fill<<<1, 32>>>(gone);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
