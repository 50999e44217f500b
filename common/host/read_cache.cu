// What decode stages are measured against: reading the same bytes of K and V once, and nothing else.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int threads = 512, blocks_each = 4, in_flight = 8;  // in_flight: 16-byte loads of a thread at a time

// Grid-stride over pieces of 16 bytes. The sum is kept so that the compiler cannot leave the loads out.
__device__ static uint32_t read_all(const uint4 *from, size_t count) {
    uint32_t sum = 0;
    const size_t step = static_cast<size_t>(gridDim.x) * threads;
    size_t i = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x;
    for (; i + (in_flight - 1) * step < count; i += in_flight * step) {
        uint4 pieces[in_flight];
#pragma unroll
        for (int j = 0; j < in_flight; ++j) pieces[j] = __ldcs(from + i + j * step);
#pragma unroll
        for (int j = 0; j < in_flight; ++j) sum ^= pieces[j].x ^ pieces[j].y ^ pieces[j].z ^ pieces[j].w;
    }
    for (; i < count; i += step) sum ^= from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
    return sum;
}

__global__ void __launch_bounds__(threads) read_kernel(const uint4 *K, const uint4 *V, size_t count, uint32_t *sink) {
    const uint32_t sum = read_all(K, count) ^ read_all(V, count);
    if (sum == 0x12345679) *sink = sum;
}

// Queues the reading of `bytes` bytes (a multiple of 16) of each of K and V; returns a cudaError_t. sink: 4 bytes.
extern "C" int read_cache(const void *K, const void *V, size_t bytes, void *sink, cudaStream_t stream) {
    int device = 0, multiprocessors = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    read_kernel<<<blocks_each * multiprocessors, threads, 0, stream>>>(
        static_cast<const uint4 *>(K), static_cast<const uint4 *>(V), bytes / 16, static_cast<uint32_t *>(sink));
    return cudaGetLastError();
}
