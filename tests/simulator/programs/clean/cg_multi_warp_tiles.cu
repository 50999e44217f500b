// Cooperative groups of more lanes than a warp has: tiles of 64 and 128 threads, whose scratch memory is the system's.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>

#include "../check.h"

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
