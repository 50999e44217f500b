// Sixteen lanes synchronise, thirty-two exchange.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

__global__ void exchange(float *out, const float *in) {
    __shared__ float s[32];
#ifdef MENDED
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
#else
    auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
#endif
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 16];  //! shared_race: read | wrote or writes | Lanes of a warp
}

int main() {
    static float in[4096];
    for (int i = 0; i < 4096; ++i) in[i] = 1 + i % 57;
    float *a, *b;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemset(b, 0, sizeof in);
    exchange<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
