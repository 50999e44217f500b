// Correct kernels with wgmma: nothing may be said of them, also with WARPSIM_HAZARDS=strict.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wgmma.h"

constexpr int kSteps = 6, kStages = 2;

// A producer warp and a consumer warpgroup; one thread says for its warpgroup that a buffer is empty.
__global__ void __launch_bounds__(160, 1) ring(float *out, const char *a, const char *b) {
    __shared__ alignas(128) char tile_a[kStages][kBytesA], tile_b[kStages][kBytesB];
    __shared__ uint64_t full[kStages], empty[kStages];
    const unsigned t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < kStages; ++s) {
            INIT(&full[s], 1);
            INIT(&empty[s], 1);
        }
        FENCE_INIT();
    }
    __syncthreads();
    if (t >= 128) {
        if (t != 128) return;
        for (int i = 0; i < kSteps; ++i) {
            const int s = i % kStages;
            WAIT_PHASE(&empty[s], (i / kStages & 1) ^ 1);
            ARRIVE_EXPECT(&full[s], kBytesA + kBytesB);
            LOAD(tile_a[s], a + i * kBytesA, kBytesA, &full[s]);
            LOAD(tile_b[s], b + i * kBytesB, kBytesB, &full[s]);
        }
        return;
    }
    float d[4] = {};
    for (int i = 0; i < kSteps; ++i) {
        const int s = i % kStages;
        WAIT_PHASE(&full[s], i / kStages & 1);
        FENCE();
        MMA(d, describe(tile_a[s]), describe(tile_b[s]), 1);
        COMMIT();
        if (i) {
            WAIT(1);
            if (t == 0) ARRIVE(&empty[(i - 1) % kStages]);
        }
    }
    WAIT(0);
    for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];
}

// Two accumulators in flight by turns; zero initialisation and copies between them, which the compiler puts where it
// likes.
__global__ void __launch_bounds__(128) turns(float *out, const uint4 *a, const uint4 *b) {
    __shared__ alignas(128) uint4 tile_a[kSteps][kBytesA / 16], tile_b[kSteps][kBytesB / 16];
    const unsigned t = threadIdx.x;
    for (int i = 0; i < kSteps; ++i) {
        tile_a[i][t] = a[i * 128 + t];
        if (t < 16) tile_b[i][t] = b[i * 16 + t];
    }
    FENCE_PROXY();
    __syncthreads();
    float d[4] = {}, sum[4] = {};
    FENCE();
    MMA(d, describe(tile_a[0]), describe(tile_b[0]), 0);
    COMMIT();
    for (int i = 1; i < kSteps; ++i) {
        float e[4] = {};
        FENCE();
        MMA(e, describe(tile_a[i]), describe(tile_b[i]), 1);
        COMMIT();
        WAIT(1);
        for (int k = 0; k < 4; ++k) sum[k] += d[k];
        for (int k = 0; k < 4; ++k) d[k] = e[k];
    }
    WAIT(0);
    for (int k = 0; k < 4; ++k) out[t * 4 + k] = sum[k] + d[k];
}

int main() {
    std::vector<uint16_t> a(kSteps * kBytesA / 2), b(kSteps * kBytesB / 2);
    std::vector<float> want(512, 0), got(512);
    const auto small = [](uint16_t &x) {
        const int value = std::rand() % 9 - 4;
        const float f = float(value);
        uint32_t bits;
        memcpy(&bits, &f, 4);
        x = uint16_t(bits >> 16);
    };
    for (auto &x : a) small(x);
    for (auto &x : b) small(x);
    const auto value = [](uint16_t x) {
        const uint32_t bits = uint32_t(x) << 16;
        float f;
        memcpy(&f, &bits, 4);
        return f;
    };
    const auto at = [](int row, int k) { return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8; };
    for (int t = 0; t < 128; ++t)
        for (int i = 0; i < 4; ++i)
            for (int s = 0; s < kSteps; ++s)
                for (int k = 0; k < 16; ++k)
                    want[t * 4 + i] += value(a[s * kBytesA / 2 + at(t / 32 * 16 + t % 32 / 4 + i / 2 * 8, k)]) *
                                       value(b[s * kBytesB / 2 + at(t % 4 * 2 + i % 2, k)]);
    char *da, *db;
    float *out;
    cudaMalloc(&da, a.size() * 2);
    cudaMalloc(&db, b.size() * 2);
    cudaMalloc(&out, 512 * 4);
    cudaMemcpy(da, a.data(), a.size() * 2, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size() * 2, cudaMemcpyHostToDevice);
    for (int kernel = 0; kernel < 2; ++kernel) {
        kernel ? turns<<<1, 128>>>(out, (uint4 *)da, (uint4 *)db) : ring<<<1, 160>>>(out, da, db);
        if (cudaMemcpy(got.data(), out, 512 * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
        if (got != want) return std::printf("kernel %d: wrong\n", kernel), 1;
    }
    std::printf("OK\n");
}
