// CUB's block-wide calls: correct programs, each of which prints OK as its last line.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/cub.cuh>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

// CUB's block and warp primitives and a device-wide scan and sort, which bring their own shared-memory protocols.
namespace cub_blocks {

template <int THREADS, int ITEMS>
__global__ void block_primitives(const int *in, int *sorted, int *scanned, int *sum) {
    using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, THREADS, ITEMS>;
    using Scan = cub::BlockScan<int, THREADS>;
    using Reduce = cub::BlockReduce<int, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } temp;
    int items[ITEMS], prefix[ITEMS];
    Load(temp.load).Load(in, items);
    __syncthreads();
    Scan(temp.scan).InclusiveSum(items, prefix);
    __syncthreads();
    Store(temp.store).Store(scanned, prefix);
    __syncthreads();
    int total = Reduce(temp.reduce).Sum(items);
    if (threadIdx.x == 0) *sum = total;
    __syncthreads();
    Sort(temp.sort).Sort(items);
    __syncthreads();
    Store(temp.store).Store(sorted, items);
}

int main() {
    const int n = 128 * 4, big = 5000;
    std::vector<int> h(big), got(big);
    for (int &v : h) v = rand() % 2000 - 1000;
    int *in, *a, *b, *sum, total;
    CHECK(cudaMalloc(&in, big * 4));
    CHECK(cudaMalloc(&a, big * 4));
    CHECK(cudaMalloc(&b, big * 4));
    CHECK(cudaMalloc(&sum, 4));
    CHECK(cudaMemcpy(in, h.data(), big * 4, cudaMemcpyHostToDevice));
    block_primitives<128, 4><<<1, 128>>>(in, a, b, sum);
    CHECK(cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got.data(), b, n * 4, cudaMemcpyDeviceToHost));
    int running = 0;
    for (int i = 0; i < n; ++i) {
        running += h[i];
        if (got[i] != running) return printf("block scan %d\n", i), 1;
    }
    if (total != running) return printf("block reduce %d\n", total), 1;
    CHECK(cudaMemcpy(got.data(), a, n * 4, cudaMemcpyDeviceToHost));
    std::vector<int> want(h.begin(), h.begin() + n);
    std::sort(want.begin(), want.end());
    if (!std::equal(want.begin(), want.end(), got.begin())) return printf("block sort\n"), 1;
    void *temp = nullptr;
    size_t bytes = 0;
    CHECK(cub::DeviceScan::InclusiveSum(temp, bytes, in, a, big));
    CHECK(cudaMalloc(&temp, bytes));
    CHECK(cub::DeviceScan::InclusiveSum(temp, bytes, in, a, big));
    CHECK(cudaMemcpy(got.data(), a, big * 4, cudaMemcpyDeviceToHost));
    running = 0;
    for (int i = 0; i < big; ++i) {
        running += h[i];
        if (got[i] != running) return printf("device scan %d\n", i), 1;
    }
    CHECK(cudaFree(temp));
    temp = nullptr;
    CHECK(cub::DeviceReduce::Max(temp, bytes, in, sum, big));
    CHECK(cudaMalloc(&temp, bytes));
    CHECK(cub::DeviceReduce::Max(temp, bytes, in, sum, big));
    CHECK(cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost));
    if (total != *std::max_element(h.begin(), h.end())) return printf("device max %d\n", total), 1;
    printf("OK\n");
    return 0;
}

}  // namespace cub_blocks

// A block that walks over tiles with CUB: scans with a running prefix, reductions of part of a tile, three algorithms.
namespace cub_block_tiles {

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
    return 0;
}

}  // namespace cub_block_tiles

// What CUB's blocks do between neighbours: exchange, discontinuity, adjacent difference, shuffle, histogram.
namespace cub_block_neighbours {

constexpr int kThreads = 96, kItems = 3, kTile = kThreads * kItems;

struct Minus {
    __device__ int operator()(int a, int b) const { return a - b; }
};

struct Different {
    __device__ bool operator()(int a, int b) const { return a != b; }
};

template <cub::BlockHistogramAlgorithm ALGORITHM>
__global__ void neighbours(const int *in, int *transposed, int *heads, int *differences, int *rotated, int *bins) {
    using Exchange = cub::BlockExchange<int, kThreads, kItems>;
    using Heads = cub::BlockDiscontinuity<int, kThreads>;
    using Difference = cub::BlockAdjacentDifference<int, kThreads>;
    using Shuffle = cub::BlockShuffle<int, kThreads>;
    using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 16, ALGORITHM>;
    __shared__ union {
        typename Exchange::TempStorage exchange;
        typename Heads::TempStorage heads;
        typename Difference::TempStorage difference;
        typename Shuffle::TempStorage shuffle;
        typename Histogram::TempStorage histogram;
    } s;
    __shared__ int counts[16];
    const int t = threadIdx.x, first = blockIdx.x * kTile;
    int striped[kItems], mine[kItems], result[kItems];
    for (int i = 0; i < kItems; ++i) striped[i] = in[first + i * kThreads + t];
    Exchange(s.exchange).StripedToBlocked(striped, mine);
    for (int i = 0; i < kItems; ++i) transposed[first + t * kItems + i] = mine[i];
    __syncthreads();
    Heads(s.heads).FlagHeads(result, mine, Different());
    for (int i = 0; i < kItems; ++i) heads[first + t * kItems + i] = result[i];
    __syncthreads();
    Difference(s.difference).SubtractLeft(mine, result, Minus());
    for (int i = 0; i < kItems; ++i) differences[first + t * kItems + i] = result[i];
    __syncthreads();
    int other = 0;
    Shuffle(s.shuffle).Rotate(mine[0], other, 5);
    rotated[blockIdx.x * kThreads + t] = other;
    __syncthreads();
    unsigned char digits[kItems];
    for (int i = 0; i < kItems; ++i) digits[i] = mine[i] % 16;
    Histogram(s.histogram).Histogram(digits, counts);
    __syncthreads();
    if (t < 16) bins[blockIdx.x * 16 + t] = counts[t];
}

template <cub::BlockHistogramAlgorithm ALGORITHM>
bool run(int blocks) {
    const int n = blocks * kTile;
    int *in, *out[4], *bins;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    for (int *&p : out) CHECK(cudaMallocManaged(&p, n * sizeof(int)));
    CHECK(cudaMallocManaged(&bins, blocks * 16 * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i / 4 * 13 % 61;
    neighbours<ALGORITHM><<<blocks, kThreads>>>(in, out[0], out[1], out[2], out[3], bins);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int block = 0; block < blocks; ++block) {
        const int *tile = in + block * kTile;
        int counts[16] = {};
        for (int i = 0; i < kTile; ++i) {
            const int at = block * kTile + i;
            ++counts[tile[i] % 16];
            right = right && out[0][at] == tile[i] && out[1][at] == (i == 0 || tile[i] != tile[i - 1]) &&
                    out[2][at] == (i ? tile[i] - tile[i - 1] : tile[i]);
        }
        for (int t = 0; t < kThreads; ++t)
            right = right && out[3][block * kThreads + t] == tile[(t + 5) % kThreads * kItems];
        for (int i = 0; i < 16; ++i) right = right && bins[block * 16 + i] == counts[i];
    }
    for (int *p : {in, out[0], out[1], out[2], out[3], bins}) CHECK(cudaFree(p));
    return right;
}

int main() {
    if (!run<cub::BLOCK_HISTO_ATOMIC>(1) || !run<cub::BLOCK_HISTO_ATOMIC>(3)) return std::printf("with atomics\n"), 1;
    if (!run<cub::BLOCK_HISTO_SORT>(2)) return std::printf("with a sort\n"), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace cub_block_neighbours

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(cub_blocks),
                         PROGRAM(cub_block_tiles),
                         PROGRAM(cub_block_neighbours),
                     });
}
