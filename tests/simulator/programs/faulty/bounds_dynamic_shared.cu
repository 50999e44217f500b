// The launch asks for less dynamic shared memory than the kernel uses.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void use(float *out, const float *in) {
    extern __shared__ float s[];
    s[threadIdx.x] = in[threadIdx.x];  //! out_of_bounds: past the end
    __syncthreads();
    out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
#ifdef MENDED
constexpr int kBytes = 128 * sizeof(float);
#else
constexpr int kBytes = 128;
#endif

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    use<<<1, 128, kBytes>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
