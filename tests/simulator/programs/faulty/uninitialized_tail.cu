// The tile has 64 places, 50 are filled, all are added up.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void sum_tile(float *out, const float *in, int n) {
    __shared__ float s[64];
#ifdef MENDED
    s[threadIdx.x] = threadIdx.x < n ? in[threadIdx.x] : 0;
#else
    if (threadIdx.x < n) s[threadIdx.x] = in[threadIdx.x];
#endif
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += s[i];  //! uninitialized_shared: read | no thread has written
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
    sum_tile<<<1, 64>>>(b, a, 50);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
