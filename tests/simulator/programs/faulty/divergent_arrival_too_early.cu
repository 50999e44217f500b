// Two warps hand each other the turn, at a barrier for each. One passes the last turn on without having waited for it:
// where it is the faster one, both its arrivals count for one turn of the other.
#include <cuda_runtime.h>

#include <cstdio>

__device__ void wait_for_turn(int warp) {
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp) : "memory");  //~ the other's arrival
}

__device__ void pass_turn_on(int warp) {
    asm volatile("bar.arrive %0, 64;" ::"r"(2 - warp) : "memory");  //! divergent_barrier: nothing orders that
}

__global__ void turns(float *out, const float *in) {
    __shared__ float sum;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (warp == 1) pass_turn_on(warp);  // the first turn is warp 0's
    for (int turn = 0; turn < 4; ++turn) {
        bool waits = true;
#ifndef MENDED
        waits = warp == 1 || turn < 3;
#endif
        if (waits) wait_for_turn(warp);
        if (threadIdx.x % 32 == 0 && turn < 3) sum += in[turn];
        __syncwarp();
        pass_turn_on(warp);
    }
    if (warp == 0) wait_for_turn(warp);  // no arrival is left over
    __syncthreads();
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
    turns<<<1, 64>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
