// Cooperative groups: a tile's shuffles and votes, tiles of tiles, and a block's barrier in two halves.
#include <cooperative_groups.h>

#include <cstdio>

#include "../check.h"

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
