// How many blocks and clusters fit: cuOccupancy*.
#include <algorithm>

#include "driver/call.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

// The largest product of blocks that fit and their threads, among multiples of a warp: the larger block wins a tie.
void best_block(int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit) {
    want(grid && block && limit >= 0);
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, function));
    int device = 0, multiprocessors = 0, warp = 0, best_threads = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    check(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device));
    const int allowed = limit ? std::min(limit, attributes.maxThreadsPerBlock) : attributes.maxThreadsPerBlock;
    *grid = *block = 0;
    for (int rounded = (allowed + warp - 1) / warp * warp; rounded > 0; rounded -= warp) {
        const int threads = std::min(allowed, rounded);
        int blocks = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads,
                                                            shared_of ? shared_of(threads) : shared));
        if (blocks * threads <= best_threads) continue;
        best_threads = blocks * threads;
        *block = threads;
        *grid = blocks * multiprocessors;
    }
}

cudaLaunchConfig_t same_config(const CUlaunchConfig &config) {
    cudaLaunchConfig_t same{};
    same.gridDim = {config.gridDimX, config.gridDimY, config.gridDimZ};
    same.blockDim = {config.blockDimX, config.blockDimY, config.blockDimZ};
    same.dynamicSmemBytes = config.sharedMemBytes;
    same.stream = config.hStream;
    same.attrs = reinterpret_cast<cudaLaunchAttribute *>(config.attrs);
    same.numAttrs = config.numAttrs;
    return same;
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared) {
    return call([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned flags) {
    return call([&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, flags);
    });
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit) {
    return call([&] {
        best_block(grid, block, function, shared_of, shared, limit);
        return CUDA_SUCCESS;
    });
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                   unsigned flags) {
    return call([&] {
        want(!(flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}));
        best_block(grid, block, function, shared_of, shared, limit);
        return CUDA_SUCCESS;
    });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks, int threads) {
    return call([&] { return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads); });
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const CUlaunchConfig *config) {
    return call([&] {
        want(config);
        const cudaLaunchConfig_t same = same_config(*config);
        return cudaOccupancyMaxPotentialClusterSize(size, function, &same);
    });
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config) {
    return call([&] {
        want(config);
        const cudaLaunchConfig_t same = same_config(*config);
        return cudaOccupancyMaxActiveClusters(clusters, function, &same);
    });
}
