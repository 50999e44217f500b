// Half of the warp leaves, the rest shuffles with all of it.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void sums(float *out, const float *in) {
    if (threadIdx.x >= 16) return;
    float v = in[threadIdx.x];
#ifdef MENDED
    for (int d = 8; d; d /= 2) v += __shfl_down_sync(0x0000ffff, v, d);
#else
    for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);  //! missing_lanes: exited
#endif
    if (threadIdx.x == 0) *out = v;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    sums<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
