// A volatile flag tells that data is there, but no fence keeps data and flag in order.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void handshake(float *out, const float *in) {
    __shared__ float data;
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = in[5];  //~ the write
#ifdef MENDED
        __threadfence_block();
#endif
        ready = 1;
    }
    if (threadIdx.x == 0) {
        while (ready == 0) {
        }
#ifdef MENDED
        __threadfence_block();
#endif
        out[0] = data;  //! shared_race: read | wrote | nothing orders the two
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
    handshake<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
