// The left neighbour of the first element.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void differences(float *out, const float *in, int n) {
    int i = threadIdx.x;
#ifdef MENDED
    if (i > 0)
#endif
        out[i] = in[i] - in[i - 1];  //! out_of_bounds: before
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    float *first;
    cudaMalloc(&first, 64 * sizeof(float));
    cudaMemset(first, 0, 64 * sizeof(float));
    differences<<<1, 64>>>(b, first, 64);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
