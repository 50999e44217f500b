// What CUB's blocks do between neighbours: exchange, discontinuity, adjacent difference, shuffle, histogram.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_shuffle.cuh>

#include <cstdio>

#include "../check.h"

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
}
