// CUB's warp-wide calls: correct programs, each of which prints OK as its last line.
#include <cub/cub.cuh>
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
#include "../programs.h"

// CUB within a warp and a block: WarpReduce, WarpScan, BlockScan, BlockExchange through BlockLoad and BlockStore.
namespace cub_warp {

__global__ void warps(int *out, const int *in) {
    using Reduce = cub::WarpReduce<int, 16>;
    using Scan = cub::WarpScan<int>;
    __shared__ typename Reduce::TempStorage reduce[8];
    __shared__ typename Scan::TempStorage scan[4];
    const int i = threadIdx.x, x = in[i];
    const int largest = Reduce(reduce[i / 16]).Reduce(x, [](int a, int b) { return a > b ? a : b; });
    int before;
    Scan(scan[i / 32]).ExclusiveSum(x, before);
    out[i] = before * 1000 + (i % 16 == 0 ? largest : 0);
}

__global__ void blocks(int *out, const int *in) {
    using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Scan::TempStorage scan;
    } s;
    int mine[4];
    Load(s.load).Load(in, mine);
    __syncthreads();
    Scan(s.scan).InclusiveSum(mine, mine);
    __syncthreads();
    Store(s.store).Store(out, mine);
}

int main() {
    int *in, *out;
    CHECK(cudaMallocManaged(&in, 256 * sizeof(int)));
    CHECK(cudaMallocManaged(&out, 256 * sizeof(int)));
    for (int i = 0; i < 256; ++i) in[i] = i * 37 % 23;
    warps<<<1, 128>>>(out, in);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 128; ++i) {
        int before = 0, largest = 0;
        for (int j = i / 32 * 32; j < i; ++j) before += in[j];
        for (int j = i; i % 16 == 0 && j < i + 16; ++j) largest = in[j] > largest ? in[j] : largest;
        if (out[i] != before * 1000 + largest) return std::printf("warps %d\n", i), 1;
    }
    blocks<<<1, 64>>>(out, in);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0, sum = 0; i < 256; ++i)
        if (out[i] != (sum += in[i])) return std::printf("blocks %d\n", i), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace cub_warp

// CUB's warps: loads and stores, an exchange, a merge sort of pairs, a reduction by segments.
namespace cub_warp_sort {

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

}  // namespace cub_warp_sort

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(cub_warp),
                         PROGRAM(cub_warp_sort),
                     });
}
