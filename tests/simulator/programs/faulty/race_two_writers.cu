// Two threads store different values at one address; who wins is chance.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void neighbours(float *out, const float *in) {
    __shared__ float s[64];
    s[threadIdx.x] = 0;
    __syncthreads();
#ifdef MENDED
    if (threadIdx.x % 2 == 0) s[threadIdx.x / 2] = in[threadIdx.x];
#else
    s[threadIdx.x / 2] = in[threadIdx.x];  //! shared_race: write | wrote | Lanes of a warp | not meet at this address
#endif
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    neighbours<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
