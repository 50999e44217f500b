// A float4 from an address that is no multiple of 16.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void load(float *out, const float *in, int shift) {
    float4 v = *reinterpret_cast<const float4 *>(in + shift + 4 * threadIdx.x);  //! misaligned: 16
    out[threadIdx.x] = v.x + v.w;
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
    load<<<1, 32>>>(b, a, 4);
#else
    load<<<1, 32>>>(b, a, 1);
#endif
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
