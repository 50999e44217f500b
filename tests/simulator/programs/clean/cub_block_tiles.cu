// A block that walks over tiles with CUB: scans with a running prefix, reductions of part of a tile, three algorithms.
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

#include <climits>
#include <cstdio>

#include "../check.h"

struct Running {
    long long total;
    __device__ long long operator()(long long tile) {
        const long long before = total;
        total += tile;
        return before;
    }
};

template <int THREADS, int ITEMS, cub::BlockScanAlgorithm SCAN>
__global__ void scan(const int *in, long long *out, int n) {
    using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<long long, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<long long, THREADS, SCAN>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Scan::TempStorage scan;
    } s;
    Running prefix{0};
    for (int first = 0; first < n; first += THREADS * ITEMS) {
        int mine[ITEMS];
        long long sums[ITEMS];
        Load(s.load).Load(in + first, mine, n - first, 0);
        __syncthreads();
        for (int i = 0; i < ITEMS; ++i) sums[i] = mine[i];
        Scan(s.scan).ExclusiveSum(sums, sums, prefix);
        __syncthreads();
        Store(s.store).Store(out + first, sums, n - first);
        __syncthreads();
    }
}

template <int THREADS, cub::BlockReduceAlgorithm REDUCE>
__global__ void reduce(const int *in, int *out, int n) {
    using Reduce = cub::BlockReduce<int, THREADS, REDUCE>;
    __shared__ typename Reduce::TempStorage s;
    const int first = blockIdx.x * THREADS, valid = min(THREADS, n - first);
    const int x = int(threadIdx.x) < valid ? in[first + threadIdx.x] : 0;
    const int most = Reduce(s).Reduce(x, [](int a, int b) { return a > b ? a : b; }, valid);
    __syncthreads();
    const int sum = Reduce(s).Sum(x, valid);
    if (threadIdx.x == 0) out[2 * blockIdx.x] = most, out[2 * blockIdx.x + 1] = sum;
}

template <cub::BlockScanAlgorithm SCAN, cub::BlockReduceAlgorithm REDUCE>
bool run(int n) {
    constexpr int kThreads = 96;
    int *in, *out;
    long long *sums;
    const int blocks = (n + kThreads - 1) / kThreads;
    CHECK(cudaMallocManaged(&in, n * sizeof *in));
    CHECK(cudaMallocManaged(&sums, n * sizeof *sums));
    CHECK(cudaMallocManaged(&out, 2 * blocks * sizeof *out));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 1013 - 400;
    scan<kThreads, 5, SCAN><<<1, kThreads>>>(in, sums, n);
    reduce<kThreads, REDUCE><<<blocks, kThreads>>>(in, out, n);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    long long before = 0;
    for (int i = 0; i < n; before += in[i++]) right = right && sums[i] == before;
    for (int block = 0; block < blocks; ++block) {
        int most = INT_MIN, sum = 0;
        for (int i = block * kThreads; i < n && i < (block + 1) * kThreads; ++i)
            sum += in[i], most = std::max(most, in[i]);
        right = right && out[2 * block] == most && out[2 * block + 1] == sum;
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    CHECK(cudaFree(sums));
    return right;
}

int main() {
    for (int n : {7, 480, 1999}) {
        if (!run<cub::BLOCK_SCAN_RAKING, cub::BLOCK_REDUCE_RAKING>(n)) return std::printf("raking, %d\n", n), 1;
        if (!run<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(n))
            return std::printf("warps, %d\n", n), 1;
        if (!run<cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(n))
            return std::printf("memoize, %d\n", n), 1;
    }
    std::printf("OK\n");
}
