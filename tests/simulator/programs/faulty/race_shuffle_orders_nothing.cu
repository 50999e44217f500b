// A shuffle between write and read is no barrier for shared memory.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void shuffled(float *out, const float *in) {
    __shared__ float s[32];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
    float v = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
#ifdef MENDED
    __syncwarp();
#endif
    out[threadIdx.x] = v + s[31 - threadIdx.x];  //! shared_race: read | __syncwarp() or __syncthreads() is missing
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    shuffled<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
