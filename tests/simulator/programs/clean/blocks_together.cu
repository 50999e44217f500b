// Blocks that meet in global memory in the usual ways, more of them than one host thread keeps in flight: float sums,
// the last block's turn, a queue of work, a hash table, and printf by all of them. Prints what they computed, whose low
// bits and order tell in which order the blocks came.
#include <cstring>
#include <vector>

#include "../check.h"

constexpr int kBlocks = 300, kThreads = 64, kSlots = 1 << 15, kItems = 900;

__global__ void float_sums(const float *in, float *sum) {
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int i = 0; i < 50; ++i) x = x * 0.99f + 0.01f;
    for (int offset = 16; offset; offset /= 2) x += __shfl_down_sync(~0u, x, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, x);
}

__global__ void last_block(const float *in, float *parts, unsigned *count, float *sum) {
    __shared__ bool last;
    __shared__ float values[kThreads];
    values[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float x = 0;
        for (float value : values) x += value;
        parts[blockIdx.x] = x;
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float x = 0;
        for (int i = 0; i < gridDim.x; ++i) x += __ldcg(parts + i);
        *sum = x;
    }
}

__global__ void work_queue(unsigned *next, unsigned *owner) {
    __shared__ unsigned item;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) item = atomicAdd(next, 1);
        __syncthreads();
        if (item >= kItems) return;
        unsigned x = item;
        for (unsigned i = 0; i < item % 7 * 20; ++i) x = x * 1664525u + 1013904223u;
        if (threadIdx.x == 0) owner[item] = blockIdx.x + (x & 1) * 1000;
    }
}

__global__ void hash_table(unsigned *keys) {
    const unsigned key = (blockIdx.x * blockDim.x + threadIdx.x) / 2 + 1;
    for (unsigned slot = key * 2654435761u % kSlots;; slot = (slot + 1) % kSlots) {
        const unsigned old = atomicCAS(keys + slot, 0u, key);
        if (old == 0 || old == key) return;
    }
}

__global__ void histogram(const float *in, unsigned *bins) {
    __shared__ unsigned own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(own + int(in[blockIdx.x * blockDim.x + threadIdx.x] * 15.99f), 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}

// Each by itself may come in any order, both together may not.
__global__ void two_kinds(unsigned *x) {
    const unsigned value = (blockIdx.x * blockDim.x + threadIdx.x) * 7919u % 10007u;
    atomicMax(x, value);
    atomicAdd(x, value % 5);
}

__global__ void say(unsigned *turn) {
    if (threadIdx.x == 0) printf("block %d came as number %u\n", blockIdx.x, atomicAdd(turn, 1));
}

template <class T>
unsigned digest(const T *device, size_t count) {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    unsigned hash = 2166136261u;
    for (const T &value : host) {
        unsigned bits;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 16777619u;
    }
    return hash;
}

int main() {
    std::vector<float> in(kBlocks * kThreads);
    for (size_t i = 0; i < in.size(); ++i) in[i] = float(i * 7919 % 10007) / 10007;
    float *device_in, *sums, *parts;
    unsigned *words, *keys;
    CHECK(cudaMalloc(&device_in, in.size() * sizeof(float)));
    CHECK(cudaMalloc(&sums, 2 * sizeof(float)));
    CHECK(cudaMalloc(&parts, kBlocks * sizeof(float)));
    CHECK(cudaMalloc(&words, (kItems + 20) * sizeof(unsigned)));
    CHECK(cudaMalloc(&keys, kSlots * sizeof(unsigned)));
    CHECK(cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(sums, 0, 2 * sizeof(float)));
    CHECK(cudaMemset(words, 0, (kItems + 20) * sizeof(unsigned)));
    CHECK(cudaMemset(keys, 0, kSlots * sizeof(unsigned)));
    float_sums<<<kBlocks, kThreads>>>(device_in, sums);
    last_block<<<kBlocks, kThreads>>>(device_in, parts, words, sums + 1);
    work_queue<<<kBlocks / 3, kThreads>>>(words + 1, words + 20);
    hash_table<<<kBlocks, kThreads>>>(keys);
    histogram<<<kBlocks, kThreads>>>(device_in, words + 2);
    two_kinds<<<kBlocks, kThreads>>>(words + 19);
    say<<<kBlocks, kThreads>>>(words + 18);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> left(20);
    CHECK(cudaMemcpy(left.data(), words, 80, cudaMemcpyDeviceToHost));
    unsigned counted = 0;
    for (int i = 2; i < 18; ++i) counted += left[i];
    if (counted != in.size() || left[1] != kItems + kBlocks / 3 || left[18] != kBlocks) {
        std::printf("FAILED: %u counted, %u taken, %u came\n", counted, left[1], left[18]);
        return 1;
    }
    std::printf("sums %08x, owners %08x, table %08x, bins %08x, %u by two kinds\n", digest(sums, 2),
                digest(words + 20, kItems), digest(keys, kSlots), digest(words + 2, 16), left[19]);
    std::puts("OK");
    return 0;
}
