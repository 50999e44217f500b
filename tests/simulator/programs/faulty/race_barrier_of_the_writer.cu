// There is a barrier behind the write, and one behind the read: none that both threads pass in between.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void swap(float *out, const float *in) {
    __shared__ float s[32];
    float x = in[threadIdx.x];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x;  //~ the write
        __syncthreads();     //~ the barrier of the writer
    } else {
#ifdef MENDED
        __syncthreads();
#endif
        // clang-format off
        x += s[63 - threadIdx.x];  //! shared_race: comes to the `__syncthreads()` at | after its write, but thread | passes none with it before its read. Both must pass one between
        // clang-format on
#ifndef MENDED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = x;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    swap<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
