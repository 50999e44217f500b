// What other blocks see of plain stores, and when.
//
//     late flag|sum|poll 0|1      runs with 8 blocks of 64 threads, without or with the fence, and says "right" or
//     "wrong"
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__device__ unsigned volatile_load(const unsigned *p) {
    return *(const volatile unsigned *)p;
}

// Block 0 hands a tile to all others: 64 numbers, then a flag. What others read before the tile is there is 0.
template <bool fenced>
__global__ void flag(unsigned *tile, unsigned *out, unsigned *set) {
    const unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        tile[t] = t + 1;
        __syncthreads();
        if (t == 0) {
            if (fenced) __threadfence();
            *(volatile unsigned *)set = 1;
        }
    } else {
        if (t == 0) {
            while (!volatile_load(set)) {
            }
            __threadfence();
        }
        __syncthreads();
        out[blockIdx.x * 64 + t] = tile[t] - (t + 1);
    }
}

// The last block adds up what all have stored.
template <bool fenced>
__global__ void sum(unsigned *parts, unsigned *out, unsigned *count) {
    if (threadIdx.x) return;
    parts[blockIdx.x] = blockIdx.x + 1;
    if (fenced) __threadfence();
    if (atomicAdd(count, 1) != gridDim.x - 1) return;
    __threadfence();
    unsigned all = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) all += parts[b];
    out[0] = all - gridDim.x * (gridDim.x + 1) / 2;
}

// Block 0's plain store is seen some day, though it ends no sooner than the others have seen it.
template <bool fenced>
__global__ void poll(unsigned *seen, unsigned *out, unsigned *count) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        seen[0] = 1;
        if (fenced) __threadfence();
        while (volatile_load(count) != gridDim.x - 1) {
        }
    } else {
        while (!volatile_load(seen)) {
        }
        atomicAdd(count, 1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const bool fenced = argv[2][0] == '1';
    unsigned *data, host[1024];
    cudaMalloc(&data, sizeof host);
    cudaMemset(data, 0, sizeof host);
    unsigned *const out = data + 128, *const word = data + 1023;
    const auto run = [&](auto with, auto without) { (fenced ? with : without)<<<8, 64>>>(data, out, word); };
    if (!std::strcmp(argv[1], "flag")) run(flag<true>, flag<false>);
    if (!std::strcmp(argv[1], "sum")) run(sum<true>, sum<false>);
    if (!std::strcmp(argv[1], "poll")) run(poll<true>, poll<false>);
    const cudaError_t error = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
    if (error) return std::printf("%s\n", cudaGetErrorName(error)), 3;
    bool right = true;
    for (unsigned i = 128; i < 128 + 8 * 64; ++i) right = right && !host[i];
    std::puts(right ? "right" : "wrong");
    return 0;
}
