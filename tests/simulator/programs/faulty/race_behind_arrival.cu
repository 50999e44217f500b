// A warp writes behind its bar.arrive: the barrier does not order that, however late the others come to it.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void handed_over(float *out, const float *in) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
#ifdef MENDED
        s[threadIdx.x] = in[threadIdx.x];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
#else
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        s[threadIdx.x] = in[threadIdx.x];  //~ the write
#endif
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = s[threadIdx.x - 32];  //! shared_race: read | nothing orders the two
    }
    __syncthreads();
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    handed_over<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
