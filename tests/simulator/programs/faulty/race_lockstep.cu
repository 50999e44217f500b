// A warp exchanges values through shared memory and trusts that its lanes run in step.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void rotate(float *out, const float *in) {
    __shared__ float s[32];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncwarp();
#endif
    out[threadIdx.x] =
        s[(threadIdx.x + 1) % 32];  //! shared_race: read | Lanes of a warp | __syncwarp() or __syncthreads() is missing
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    rotate<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
