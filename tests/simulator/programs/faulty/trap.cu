// The kernel gives up by itself.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void picky(float *out, const float *in) {
#ifdef MENDED
    if (in[threadIdx.x] < 0) __trap();
#else
    if (in[threadIdx.x] > 30) __trap();  //! trap: trap
#endif
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
    picky<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
