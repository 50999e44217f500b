// Warp primitives over a part of a warp, as in the vendor's own articles: masks from a ballot, lanes that read from
// absent ones and drop what they got, sub-warps by the width argument, a leader elected from the active mask.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define FULL_MASK 0xffffffff

__global__ void reduce_elements(const int *input, int *out, int n) {
    unsigned mask = __ballot_sync(FULL_MASK, threadIdx.x < n);
    if (threadIdx.x < n) {
        int val = input[threadIdx.x];
        for (int offset = 16; offset > 0; offset /= 2) {
            int other = __shfl_down_sync(mask, val, offset);
            if (threadIdx.x + offset < n) val += other;
        }
        if (threadIdx.x == 0) *out = val;
    }
}

__global__ void half_warp(const int *input, int *out) {
    if (threadIdx.x < 16) {
        int val = input[threadIdx.x];
        for (int offset = 8; offset > 0; offset /= 2) val += __shfl_down_sync(0xffff, val, offset);
        if (threadIdx.x == 0) *out = val;
    }
}

__global__ void by_width(const int *input, int *out) {
    int val = input[threadIdx.x];
    for (int offset = 4; offset > 0; offset /= 2) val += __shfl_xor_sync(FULL_MASK, val, offset, 8);
    out[threadIdx.x] = val + __shfl_sync(FULL_MASK, threadIdx.x, 3, 8);
}

__global__ void leaders(int *counter, int *out) {
    if (threadIdx.x % 3 == 1) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1;
        int base = 0;
        if (threadIdx.x % 32 == leader) base = atomicAdd(counter, __popc(active));
        base = __shfl_sync(active, base, leader);
        out[base + __popc(active & ((1u << (threadIdx.x % 32)) - 1))] = threadIdx.x;
    }
}

int main() {
    int h[64], got[64], *in, *out;
    for (int i = 0; i < 64; ++i) h[i] = rand() % 100;
    if (cudaMalloc(&in, sizeof h) || cudaMalloc(&out, 65 * sizeof(int))) return 2;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    for (int n : {1, 5, 19, 32}) {
        reduce_elements<<<1, 32>>>(in, out, n);
        int want = 0;
        for (int i = 0; i < n; ++i) want += h[i];
        cudaMemcpy(got, out, sizeof(int), cudaMemcpyDeviceToHost);
        if (got[0] != want) return printf("reduce_elements %d: %d, want %d\n", n, got[0], want), 1;
    }
    half_warp<<<1, 32>>>(in, out);
    cudaMemcpy(got, out, sizeof(int), cudaMemcpyDeviceToHost);
    int want = 0;
    for (int i = 0; i < 16; ++i) want += h[i];
    if (got[0] != want) return printf("half_warp %d, want %d\n", got[0], want), 1;
    by_width<<<1, 64>>>(in, out);
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    for (int t = 0; t < 64; ++t) {
        want = t / 8 * 8 + 3;
        for (int i = 0; i < 8; ++i) want += h[t / 8 * 8 + i];
        if (got[t] != want) return printf("by_width %d: %d, want %d\n", t, got[t], want), 1;
    }
    cudaMemset(out, 0, 65 * sizeof(int));
    leaders<<<1, 64>>>(out + 64, out);
    if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    unsigned long long seen = 0;
    for (int i = 0; i < 21; ++i) seen |= 1ull << got[i];
    for (int t = 0; t < 64; ++t) {
        if ((seen >> t & 1) != (t % 3 == 1)) return printf("leaders %d\n", t), 1;
    }
    printf("OK\n");
    return 0;
}
