// Counters in global memory that a block sets, counts up with updates of one kind, whose old values nothing uses, and
// reads and sets again: each access must see what the block itself did before. A few more counters are everybody's.
#include <algorithm>
#include <vector>

#include "../check.h"

constexpr int kBlocks = 40, kThreads = 96, kOwn = 24;

__global__ void count(unsigned *own, unsigned *all, unsigned *seen, unsigned *early) {
    unsigned *const mine = own + blockIdx.x * kOwn;
    const unsigned thread = threadIdx.x;
    if (thread < kOwn) mine[thread] = 100 + thread;
    __syncthreads();
    for (int i = 0; i < 10; ++i) {
        atomicAdd(mine + (thread + i) % kOwn, 1u);
        atomicAdd(all + (thread * 7 + i) % 3000, 1u);
    }
    __syncthreads();
    if (thread < kOwn / 4) {  // 16 bytes a lane
        const uint4 x = reinterpret_cast<const uint4 *>(mine)[thread];
        reinterpret_cast<uint4 *>(early + blockIdx.x * kOwn)[thread] = x;
    }
    __syncthreads();
    if (thread < kOwn) mine[thread] = thread;
    __syncthreads();
    if (thread < 32) atomicAdd(mine + thread % kOwn, thread);
    __syncwarp();
    if (thread == 0) {
        atomicAdd(mine, 5u);
        seen[blockIdx.x] = *mine;  // the warp's own updates, at once
    }
}

__global__ void smallest(int *least) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 7919 % 100003 - 50000;
    atomicMin(least, x);
}

__global__ void greatest(long long *most) {
    const long long x = (long long)(blockIdx.x * blockDim.x + threadIdx.x) * 7919 % 100003 - 200000;
    atomicMax(most, x << 20);
}

__global__ void bits(unsigned *set) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    atomicOr(set + thread / 32, 1u << thread % 32);
}

template <class T>
T *device(size_t count, const std::vector<T> &from = {}) {
    T *memory;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    CHECK(cudaMemset(memory, 0, count * sizeof(T)));
    if (from.size()) CHECK(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

template <class T>
std::vector<T> host(const T *memory, size_t count) {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

int failed = 0;

void expect(const char *what, size_t i, long long got, long long wanted) {
    if (got == wanted || failed++ > 10) return;
    std::printf("FAILED: %s %zu is %lld, not %lld\n", what, i, got, wanted);
}

int main() {
    auto *own = device<unsigned>(kBlocks * kOwn), *all = device<unsigned>(3000), *seen = device<unsigned>(kBlocks);
    auto *early = device<unsigned>(kBlocks * kOwn), *set = device<unsigned>(kBlocks * kThreads / 32);
    auto *least = device<int>(1, {1 << 30});
    auto *most = device<long long>(1, {-(1ll << 60)});
    count<<<kBlocks, kThreads>>>(own, all, seen, early);
    smallest<<<kBlocks, kThreads>>>(least);
    greatest<<<kBlocks, kThreads>>>(most);
    bits<<<kBlocks, kThreads>>>(set);
    CHECK(cudaDeviceSynchronize());
    unsigned everybody[3000] = {};
    for (int thread = 0; thread < kThreads; ++thread) {
        for (int i = 0; i < 10; ++i) everybody[(thread * 7 + i) % 3000] += kBlocks;
    }
    const auto all_now = host(all, 3000);
    for (size_t i = 0; i < 3000; ++i) expect("everybody's counter", i, all_now[i], everybody[i]);
    const auto early_now = host(early, kBlocks * kOwn), own_now = host(own, kBlocks * kOwn),
               seen_now = host(seen, kBlocks);
    for (size_t i = 0; i < early_now.size(); ++i) {
        const int k = i % kOwn;
        expect("counter", i, early_now[i], 100 + k + kThreads * 10 / kOwn);
        expect("counter after it was set again", i, own_now[i], k + k + (k + kOwn < 32 ? k + kOwn : 0) + (k ? 0 : 5));
    }
    for (size_t i = 0; i < seen_now.size(); ++i) expect("what the thread saw of block", i, seen_now[i], kOwn + 5);
    int low = 1 << 30;
    long long high = -(1ll << 60);
    for (int i = 0; i < kBlocks * kThreads; ++i) {
        low = std::min(low, i * 7919 % 100003 - 50000);
        high = std::max(high, ((long long)i * 7919 % 100003 - 200000) * (1 << 20));
    }
    expect("least", 0, host(least, 1)[0], low);
    expect("most", 0, host(most, 1)[0], high);
    const auto set_now = host(set, kBlocks * kThreads / 32);
    for (size_t i = 0; i < set_now.size(); ++i) expect("word of bits", i, set_now[i], ~0u);
    if (!failed) std::puts("OK");
    return failed != 0;
}
