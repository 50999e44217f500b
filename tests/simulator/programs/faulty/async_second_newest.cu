// A wait that leaves more groups in flight than the reads behind it may miss.
#include <cuda_runtime.h>

#include <cstdio>

#define COPY16(to, from)                                                                                              \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) \
                 : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[3][256];
    COPY16(&s[0][4 * threadIdx.x], in + 4 * threadIdx.x);
    COMMIT();
    COPY16(&s[1][4 * threadIdx.x], in + 256 + 4 * threadIdx.x);  //~ the copy
    COMMIT();
    COPY16(&s[2][4 * threadIdx.x], in + 512 + 4 * threadIdx.x);
    COMMIT();
#ifdef MENDED
    WAIT(1);
#else
    WAIT(2);  //~ the wait
#endif
    __syncthreads();
    // clang-format off
    out[threadIdx.x] = s[1][255 - threadIdx.x];  //! async_pending: `cp.async.wait_group 2` at | leaves the newest two groups of thread | in flight, and this read needs the second newest
    // clang-format on
    WAIT(0);
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    load<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
