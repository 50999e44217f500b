// What is not wanted goes to one slot behind the tile. Nobody reads it, but the lanes store different values there.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void odd_ones(int *out, const int *in) {
    __shared__ int kept[33];
    const int lane = threadIdx.x, x = in[lane];
    const unsigned odd = __ballot_sync(~0u, x % 2), before = odd & ((1u << lane) - 1);
    const int place = x % 2 ? __popc(before) : 32;
#ifdef MENDED
    if (place < 32) kept[place] = x;
#else
    kept[place] = x;  //! shared_race: write | wrote | different values | does no harm only where nobody reads it
#endif
    __syncwarp();
    out[lane] = lane < __popc(odd) ? kept[lane] : 0;
}

int main() {
    int in[32], out[32], *a, *b;
    for (int i = 0; i < 32; ++i) in[i] = i * 5 % 32;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    odd_ones<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    if (error != cudaSuccess) return 3;
    cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0, n = 0; i < 32; ++i)
        if (in[i] % 2 && out[n++] != in[i]) return printf("wrong at %d\n", i), 1;
    return 0;
}
