// Cooperative groups: reduce, scans and votes over tiles and coalesced groups, labeled partitions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

#include "../check.h"

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
