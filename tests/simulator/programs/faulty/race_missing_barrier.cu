// A tile is read before all threads have filled it.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void reverse(float *out, const float *in) {
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncthreads();
#endif
    out[threadIdx.x] = s[127 - threadIdx.x];  //! shared_race: read | wrote or writes | __syncthreads() is missing
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    reverse<<<1, 128>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
