// Every thread adds to one sum without atomics.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void add_up(float *out, const float *in) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
#ifdef MENDED
    atomicAdd(&sum, in[threadIdx.x]);
#else
    sum += in[threadIdx.x];  //! shared_race: wrote or writes or reading
#endif
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    add_up<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
