// Exchange through shared memory within a warp or a part of it: __syncwarp with full and partial masks, in both
// branches of an if, warps that work on their own slices, lanes that left, a double buffer.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void full_mask(int *out, const int *in) {
    __shared__ int s[4][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) {
        s[warp][lane] = v;
        __syncwarp();
        v += s[warp][lane ^ d];
        __syncwarp();
    }
    out[threadIdx.x] = v;
}

__global__ void both_branches(int *out, const int *in) {
    __shared__ int s[32];
    const int lane = threadIdx.x;
    if (lane < 12) {
        s[lane] = in[lane];
        __syncwarp(0x00000fff);
        out[lane] = s[11 - lane];
    } else {
        s[lane] = in[lane] * 2;
        __syncwarp(0xfffff000);
        out[lane] = s[12 + (31 - lane)];
    }
    __syncwarp();
    s[lane] = out[lane];
    __syncwarp();
    out[lane] += s[(lane + 1) % 32];
}

__global__ void some_left(int *out, const int *in, int n) {
    __shared__ int s[64];
    const int lane = threadIdx.x % 32;
    int *mine = s + (threadIdx.x & ~31);
    if (lane >= n) return;
    const unsigned mask = (1u << n) - 1;
    mine[lane] = in[threadIdx.x];
    __syncwarp(mask);
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += mine[i];
    out[threadIdx.x] = sum;
}

// Matrix of 8 x 8 transposed by each quarter warp on its own.
__global__ void quarters(int *out, const int *in) {
    __shared__ int s[4][64];
    const int q = threadIdx.x / 8, l = threadIdx.x % 8;
    const unsigned mask = 0xffu << (8 * q);
    for (int r = 0; r < 8; ++r) s[q][r * 8 + l] = in[q * 64 + r * 8 + l];
    __syncwarp(mask);
    for (int r = 0; r < 8; ++r) out[q * 64 + r * 8 + l] = s[q][l * 8 + r];
}

__global__ void double_buffer(int *out, const int *in, int rounds) {
    __shared__ volatile int unused;
    __shared__ int s[2][2][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) unused = 1;
    int v = in[threadIdx.x];
    for (int r = 0; r < rounds; ++r) {
        s[warp][r % 2][lane] = v;
        __syncwarp();
        v = s[warp][r % 2][(lane + 5) % 32] + r;
    }
    out[threadIdx.x] = v;
}

int main() {
    int *in, *out, h[256], o[256];
    for (int i = 0; i < 256; ++i) h[i] = rand() % 1000;
    if (cudaMalloc(&in, sizeof h) || cudaMalloc(&out, sizeof h)) return 2;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    auto fetch = [&] {
        cudaError_t e = cudaMemcpy(o, out, sizeof o, cudaMemcpyDeviceToHost);
        if (e != cudaSuccess) {
            printf("%s\n", cudaGetErrorString(e));
            exit(1);
        }
    };
    full_mask<<<1, 128>>>(out, in);
    fetch();
    for (int t = 0; t < 128; ++t) {
        int sum = 0;
        for (int l = 0; l < 32; ++l) sum += h[t / 32 * 32 + l];
        if (o[t] != sum) return printf("full_mask %d\n", t), 1;
    }
    both_branches<<<1, 32>>>(out, in);
    fetch();
    int v[32];
    for (int l = 0; l < 32; ++l) v[l] = l < 12 ? h[11 - l] : 2 * h[12 + 31 - l];
    for (int l = 0; l < 32; ++l)
        if (o[l] != v[l] + v[(l + 1) % 32]) return printf("both_branches %d\n", l), 1;
    for (int n : {1, 7, 31}) {
        some_left<<<1, 64>>>(out, in, n);
        fetch();
        for (int t = 0; t < 64; ++t) {
            if (t % 32 >= n) continue;
            int sum = 0;
            for (int i = 0; i < n; ++i) sum += h[t / 32 * 32 + i];
            if (o[t] != sum) return printf("some_left %d\n", t), 1;
        }
    }
    quarters<<<1, 32>>>(out, in);
    fetch();
    for (int i = 0; i < 256; ++i)
        if (o[i] != h[i / 64 * 64 + i % 8 * 8 + i / 8 % 8]) return printf("quarters %d\n", i), 1;
    double_buffer<<<1, 64>>>(out, in, 6);
    fetch();
    for (int t = 0; t < 64; ++t)
        if (o[t] != h[t / 32 * 32 + (t + 30) % 32] + 15) return printf("double_buffer %d\n", t), 1;
    printf("OK\n");
    return 0;
}
