// CUB's block and warp primitives and a device-wide scan and sort, which bring their own shared-memory protocols.
#include <cub/cub.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"

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
