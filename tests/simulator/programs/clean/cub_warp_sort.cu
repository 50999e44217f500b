// CUB's warps: loads and stores, an exchange, a merge sort of pairs, a reduction by segments.
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_store.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"

constexpr int kItems = 4, kThreads = 128;

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

template <int LANES>
__global__ void warps(const int *in, int *keys_out, int *values_out, int *striped, int *sums, int n) {
    using Load = cub::WarpLoad<int, kItems, cub::WARP_LOAD_TRANSPOSE, LANES>;
    using Store = cub::WarpStore<int, kItems, cub::WARP_STORE_TRANSPOSE, LANES>;
    using Sort = cub::WarpMergeSort<int, kItems, LANES, int>;
    using Exchange = cub::WarpExchange<int, kItems, LANES>;
    using Reduce = cub::WarpReduce<int, LANES>;
    constexpr int kGroups = kThreads / LANES;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Exchange::TempStorage exchange;
        typename Reduce::TempStorage reduce;
    } s[kGroups];
    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int first = (blockIdx.x * kGroups + group) * LANES * kItems, left = n - first;
    if (left <= 0) return;  // a whole group
    const unsigned mask = LANES == 32 ? ~0u : ((1u << LANES) - 1) << (threadIdx.x / LANES * LANES % 32);
    int keys[kItems], values[kItems], mixed[kItems];
    Load(s[group].load).Load(in + first, keys, left, 1 << 30);
    __syncwarp(mask);
    Exchange(s[group].exchange).BlockedToStriped(keys, mixed);
    __syncwarp(mask);
    for (int i = 0; i < kItems; ++i)
        if (lane + i * LANES < left) striped[first + lane + i * LANES] = mixed[i];
    const int sum = Reduce(s[group].reduce).HeadSegmentedSum(lane < left ? in[first + lane] : 0, lane % 5 == 0);
    if (lane < left && lane % 5 == 0) sums[first + lane] = sum;
    __syncwarp(mask);
    for (int i = 0; i < kItems; ++i) values[i] = first + lane * kItems + i;
    Sort(s[group].sort).StableSort(keys, values, Less());
    __syncwarp(mask);
    Store(s[group].store).Store(keys_out + first, keys, left);
    __syncwarp(mask);
    Store(s[group].store).Store(values_out + first, values, left);
}

template <int LANES>
bool run(int n) {
    int *in, *keys, *values, *striped, *sums;
    for (int **p : {&in, &keys, &values, &striped, &sums}) CHECK(cudaMallocManaged(p, n * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 401;
    warps<LANES><<<(n + kThreads * kItems - 1) / (kThreads * kItems), kThreads>>>(in, keys, values, striped, sums, n);
    CHECK(cudaDeviceSynchronize());
    bool right = std::equal(in, in + n, striped);
    for (int first = 0; first < n; first += LANES * kItems) {
        const int end = std::min(n, first + LANES * kItems);
        std::vector<int> order(end - first);
        std::iota(order.begin(), order.end(), first);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return in[a] < in[b]; });
        for (int i = first; i < end; ++i)
            right = right && keys[i] == in[order[i - first]] && values[i] == order[i - first];
        for (int lane = 0; lane < LANES && first + lane < end; lane += 5) {
            int sum = 0;
            for (int j = lane; j < std::min(LANES, lane + 5) && first + j < end; ++j) sum += in[first + j];
            right = right && sums[first + lane] == sum;
        }
    }
    for (int *p : {in, keys, values, striped, sums}) CHECK(cudaFree(p));
    return right;
}

int main() {
    for (int n : {50, 512, 1333})
        if (!run<32>(n) || !run<8>(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
    return 0;
}
