// The last steps of a tree without barriers, and without volatile: "a warp runs in step".
#include <cuda_runtime.h>

#include <cstdio>

__global__ void reduce(float *out, const float *in) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        float v = s[t] + s[t + 32];
        for (int d = 16; d; d /= 2) {
            s[t] = v;  //! shared_race: __syncwarp() or __syncthreads() is missing
#ifdef MENDED
            __syncwarp();
#endif
            v += s[(t + d) % 32];  //~ the read
#ifdef MENDED
            __syncwarp();
#endif
        }
        if (t == 0) *out = v;
    }
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    reduce<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
