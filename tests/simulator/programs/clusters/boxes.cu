// Boxes of tensors in clusters: each block brings its half of a tile to all blocks, several times through a ring of two
// buffers that everyone must have left; and a box that one block sends to its neighbour alone. Prints OK.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "../check.h"
#include "../tensor_map.h"
#include "cluster.cuh"

namespace {

constexpr unsigned columns = 32, part = 8, tiles = 6;  // of a tile: part rows from each block

__device__ void box_to_all(void *to, const CUtensorMap &map, int x, int y, uint64_t *bar, unsigned short blocks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(shared(to)),
        "l"(&map), "r"(x), "r"(y), "r"(shared(bar)), "h"(blocks)
        : "memory");
}
__device__ void box_to_peer(unsigned to, const CUtensorMap &map, int x, int y, unsigned bar) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(bar)
        : "memory");
}

// Block r of the cluster sums, for each tile, the column that its thread has, over all rows, times r + 1.
template <unsigned blocks>
__global__ void shared_tiles(float *out, const __grid_constant__ CUtensorMap map) {
    constexpr unsigned rows = part * blocks, bytes = rows * columns * sizeof(float);
    __shared__ alignas(1024) float tile[2][rows][columns];
    __shared__ uint64_t full[2], empty[2];
    const unsigned t = threadIdx.x, rank = rank_of_block();
    if (t == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            init(&full[i], 1);
            init(&empty[i], blocks);  // one thread of each block says that it has read
        }
        fence_init();
    }
    cluster_sync();
    if (t >= columns) {
        if (t == columns) {
            for (unsigned k = 0; k < tiles; ++k) {
                const unsigned stage = k % 2, parity = k / 2 % 2;
                wait(&empty[stage], parity ^ 1);  // of all blocks' tiles
                expect(&full[stage], bytes);
                box_to_all(tile[stage][rank * part], map, 0, int(k * rows + rank * part), &full[stage],
                           (1 << blocks) - 1);
            }
        }
    } else {
        float sum = 0;
        for (unsigned k = 0; k < tiles; ++k) {
            const unsigned stage = k % 2, parity = k / 2 % 2;
            wait(&full[stage], parity);
            for (unsigned row = 0; row < rows; ++row) sum += tile[stage][row][t] * float(rank + 1);
            __syncwarp();
            if (t < blocks) arrive_at(mapa(&empty[stage], t));
        }
        out[blockIdx.x * columns + t] = sum;
    }
    cluster_sync();
}

__global__ void to_the_neighbour(float *out, const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(1024) float box[part][columns];
    __shared__ uint64_t bar;
    const unsigned t = threadIdx.x, peer = rank_of_block() ^ 1;
    if (t == 0) {
        init(&bar, 1);
        fence_init();
        expect(&bar, sizeof box);
    }
    cluster_sync();
    if (t == 0) box_to_peer(mapa(box, peer), map, 0, int(blockIdx.x * part), mapa(&bar, peer));
    wait(&bar, 0);
    for (unsigned row = 0; row < part; ++row) out[(blockIdx.x * part + row) * columns + t] = box[row][t];
    cluster_sync();
}

cudaLaunchConfig_t shape(unsigned blocks, unsigned threads, unsigned cluster, cudaLaunchAttribute &attribute) {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    return config;
}

template <unsigned blocks>
bool check_tiles(float *matrix, const std::vector<float> &numbers, float *out) {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = shape(2 * blocks, 2 * columns, blocks, attribute);
    const CUtensorMap map = map_of(matrix, columns, tiles * part * blocks, columns * sizeof(float), columns, part);
    CHECK(cudaLaunchKernelEx(&config, shared_tiles<blocks>, out, map));
    std::vector<float> got(2 * blocks * columns);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (unsigned block = 0; block < 2 * blocks; ++block)
        for (unsigned t = 0; t < columns; ++t) {
            float sum = 0;
            for (unsigned row = 0; row < tiles * part * blocks; ++row)
                sum += numbers[row * columns + t] * float(block % blocks + 1);
            if (got[block * columns + t] == sum) continue;
            std::printf("clusters of %u, block %u, column %u: %g, not %g\n", blocks, block, t, got[block * columns + t],
                        sum);
            return false;
        }
    return true;
}

}  // namespace

int main() {
    constexpr unsigned rows = tiles * part * 4;
    std::vector<float> numbers(rows * columns);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i * 7919 % 61);
    float *matrix, *out;
    CHECK(cudaMalloc(&matrix, numbers.size() * sizeof(float)));
    CHECK(cudaMalloc(&out, numbers.size() * sizeof(float)));
    CHECK(cudaMemcpy(matrix, numbers.data(), numbers.size() * sizeof(float), cudaMemcpyHostToDevice));
    if (!check_tiles<1>(matrix, numbers, out) || !check_tiles<2>(matrix, numbers, out) ||
        !check_tiles<4>(matrix, numbers, out)) {
        return 1;
    }
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = shape(4, columns, 2, attribute);
    const CUtensorMap map = map_of(matrix, columns, rows, columns * sizeof(float), columns, part);
    CHECK(cudaLaunchKernelEx(&config, to_the_neighbour, out, map));
    std::vector<float> got(4 * part * columns);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i) {
        if (got[i] == numbers[i ^ part * columns]) continue;
        std::printf("[%zu] %g, not %g\n", i, got[i], numbers[i ^ part * columns]);
        return 1;
    }
    std::printf("OK\n");
}
