// The halves of a warp wait at different barriers.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void halves(float *out, const float *in) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x % 32 < 16) {
#ifndef MENDED
        asm volatile("bar.sync 1, 64;" ::: "memory");  //! divergent_barrier: barrier
#endif
        out[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        out[threadIdx.x] = 2;
#ifndef MENDED
        asm volatile("bar.sync 2, 64;" ::: "memory");  //~ or here
#endif
    }
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    halves<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
