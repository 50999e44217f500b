// A null pointer.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void fill(float *a) {
    a[threadIdx.x] = 1;  //! invalid_address: null
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
#ifdef MENDED
    fill<<<1, 32>>>(a);
#else
    fill<<<1, 32>>>(nullptr);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
