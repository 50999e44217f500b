// Producer and consumer warps with named barriers (bar.sync / bar.arrive), two buffers; pairs of warps with their own
// barrier.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__device__ __forceinline__ void bar_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void bar_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

constexpr int kChunk = 64, kStages = 2;
// Barrier 1 + s: buffer s is full. 1 + kStages + s: buffer s is empty.
__global__ void pipeline(const float *in, float *out, int chunks) {
    __shared__ float buffer[kStages][kChunk];
    const bool producer = threadIdx.x < kChunk;
    const int t = threadIdx.x % kChunk;
    for (int c = 0; c < chunks; ++c) {
        const int s = c % kStages;
        if (producer) {
            if (c >= kStages) bar_sync(1 + kStages + s, 2 * kChunk);
            buffer[s][t] = in[c * kChunk + t];
            bar_arrive(1 + s, 2 * kChunk);
        } else {
            bar_sync(1 + s, 2 * kChunk);
            out[c * kChunk + t] = buffer[s][kChunk - 1 - t] * 2.0f;
            if (c + kStages < chunks) bar_arrive(1 + kStages + s, 2 * kChunk);
        }
    }
}

// Each pair of warps meets at a barrier of its own; the block meets at barrier 0 in the end.
__global__ void pairs(int *out) {
    __shared__ int s[256];
    const int pair = threadIdx.x / 64, in_pair = threadIdx.x % 64;
    int v = threadIdx.x;
    for (int round = 0; round < 4; ++round) {
        s[threadIdx.x] = v + round;
        bar_sync(1 + pair, 64);
        v = s[pair * 64 + (in_pair + 33) % 64];
        bar_sync(1 + pair, 64);
    }
    s[threadIdx.x] = v;
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

int main() {
    const int chunks = 9, n = chunks * kChunk;
    float *in, *out;
    int *iout;
    cudaMallocManaged(&in, n * sizeof(float));
    cudaMallocManaged(&out, n * sizeof(float));
    cudaMallocManaged(&iout, 256 * sizeof(int));
    for (int i = 0; i < n; ++i) in[i] = rand() % 1000;
    pipeline<<<1, 2 * kChunk>>>(in, out, chunks);
    pairs<<<1, 256>>>(iout);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (int i = 0; i < n; ++i) {
        const int c = i / kChunk, t = i % kChunk;
        if (out[i] != 2 * in[c * kChunk + kChunk - 1 - t]) return printf("pipeline %d\n", i), 1;
    }
    for (int t = 0; t < 256; ++t) {
        int v[64], w[64];
        const int pair = (255 - t) / 64;
        for (int i = 0; i < 64; ++i) v[i] = pair * 64 + i;
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < 64; ++i) w[i] = v[(i + 33) % 64] + round;
            for (int i = 0; i < 64; ++i) v[i] = w[i];
        }
        if (iout[t] != v[(255 - t) % 64]) return printf("pairs %d: %d want %d\n", t, iout[t], v[(255 - t) % 64]), 1;
    }
    cudaFree(in);
    cudaFree(out);
    cudaFree(iout);
    printf("OK\n");
    return 0;
}
