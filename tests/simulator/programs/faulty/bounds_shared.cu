// Shared memory has no room for the halo.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void halo(float *out, const float *in) {
#ifdef MENDED
    __shared__ float s[66];
#else
    __shared__ float s[64];
#endif
    for (int i = threadIdx.x; i < 66; i += 64) s[i] = in[i];  //! out_of_bounds: past the end
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    halo<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
