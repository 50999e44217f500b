// CUB within a warp and a block: WarpReduce, WarpScan, BlockScan, BlockExchange through BlockLoad and BlockStore.
#include <cub/cub.cuh>

#include <cstdio>

#include "../check.h"

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
}
