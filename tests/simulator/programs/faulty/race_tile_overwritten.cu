// The tile of the next step is stored while slower warps still read this one.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void sums(float *out, const float *in, int tiles) {
    __shared__ float tile[64];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; ++k) {
        // clang-format off
        tile[threadIdx.x] = in[k * 64 + threadIdx.x];  //! shared_race: may still be reading or wrote | __syncthreads() is missing | next pass
        // clang-format on
        __syncthreads();
        sum += tile[63 - threadIdx.x];  //~ the read
#ifdef MENDED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = sum;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    sums<<<1, 64>>>(b, a, 4);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
