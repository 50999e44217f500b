// Cooperative groups' asynchronous copies of a block's tiles, the next one on its way while one is summed.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include <cstdio>

#include "../check.h"

namespace cg = cooperative_groups;

constexpr int kTile = 128;

__global__ void sum(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float buffer[2][kTile];
    const auto block = cg::this_thread_block();
    cg::memcpy_async(block, buffer[0], in, sizeof buffer[0]);
    float total = 0;
    for (int t = 0; t < tiles; ++t) {
        if (t + 1 < tiles) {
            cg::memcpy_async(block, buffer[(t + 1) % 2], in + (t + 1) * kTile, sizeof buffer[0]);
            cg::wait_prior<1>(block);
        } else {
            cg::wait(block);
        }
        total += buffer[t % 2][kTile - 1 - threadIdx.x];
        block.sync();
    }
    out[threadIdx.x] = total;
}

int main() {
    const int tiles = 5;
    float *in, *out;
    CHECK(cudaMallocManaged(&in, tiles * kTile * sizeof(float)));
    CHECK(cudaMallocManaged(&out, kTile * sizeof(float)));
    for (int i = 0; i < tiles * kTile; ++i) in[i] = i % 37;
    sum<<<1, kTile>>>(out, in, tiles);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kTile; ++i) {
        float want = 0;
        for (int t = 0; t < tiles; ++t) want += in[t * kTile + kTile - 1 - i];
        if (out[i] != want) return std::printf("%d: %f, want %f\n", i, out[i], want), 1;
    }
    std::printf("OK\n");
    return 0;
}
