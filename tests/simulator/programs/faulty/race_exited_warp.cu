// A warp writes and exits. A barrier for a number of threads waits for those who come to it, and orders what they did:
// nothing of what an exited warp has done. (A __syncthreads() would.)
#include <cuda_runtime.h>

#include <cstdio>

__global__ void left_behind(float *out, const float *in) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];  //~ the write
        return;
    }
#ifdef MENDED
    __syncthreads();
#else
    asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
    out[threadIdx.x] = s[threadIdx.x % 32];  //! shared_race: read | nothing orders the two
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    left_behind<<<1, 96>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
