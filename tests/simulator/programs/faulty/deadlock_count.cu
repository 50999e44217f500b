// A named barrier waits for 96 threads and 64 come.
#include <cuda_runtime.h>

#include <cstdio>

#ifdef MENDED
#define COUNT 64
#else
#define COUNT 96
#endif
__global__ void meet(float *out) {
    asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");  //! deadlock or divergent_barrier: barrier
    out[threadIdx.x] = 1;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    meet<<<1, 64>>>(b);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
