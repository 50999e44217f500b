// cp.async in every clothing: PTX with commit and wait groups, the __pipeline primitives, cuda::pipeline of one thread,
// zero fill, two and three stages, copies of 4, 8 and 16 bytes.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cuda/pipeline>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "../check.h"

constexpr int kTile = 256;

__device__ __forceinline__ void cp_async16(void *smem, const void *gmem) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"((unsigned)__cvta_generic_to_shared(smem)),
                 "l"(gmem));
}
__device__ __forceinline__ void cp_async4_zfill(void *smem, const void *gmem, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"((unsigned)__cvta_generic_to_shared(smem)),
                 "l"(gmem), "r"(valid ? 4 : 0));
}
#define COMMIT() asm volatile("cp.async.commit_group;\n" ::)
template <int N>
__device__ __forceinline__ void wait_group() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N));
}

template <int STAGES>
__global__ void staged(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float buffer[STAGES][kTile];
    const int t = threadIdx.x;
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) cp_async16(&buffer[s][4 * t], in + s * kTile + 4 * t);
        COMMIT();
    }
    float sum = 0;
    for (int k = 0; k < tiles; ++k) {
        wait_group<STAGES - 2>();
        __syncthreads();
        const int next = k + STAGES - 1;
        if (next < tiles) cp_async16(&buffer[next % STAGES][4 * t], in + next * kTile + 4 * t);
        COMMIT();
        const float *tile = buffer[k % STAGES];
        for (int i = t; i < kTile; i += blockDim.x) sum += tile[kTile - 1 - i] * (k + 1);
    }
    out[t] = sum;
}

__global__ void zero_fill(float *out, const float *in, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    cp_async4_zfill(&s[t], in + (t < n ? t : 0), t < n);
    asm volatile("cp.async.wait_all;\n" ::);
    __syncthreads();
    out[t] = s[63 - t];
}

__global__ void primitives(int2 *out, const int2 *in, int rounds) {
    __shared__ int2 s[2][64];
    const int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &in[t], sizeof(int2));
    __pipeline_commit();
    int2 sum = {0, 0};
    for (int r = 0; r < rounds; ++r) {
        if (r + 1 < rounds) __pipeline_memcpy_async(&s[(r + 1) & 1][t], &in[(r + 1) * 64 + t], sizeof(int2));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        int2 v = s[r & 1][t ^ 1];
        sum.x += v.x;
        sum.y += v.y;
        __syncthreads();
    }
    out[t] = sum;
}

__global__ void thread_pipeline(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float4 s[2][64];
    auto pipe = cuda::make_pipeline();
    const int t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&s[0][t], reinterpret_cast<const float4 *>(in) + t, cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    float sum = 0;
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[(k + 1) % 2][t], reinterpret_cast<const float4 *>(in) + (k + 1) * 64 + t,
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        if (k + 1 == tiles) cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();
        float4 v = s[k % 2][63 - t];
        sum += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
        pipe.consumer_release();
        __syncthreads();
    }
    out[t] = sum;
}

// Data that only the copying thread reads needs no barrier.
__global__ void own_data(float *out, const float *in) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"((unsigned)__cvta_generic_to_shared(&s[t])),
                     "l"(in + i * 128 + t));
        asm volatile("cp.async.wait_all;\n" ::: "memory");
        out[i * 128 + t] = s[t] + 1;
    }
}

int main() {
    const int tiles = 7, n = tiles * kTile;
    float *h = (float *)malloc(n * 4), *in, *out, got[256];
    for (int i = 0; i < n; ++i) h[i] = rand() % 64;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, sizeof got));
    CHECK(cudaMemcpy(in, h, n * 4, cudaMemcpyHostToDevice));
    auto fetch = [&] {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    };
    for (int stages = 2; stages <= 4; ++stages) {
        if (stages == 2) staged<2><<<1, 64>>>(out, in, tiles);
        if (stages == 3) staged<3><<<1, 64>>>(out, in, tiles);
        if (stages == 4) staged<4><<<1, 64>>>(out, in, tiles);
        fetch();
        for (int t = 0; t < 64; ++t) {
            float sum = 0;
            for (int k = 0; k < tiles; ++k)
                for (int i = t; i < kTile; i += 64) sum += h[k * kTile + kTile - 1 - i] * (k + 1);
            if (got[t] != sum) return printf("%d stages, thread %d: %f, want %f\n", stages, t, got[t], sum), 1;
        }
    }
    zero_fill<<<1, 64>>>(out, in, 40);
    fetch();
    for (int t = 0; t < 64; ++t)
        if (got[t] != (63 - t < 40 ? h[63 - t] : 0)) return printf("zero_fill %d\n", t), 1;
    int *hi = (int *)h;
    primitives<<<1, 64>>>((int2 *)out, (const int2 *)in, 5);
    fetch();
    for (int t = 0; t < 64; ++t) {
        int x = 0, y = 0;
        for (int r = 0; r < 5; ++r) x += hi[(r * 64 + (t ^ 1)) * 2], y += hi[(r * 64 + (t ^ 1)) * 2 + 1];
        if (((int *)got)[2 * t] != x || ((int *)got)[2 * t + 1] != y) return printf("primitives %d\n", t), 1;
    }
    thread_pipeline<<<1, 64>>>(out, in, tiles);
    fetch();
    for (int t = 0; t < 64; ++t) {
        float sum = 0;
        for (int k = 0; k < tiles; ++k)
            for (int c = 0; c < 4; ++c) sum += (c + 1) * h[(k * 64 + 63 - t) * 4 + c];
        if (got[t] != sum) return printf("thread_pipeline %d: %f, want %f\n", t, got[t], sum), 1;
    }
    own_data<<<1, 128>>>(out, in);
    fetch();
    for (int i = 0; i < 256; ++i)
        if (got[i] != h[i] + 1) return printf("own_data %d\n", i), 1;
    printf("OK\n");
    return 0;
}
