// Cooperative launch: grid.sync() between phases, thread_rank, coalesced groups, labeled and binary partitions,
// memcpy_async, reduce.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "../check.h"

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
