// Launches, cuLaunch*, and how many blocks and clusters fit: cuOccupancy*.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "driver/call.h"
#include "runtime/launch.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

// The attributes of a launch are the runtime's under other names.
static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
static_assert(int(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) == int(cudaLaunchAttributeClusterDimension));
static_assert(int(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) == int(cudaLaunchAttributeCooperative));

// A kernel's arguments as the runtime takes them: one pointer for each.
class Arguments {
  public:
    // Throws Refusal where neither or both ways of passing them are used, or the buffer is too short.
    Arguments(CUfunction function, void **parameters, void **extra) : pointers_(parameters) {
        want(!parameters || !extra);
        if (!extra) return;
        const auto [buffer, bytes] = buffer_of(extra);
        size_t offset = 0, size = 0;
        for (size_t i = 0; cudaFuncGetParamInfo(function, i, &offset, &size) == cudaSuccess; ++i) {
            want(offset <= bytes && size <= bytes - offset);
            collected_.push_back(buffer + offset);
        }
        pointers_ = reinterpret_cast<void **>(collected_.data());
    }

    void **pointers() { return pointers_; }

  private:
    static std::pair<std::byte *, size_t> buffer_of(void **extra) {
        std::byte *buffer = nullptr;
        const size_t *bytes = nullptr;
        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
                buffer = static_cast<std::byte *>(extra[1]);
            } else {
                want(*extra == CU_LAUNCH_PARAM_BUFFER_SIZE);
                bytes = static_cast<const size_t *>(extra[1]);
            }
        }
        want(buffer && bytes);
        return {buffer, *bytes};
    }

    void **pointers_;
    std::vector<std::byte *> collected_;
};

struct Dimensions {
    dim3 grid, block;
};

// Host stubs are the runtime's handles, and not the driver's.
void check_handle(CUfunction function) {
    check(rt::api([&](rt::Runtime &runtime) {
        const rt::Kernel *kernel = runtime.modules.find_kernel(function);
        if (kernel->first) kernel = kernel->first;  // whose handle programs have
        return kernel == reinterpret_cast<rt::Kernel *>(function) ? cudaSuccess : cudaErrorInvalidResourceHandle;
    }));
}

CUresult launch(CUfunction function, const Dimensions &dimensions, unsigned shared, CUstream stream, void **parameters,
                void **extra, bool cooperative, const char *name) {
    return call(
        [&] {
            check_handle(function);
            Arguments arguments(function, parameters, extra);
            return rt::launch_api({.grid = dimensions.grid,
                                   .block = dimensions.block,
                                   .shared = shared,
                                   .stream = stream,
                                   .cooperative = cooperative},
                                  function, arguments.pointers());
        },
        Needs::context, name);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
                        void **extra) {
    return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}}, shared, stream, parameters, extra,
                  false, __func__);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void **parameters) {
    return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}}, shared, stream, parameters,
                  nullptr, true, __func__);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    return call([&] {
        want(config);
        check_handle(function);
        Arguments arguments(function, parameters, extra);
        cudaLaunchConfig_t same{};
        same.gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ};
        same.blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ};
        same.dynamicSmemBytes = config->sharedMemBytes;
        same.stream = config->hStream;
        same.attrs = reinterpret_cast<cudaLaunchAttribute *>(config->attrs);
        same.numAttrs = config->numAttrs;
        return cudaLaunchKernelExC(&same, function, arguments.pointers());
    });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    return call([&] { return cudaLaunchHostFunc(stream, function, data); });
}

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
