// A right program: a tile of B of which the first round fills half, the second all. What the rest of D becomes is
// dropped, and one thread of another warp than the first says that the tile is free.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "../wgmma/wgmma.h"

constexpr unsigned kRounds = 2;

__global__ void __launch_bounds__(160) partial(float *out, const uint4 *in) {
    __shared__ alignas(128) uint4 a[kBytesA / 16], b[kBytesB / 16];
    __shared__ alignas(8) uint64_t full, empty;
    const unsigned t = threadIdx.x;
    if (t < 128) a[t] = in[t];
    if (t == 0) {
        INIT(&full, 1);
        INIT(&empty, 1);
        FENCE_INIT();
    }
    FENCE_PROXY();
    __syncthreads();
    if (t >= 128) {
        for (unsigned round = 0; t == 128 && round < kRounds; ++round) {
            const unsigned bytes = round ? 128 : 64;  // of each eight k: columns 0 to 3, then all
            WAIT_PHASE(&empty, round & 1 ^ 1);
            ARRIVE_EXPECT(&full, 2 * bytes);
            LOAD(b, in + 128, bytes, &full);
            LOAD(b + 8, in + 136, bytes, &full);
        }
        return;
    }
    for (unsigned round = 0; round < kRounds; ++round) {
        float d[4] = {};
        WAIT_PHASE(&full, round & 1);
        FENCE();
        MMA(d, describe(a), describe(b), 1);
        COMMIT();
        WAIT(0);
        if (t == 96) ARRIVE(&empty);
        for (int i = 0; i < 4; ++i) out[(round * 128 + t) * 4 + i] = round || t % 4 < 2 ? d[i] : -1;
    }
}

int main() {
    uint4 *in;
    float *out;
    cudaMallocManaged(&in, 144 * 16);
    cudaMallocManaged(&out, kRounds * 128 * 16);
    auto *values = reinterpret_cast<uint16_t *>(in);
    for (unsigned i = 0; i < 144 * 8; ++i) values[i] = i % 3 ? 0x3f80 : 0x4000;  // 1 and 2 in bf16
    partial<<<1, 160>>>(out, in);
    bool good = cudaDeviceSynchronize() == cudaSuccess;
    for (unsigned i = 0; i < 512; ++i)
        good = good && out[512 + i] >= 16 && out[i] == (i / 4 % 4 < 2 ? out[512 + i] : -1);
    std::printf(good ? "OK\n" : "wrong\n");
    return !good;
}
