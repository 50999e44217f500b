// Code in its own file, in a header that it includes, in a wrapper, and in CUDA's headers: which line is charged?
//
//     kernel STRIDE        loads tiles whose rows are so far apart; 128 is right
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>

#include "tiles.cuh"

__global__ void load_tiles(float *out, const float *in, unsigned stride) {
    __shared__ alignas(16) float tile[4][384];
    tiles::load_tile<3>(tile[0], in, 128);              // the first tile
    tiles::load_tile<3>(tile[1], in + 384, stride);     // the second tile
    tiles::Pair{tile[2], tile[3]}.load(in + 768, 128);  // the pair
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += tile[i][3 * threadIdx.x];
    out[threadIdx.x] = sum + __half2float(__float2half(in[threadIdx.x]));  // a conversion
}

int main(int, char **arguments) {
    float *in, *out;
    cudaMalloc(&in, 1536 * sizeof(float));
    cudaMemset(in, 0, 1536 * sizeof(float));
    cudaMalloc(&out, 32 * sizeof(float));
    load_tiles<<<1, 32>>>(out, in, unsigned(std::atoi(arguments[1])));
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
