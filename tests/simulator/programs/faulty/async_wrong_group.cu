// "wait_group 1 waits for one group": it leaves one in flight.
#include <cuda_runtime.h>

#include <cstdio>

#define COPY16(to, from)                                                                                              \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) \
                 : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[2][256];
    COPY16(&s[0][4 * threadIdx.x], in + 4 * threadIdx.x);
    COMMIT();
    COPY16(&s[1][4 * threadIdx.x], in + 256 + 4 * threadIdx.x);  //~ the copy
    COMMIT();
    WAIT(1);
    __syncthreads();
    float v = s[0][threadIdx.x];
#ifdef MENDED
    WAIT(0);
    __syncthreads();
#endif
    out[threadIdx.x] = v + s[1][255 - threadIdx.x];  //! async_pending: in flight, and this read needs the newest
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
