// Waits for a flag that nobody sets.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void wait(volatile float *flag, float *out) {
#ifdef MENDED
    if (threadIdx.x == 32) *flag = 1;
#endif
    while (*flag == 0) {  //! deadlock: reads 0 again and again | of the 16384 bytes allocated at
    }
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
    cudaMemset(a, 0, 4);
    wait<<<1, 64>>>(a, b);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
