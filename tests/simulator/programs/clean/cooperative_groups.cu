// Cooperative groups: correct programs, each of which prints OK as its last line.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

// A filter whose warps add to the counter once: coalesced groups, and the same per bin by labeled and binary
// partitions.
namespace cg_aggregated_atomics {

namespace cg = cooperative_groups;

__device__ int next(int *counter) {
    const auto active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}

__global__ void filter(int *out, int *count, const int *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (in[i] % 3 == 0) out[next(count)] = in[i];
}

__global__ void bins(int *counts, int *even, const int *in, int n) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int x = i < n ? in[i] % 6 : 6;
    const auto same = cg::labeled_partition(warp, x);
    if (same.thread_rank() == 0) atomicAdd(&counts[x], same.size());
    const auto half = cg::binary_partition(warp, x % 2 == 0);
    if (half.thread_rank() == 0 && x % 2 == 0) atomicAdd(even, half.size());
}

bool run(int n) {
    int *in, *out, *counts;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    CHECK(cudaMallocManaged(&counts, 9 * sizeof(int)));
    CHECK(cudaMemset(counts, 0, 9 * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 1009;
    filter<<<3, 96>>>(out, counts + 7, in, n);
    bins<<<(n + 95) / 96, 96>>>(counts, counts + 8, in, n);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> want, got(out, out + counts[7]);
    int by_value[7] = {};
    for (int i = 0; i < n; ++i) {
        if (in[i] % 3 == 0) want.push_back(in[i]);
        ++by_value[in[i] % 6];
    }
    by_value[6] = (n + 95) / 96 * 96 - n;
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    const bool right = got == want && std::equal(by_value, by_value + 7, counts) &&
                       counts[8] == by_value[0] + by_value[2] + by_value[4] + by_value[6];
    for (int *p : {in, out, counts}) CHECK(cudaFree(p));
    return right;
}

int main() {
    for (int n : {1, 96, 2001})
        if (!run(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace cg_aggregated_atomics

// Cooperative groups' asynchronous copies of a block's tiles, the next one on its way while one is summed.
namespace cg_memcpy_async {

namespace cg = cooperative_groups;

constexpr int kTile = 128;

__global__ void sum(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float buffer[2][kTile];
    const auto block = cg::this_thread_block();
    cg::memcpy_async(block, buffer[0], in, sizeof buffer[0]);
    float total = 0;
    for (int t = 0; t < tiles; ++t) {
        if (t + 1 < tiles) {
            cg::memcpy_async(block, buffer[(t + 1) % 2], in + (t + 1) * kTile, sizeof buffer[0]);
            cg::wait_prior<1>(block);
        } else {
            cg::wait(block);
        }
        total += buffer[t % 2][kTile - 1 - threadIdx.x];
        block.sync();
    }
    out[threadIdx.x] = total;
}

int main() {
    const int tiles = 5;
    float *in, *out;
    CHECK(cudaMallocManaged(&in, tiles * kTile * sizeof(float)));
    CHECK(cudaMallocManaged(&out, kTile * sizeof(float)));
    for (int i = 0; i < tiles * kTile; ++i) in[i] = i % 37;
    sum<<<1, kTile>>>(out, in, tiles);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kTile; ++i) {
        float want = 0;
        for (int t = 0; t < tiles; ++t) want += in[t * kTile + kTile - 1 - i];
        if (out[i] != want) return std::printf("%d: %f, want %f\n", i, out[i], want), 1;
    }
    std::printf("OK\n");
    return 0;
}

}  // namespace cg_memcpy_async

// Cooperative groups of more lanes than a warp has: tiles of 64 and 128 threads, whose scratch memory is the system's.
namespace cg_multi_warp_tiles {

namespace cg = cooperative_groups;

template <int SIZE>
__global__ void sums(int *out, const int *in, int n) {
    __shared__ cg::block_tile_memory<256> memory;
    const auto block = cg::this_thread_block(memory);
    const auto tile = cg::tiled_partition<SIZE>(block);
    const int i = blockIdx.x * block.size() + block.thread_rank();
    const int x = i < n ? in[i] : 0;
    const int sum = cg::reduce(tile, x, cg::plus<int>()), most = cg::reduce(tile, x, cg::greater<int>());
    const int third = tile.shfl(x, SIZE - 3);
    const bool any = tile.any(x == 5);
    tile.sync();
    if (i < n) out[i] = sum * 1000 + most * 10 + any + third % 7 + 100000000 * tile.meta_group_rank();
}

template <int SIZE>
bool run(int n) {
    int *in, *out;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 37 % 89;
    sums<SIZE><<<(n + 255) / 256, 256>>>(out, in, n);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int first = 0; first < n; first += SIZE) {
        int sum = 0, most = 0, any = 0;
        for (int i = first; i < first + SIZE && i < n; ++i) {
            sum += in[i];
            most = in[i] > most ? in[i] : most;
            any |= in[i] == 5;
        }
        const int third = first + SIZE - 3 < n ? in[first + SIZE - 3] : 0;
        const int want = sum * 1000 + most * 10 + any + third % 7 + 100000000 * (first % 256 / SIZE);
        for (int i = first; i < first + SIZE && i < n; ++i) right = right && out[i] == want;
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return right;
}

int main() {
    for (int n : {3, 256, 1000})
        if (!run<64>(n) || !run<128>(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace cg_multi_warp_tiles

// Cooperative groups: reduce, scans and votes over tiles and coalesced groups, labeled partitions.
namespace cg_reduce_scan {

namespace cg = cooperative_groups;

__global__ void groups(int *sums, int *scans, int *odd, int *labels) {
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    const int rank = block.thread_rank();
    sums[rank] = cg::reduce(tile, rank, cg::plus<int>());
    scans[rank] = cg::inclusive_scan(tile, rank) - cg::exclusive_scan(tile, rank);
    odd[rank] = 0;
    if (rank % 3 == 1) {
        const auto active = cg::coalesced_threads();
        odd[rank] = active.size() * 100 + active.thread_rank();
    }
    const auto label = cg::labeled_partition(cg::tiled_partition<32>(block), rank % 5);
    labels[rank] = cg::reduce(label, 1, cg::plus<int>());
}

int main() {
    const int n = 96;
    int *p;
    CHECK(cudaMallocManaged(&p, 4 * n * sizeof(int)));
    groups<<<1, n>>>(p, p + n, p + 2 * n, p + 3 * n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) {
        const int first = i / 8 * 8, warp = i / 32 * 32;
        int active = 0, rank = 0, same = 0;
        for (int j = warp; j < warp + 32; ++j) {
            active += j % 3 == 1;
            rank += j < i && j % 3 == 1;
            same += j % 5 == i % 5;
        }
        if (p[i] != 8 * first + 28) return std::printf("reduce %d: %d\n", i, p[i]), 1;
        if (p[n + i] != i) return std::printf("scan %d: %d\n", i, p[n + i]), 1;
        if (p[2 * n + i] != (i % 3 == 1 ? 100 * active + rank : 0)) return std::printf("coalesced %d\n", i), 1;
        if (p[3 * n + i] != same) return std::printf("labeled %d: %d\n", i, p[3 * n + i]), 1;
    }
    std::printf("OK\n");
    return 0;
}

}  // namespace cg_reduce_scan

// Cooperative groups: a tile's shuffles and votes, tiles of tiles, and a block's barrier in two halves.
namespace cg_tiles {

namespace cg = cooperative_groups;

__global__ void tiles(unsigned *out) {
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const auto four = cg::tiled_partition<4>(warp);
    const unsigned i = block.thread_rank();
    unsigned x = four.shfl_xor(i, 1) + 100 * four.shfl(i, 2) + (four.any(i == 5) ? 100000 : 0);
    x += 1000000 * warp.match_any(i / 8 % 2) % 7 + four.meta_group_rank();
    __shared__ unsigned s[64];
    s[i] = x;
    auto token = block.barrier_arrive();
    const unsigned own = x;
    block.barrier_wait(std::move(token));
    out[i] = s[63 - i] - own;
}

int main() {
    unsigned *out, want[64];
    CHECK(cudaMallocManaged(&out, sizeof want));
    tiles<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned mask = i / 8 % 2 ? 0xff00ff00u : 0x00ff00ffu;
        want[i] = (i ^ 1) + 100 * (i / 4 * 4 + 2) + (i / 4 == 1 ? 100000 : 0) + 1000000 * mask % 7 + i % 32 / 4;
    }
    for (int i = 0; i < 64; ++i)
        if (out[i] != want[63 - i] - want[i])
            return std::printf("%d: %u, want %u\n", i, out[i], want[63 - i] - want[i]), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace cg_tiles

// Cooperative launch: grid.sync() between phases, thread_rank, coalesced groups, labeled and binary partitions,
// memcpy_async, reduce.
namespace grid_sync {

namespace cg = cooperative_groups;

__global__ void phases(int *a, int *b, int *sum, int n) {
    cg::grid_group grid = cg::this_grid();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) a[i] = i;
    grid.sync();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) b[i] = a[n - 1 - i] * 2;
    cg::sync(grid);
    int mine = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) mine += b[i];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    mine = cg::reduce(warp, mine, cg::plus<int>());
    if (warp.thread_rank() == 0) atomicAdd(sum, mine);
    grid.sync();
    if (grid.thread_rank() == 0) *sum += 1;
}

// Warp-aggregated atomics over the threads that happen to be here.
__device__ int atomicAggInc(int *ctr) {
    auto g = cg::coalesced_threads();
    int warp_res;
    if (g.thread_rank() == 0) warp_res = atomicAdd(ctr, g.size());
    return g.shfl(warp_res, 0) + g.thread_rank();
}
__global__ void filter(int *dst, int *nres, const int *src, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    if (src[i] > 0) dst[atomicAggInc(nres)] = src[i];
}

// The same by hand.
__device__ int warpAggregated(int *counter, bool want) {
    unsigned mask = __ballot_sync(__activemask(), want);
    if (!want) return -1;
    int leader = __ffs(mask) - 1, lane = threadIdx.x % 32, base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    return base + __popc(mask & ((1u << lane) - 1));
}
__global__ void filter_by_hand(int *dst, int *nres, const int *src, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int v = i < n ? src[i] : 0;
    int slot = warpAggregated(nres, v > 0);
    if (slot >= 0) dst[slot] = v;
}

// Groups of odd shapes that exchange through shared memory.
__global__ void partitions(int *out) {
    __shared__ int s[64], heads[64];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto even_odd = cg::binary_partition(warp, warp.thread_rank() % 2 == 0);
    auto thirds = cg::labeled_partition(warp, int(warp.thread_rank() % 3));
    const int t = block.thread_rank();
    int *mine = s + warp.meta_group_rank() * 32 + even_odd.meta_group_rank() * 16;
    mine[even_odd.thread_rank()] = t;
    even_odd.sync();
    int neighbour = mine[(even_odd.thread_rank() + 1) % even_odd.size()];
    even_odd.sync();
    // One lane of a group writes, all of it read, the next round overwrites.
    int sum = 0;
    for (int r = 0; r < 3; ++r) {
        int *head = heads + warp.meta_group_rank() * 32 + even_odd.meta_group_rank();
        if (even_odd.thread_rank() == r) *head = t;
        even_odd.sync();
        sum += *head;
        even_odd.sync();
    }
    int third = cg::reduce(thirds, t, cg::greater<int>());
    int prefix = cg::inclusive_scan(warp, 1, cg::plus<int>());
    block.sync();
    out[t] = neighbour + 1000 * sum + third * 1000000 + (prefix == warp.thread_rank() + 1 ? 0 : -1);
}

template <int N>
__global__ void copy_async(float *out, const float *in, int rows) {
    __shared__ float tile[N];
    auto block = cg::this_thread_block();
    float total = 0;
    for (int r = 0; r < rows; ++r) {
        cg::memcpy_async(block, tile, in + r * N, sizeof(float) * N);
        cg::wait(block);
        for (int i = block.thread_rank(); i < N; i += block.size()) total += tile[N - 1 - i];
        block.sync();
    }
    out[block.thread_rank()] = total;
}

int main() {
    const int n = 3000;
    int supported = 0, per_sm = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    if (!supported) return printf("no cooperative launch\n"), 1;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, phases, 128, 0));
    if (per_sm < 1) return printf("occupancy %d\n", per_sm), 1;
    int *a, *b, *sum, total, h[64];
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMalloc(&sum, 4));
    CHECK(cudaMemset(sum, 0, 4));
    int count = n;
    void *args[] = {&a, &b, &sum, &count};
    CHECK(cudaLaunchCooperativeKernel((void *)phases, dim3(6), dim3(128), args));
    CHECK(cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost));
    if (total != n * (n - 1) + 1) return printf("phases %d\n", total), 1;

    int *host = (int *)malloc(n * 4), positive = 0;
    long long want = 0;
    for (int i = 0; i < n; ++i) {
        host[i] = rand() % 200 - 100;
        if (host[i] > 0) positive++, want += host[i];
    }
    CHECK(cudaMemcpy(a, host, n * 4, cudaMemcpyHostToDevice));
    for (int kind = 0; kind < 2; ++kind) {
        CHECK(cudaMemset(sum, 0, 4));
        if (kind == 0)
            filter<<<(n + 127) / 128, 128>>>(b, sum, a, n);
        else
            filter_by_hand<<<(n + 127) / 128, 128>>>(b, sum, a, n);
        CHECK(cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(host, b, n * 4, cudaMemcpyDeviceToHost));
        long long got = 0;
        for (int i = 0; i < total; ++i) got += host[i];
        if (total != positive || got != want) return printf("filter %d: %d %lld\n", kind, total, got), 1;
    }
    partitions<<<1, 64>>>(a);
    CHECK(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
    for (int t = 0; t < 64; ++t) {
        int w = t / 32 * 32, l = t % 32, neighbour = w + (l + 2) % 32;
        int first = w + l % 2, sum3 = first + first + 2 + first + 4;
        int third = w + (31 - l % 3) / 3 * 3 + l % 3;
        if (h[t] != neighbour + 1000 * sum3 + third * 1000000) return printf("partitions %d: %d\n", t, h[t]), 1;
    }
    const int rows = 5, N = 256;
    float *in, *out, hin[rows * N], hout[64];
    for (int i = 0; i < rows * N; ++i) hin[i] = i % 91;
    CHECK(cudaMalloc(&in, sizeof hin));
    CHECK(cudaMalloc(&out, sizeof hout));
    CHECK(cudaMemcpy(in, hin, sizeof hin, cudaMemcpyHostToDevice));
    copy_async<N><<<1, 64>>>(out, in, rows);
    CHECK(cudaMemcpy(hout, out, sizeof hout, cudaMemcpyDeviceToHost));
    for (int t = 0; t < 64; ++t) {
        float s = 0;
        for (int r = 0; r < rows; ++r)
            for (int i = t; i < N; i += 64) s += hin[r * N + N - 1 - i];
        if (hout[t] != s) return printf("copy_async %d: %f, want %f\n", t, hout[t], s), 1;
    }
    free(host);
    printf("OK\n");
    return 0;
}

}  // namespace grid_sync

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(cg_aggregated_atomics),
                         PROGRAM(cg_memcpy_async),
                         PROGRAM(cg_multi_warp_tiles),
                         PROGRAM(cg_reduce_scan),
                         PROGRAM(cg_tiles),
                         PROGRAM(grid_sync),
                     });
}
