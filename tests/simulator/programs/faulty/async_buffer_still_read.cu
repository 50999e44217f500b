// The next copy starts while other warps still read its buffer.
#include <cuda_runtime.h>

#include <cstdio>

#define COPY16(to, from)                                                                                              \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) \
                 : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

__global__ void load(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float s[256];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; ++k) {
        COPY16(&s[4 * threadIdx.x], in + k * 256 + 4 * threadIdx.x);  //~ the copy
        COMMIT();
        WAIT(0);
        __syncthreads();
        sum += s[255 - threadIdx.x];  //! shared_race or async_pending: cp.async
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
    load<<<1, 64>>>(b, a, 3);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
