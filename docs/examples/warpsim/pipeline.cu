// Two buffers filled by cp.async, the next one while this one is summed. The wait lets one group too many be in flight;
// -DMENDED waits for all but the newest.
#include <cuda_pipeline.h>

#include <cstdio>
#include <vector>

constexpr int kThreads = 128, kTiles = 16;
#ifdef MENDED
constexpr int kInFlight = 1;
#else
constexpr int kInFlight = 2;
#endif

__global__ void sum_tiles(const float4 *in, float4 *out) {
    __shared__ float4 buffer[2][kThreads];
    const float4 *next = in + threadIdx.x;
    __pipeline_memcpy_async(&buffer[0][threadIdx.x], next, sizeof(float4));
    __pipeline_commit();
    float4 sum = {0, 0, 0, 0};
    for (int tile = 0; tile < kTiles; ++tile) {
        if (tile + 1 < kTiles) {
            next += kThreads;
            __pipeline_memcpy_async(&buffer[(tile + 1) % 2][threadIdx.x], next, sizeof(float4));
        }
        __pipeline_commit();  // an empty group after the last tile, so that the wait below stays right
        __pipeline_wait_prior(kInFlight);
        const float4 value = buffer[tile % 2][threadIdx.x];
        sum = {sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w};
    }
    out[threadIdx.x] = sum;
}

int main() {
    const std::vector<float> ones(4 * kThreads * kTiles, 1);
    std::vector<float> sums(4 * kThreads);
    float4 *in, *out;
    cudaMalloc(&in, ones.size() * sizeof(float));
    cudaMalloc(&out, sums.size() * sizeof(float));
    cudaMemcpy(in, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice);
    sum_tiles<<<1, kThreads>>>(in, out);
    cudaMemcpy(sums.data(), out, sums.size() * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (const float sum : sums) wrong += sum != kTiles;
    std::printf("%s: %d sums are wrong\n", cudaGetErrorString(cudaGetLastError()), wrong);
    return wrong != 0;
}
