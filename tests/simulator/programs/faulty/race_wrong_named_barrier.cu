// Pairs of warps meet at a barrier of their own, but read what the other pair wrote.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void pairs(float *out, const float *in) {
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncthreads();
#else
    asm volatile("bar.sync %0, 64;" ::"r"(1 + threadIdx.x / 64) : "memory");
#endif
    out[threadIdx.x] = s[(threadIdx.x + 64) % 128];  //! shared_race: read | nothing orders the two
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    pairs<<<1, 128>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
