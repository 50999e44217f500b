// A shared counter that nobody set to zero.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void count(float *out, const float *in) {
    __shared__ int counter;
#ifdef MENDED
    if (threadIdx.x == 0) counter = 0;
    __syncthreads();
#endif
    if (in[threadIdx.x] > 20) atomicAdd(&counter, 1);  //! uninitialized_shared: no thread has written
    __syncthreads();
    if (threadIdx.x == 0) *out = counter;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    count<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
