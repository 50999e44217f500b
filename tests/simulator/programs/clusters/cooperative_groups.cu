// Clusters as cooperative_groups has them: a histogram in the shared memory of all blocks of a cluster, as in the CUDA
// programming guide, ranks and shapes, arrivals and waits. Prints OK.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "../check.h"

namespace cg = cooperative_groups;

namespace {

__global__ void histogram(int *bins, int count, int bins_per_block, const int *input, size_t size) {
    extern __shared__ int mine[];
    const unsigned thread = cg::this_grid().thread_rank();
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    for (int i = int(threadIdx.x); i < bins_per_block; i += int(blockDim.x)) mine[i] = 0;
    cluster.sync();
    for (size_t i = thread; i < size; i += blockDim.x * gridDim.x) {
        const int bin = input[i] < 0 ? 0 : input[i] >= count ? count - 1 : input[i];
        int *const theirs = cluster.map_shared_rank(mine, bin / bins_per_block);
        atomicAdd(theirs + bin % bins_per_block, 1);
    }
    cluster.sync();
    int *const out = bins + rank * bins_per_block;
    for (int i = int(threadIdx.x); i < bins_per_block; i += int(blockDim.x)) atomicAdd(&out[i], mine[i]);
}

// Sums over the cluster; each block shows its part to the others between an arrival and a wait.
__global__ void sums(float *out, const float *in) {
    __shared__ float part[32];
    __shared__ float total;
    const cg::cluster_group cluster = cg::this_cluster();
    const cg::thread_block block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    float sum = in[cg::this_grid().thread_rank()];
    for (int step = 16; step; step /= 2) sum += warp.shfl_down(sum, step);
    if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        total = 0;
        for (unsigned i = 0; i < warp.meta_group_size(); ++i) total += part[i];
    }
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    float all = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) all += *cluster.map_shared_rank(&total, int(rank));
    const bool good = cluster.query_shared_rank(cluster.map_shared_rank(&total, 1)) == 1 &&
                      cluster.dim_blocks().x == 2 && cluster.block_index().x == blockIdx.x % 2 &&
                      cluster.num_threads() == 2 * blockDim.x &&
                      cluster.thread_rank() == cluster.block_rank() * blockDim.x + threadIdx.x;
    out[cg::this_grid().thread_rank()] = good ? all : -1;
    cluster.sync();
}

}  // namespace

int main() {
    constexpr int count = 64, size = 10000, threads = 96;
    std::vector<int> input(size), want(count);
    for (int i = 0; i < size; ++i) {
        input[i] = (i * 7919 + i / 13) % (count + 8) - 4;
        ++want[input[i] < 0 ? 0 : input[i] >= count ? count - 1 : input[i]];
    }
    int *in, *bins;
    CHECK(cudaMalloc(&in, size * sizeof(int)));
    CHECK(cudaMalloc(&bins, count * sizeof(int)));
    CHECK(cudaMemcpy(in, input.data(), size * sizeof(int), cudaMemcpyHostToDevice));
    for (const int cluster : {1, 2, 4, 8}) {
        CHECK(cudaMemset(bins, 0, count * sizeof(int)));
        cudaLaunchConfig_t config{};
        config.gridDim = 8;
        config.blockDim = threads;
        config.dynamicSmemBytes = count / cluster * sizeof(int);
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {unsigned(cluster), 1, 1};
        config.attrs = &attribute;
        config.numAttrs = 1;
        CHECK(cudaLaunchKernelEx(&config, histogram, bins, count, count / cluster, (const int *)in, size_t(size)));
        std::vector<int> got(count);
        CHECK(cudaMemcpy(got.data(), bins, count * sizeof(int), cudaMemcpyDeviceToHost));
        if (got != want) {
            std::printf("wrong bins with clusters of %d\n", cluster);
            return 1;
        }
    }
    std::vector<float> numbers(8 * threads), results(8 * threads);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i % 50);
    float *from, *to;
    CHECK(cudaMalloc(&from, numbers.size() * sizeof(float)));
    CHECK(cudaMalloc(&to, numbers.size() * sizeof(float)));
    CHECK(cudaMemcpy(from, numbers.data(), numbers.size() * sizeof(float), cudaMemcpyHostToDevice));
    cudaLaunchConfig_t config{};
    config.gridDim = 8;
    config.blockDim = threads;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, sums, to, (const float *)from));
    CHECK(cudaMemcpy(results.data(), to, results.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int pair = 0; pair < 4; ++pair) {
        float sum = 0;
        for (int i = 0; i < 2 * threads; ++i) sum += numbers[pair * 2 * threads + i];
        for (int i = 0; i < 2 * threads; ++i) {
            if (results[pair * 2 * threads + i] == sum) continue;
            std::printf("sum of pair %d: %g, not %g\n", pair, results[pair * 2 * threads + i], sum);
            return 1;
        }
    }
    std::printf("OK\n");
}
