// Launches by stub or handle, and questions about kernels.
#include <algorithm>
#include <climits>

#include "runtime/launch.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

// Room for `blocks` blocks of `threads` threads leaves each this much dynamic shared memory; -1: it does not fit.
int64_t shared_left(const Profile &profile, const Program &program, int blocks, int threads) {
    const auto fits = [&](int64_t dynamic) {
        const uint64_t total = block_shared_bytes(program, static_cast<uint64_t>(dynamic));
        return total <= profile.shared_per_block_optin &&
               resident_blocks(profile, static_cast<unsigned>(threads),
                               model_registers(program, static_cast<unsigned>(threads)),
                               static_cast<uint32_t>(total)) >= static_cast<unsigned>(blocks);
    };
    if (!fits(0)) return -1;
    int64_t low = 0, high = profile.shared_per_block_optin;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (fits(middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

cudaError_t occupancy(int *blocks, const void *function, int threads, size_t shared) {
    return api([&](Runtime &runtime) {
        if (!blocks || threads <= 0) return cudaErrorInvalidValue;
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        const uint64_t total = block_shared_bytes(program, shared);
        const bool possible = static_cast<unsigned>(threads) <= program.max_threads && total <= UINT32_MAX;
        *blocks = possible ? static_cast<int>(resident_blocks(runtime.profile, static_cast<unsigned>(threads),
                                                              model_registers(program, static_cast<unsigned>(threads)),
                                                              static_cast<uint32_t>(total)))
                           : 0;
        return cudaSuccess;
    });
}

cudaError_t set_attribute(const void *function, cudaFuncAttribute attribute, int value) {
    return api([&](Runtime &runtime) {
        Kernel &kernel = *runtime.modules.find_kernel(function);
        switch (attribute) {
            case cudaFuncAttributeMaxDynamicSharedMemorySize: {
                const Program &program = runtime.modules.program(kernel);
                const int64_t most = int64_t{runtime.profile.shared_per_block_optin} - program.static_shared;
                if (value < 0 || value > most) {
                    say("cudaFuncSetAttribute: " + std::to_string(value) + " bytes of dynamic shared memory for " +
                        kernel.display_name + ": " + runtime.profile.name + " allows " + std::to_string(most));
                    return cudaErrorInvalidValue;
                }
                kernel.dynamic_shared_limit = value;
                return cudaSuccess;
            }
            case cudaFuncAttributePreferredSharedMemoryCarveout:
                if (value < -1 || value > 100) return cudaErrorInvalidValue;
                kernel.carveout = value;
                return cudaSuccess;
            case cudaFuncAttributeNonPortableClusterSizeAllowed:
                kernel.non_portable_cluster = value != 0;
                return cudaSuccess;
            case cudaFuncAttributeClusterSchedulingPolicyPreference:
                return cudaSuccess;
            case cudaFuncAttributeRequiredClusterWidth:
            case cudaFuncAttributeRequiredClusterHeight:
            case cudaFuncAttributeRequiredClusterDepth:
                if (value < 0 || value > int(kMostClusterBlocks)) return cudaErrorInvalidValue;
                if (runtime.modules.program(kernel).required_cluster[0]) return cudaErrorInvalidValue;  // compiled in
                kernel.required_cluster[attribute - cudaFuncAttributeRequiredClusterWidth] = value;
                return cudaSuccess;
            default:
                return cudaErrorInvalidValue;
        }
    });
}

}  // namespace

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    return launch_api({.grid = grid, .block = block, .shared = shared, .stream = stream}, function, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream) {
    return launch_api({.grid = grid, .block = block, .shared = shared, .stream = stream, .cooperative = true}, function,
                      arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
    if (!config || (config->numAttrs && !config->attrs)) return record(cudaErrorInvalidValue);
    LaunchRequest request{.grid = config->gridDim,
                          .block = config->blockDim,
                          .shared = config->dynamicSmemBytes,
                          .stream = config->stream};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute &attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeClusterDimension) {
            const auto &cluster = attribute.val.clusterDim;
            if (!cluster.x || !cluster.y || !cluster.z) return record(cudaErrorInvalidValue);
            request.cluster = {cluster.x, cluster.y, cluster.z};
        } else if (attribute.id == cudaLaunchAttributeCooperative) {
            request.cooperative = attribute.val.cooperative != 0;
        } else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
            request.overtakes = attribute.val.programmaticStreamSerializationAllowed != 0;
        }
        // The others (priorities, access policies) change when work runs, not what it does.
    }
    return launch_api(request, function, arguments);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    return api([&](Runtime &runtime) {
        if (!attributes) return cudaErrorInvalidValue;
        const Kernel &kernel = *runtime.modules.find_kernel(function);
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        *attributes = {};
        attributes->sharedSizeBytes = program.static_shared;
        attributes->localSizeBytes = program.local_bytes;
        attributes->maxThreadsPerBlock = static_cast<int>(std::min(program.max_threads, kThreadsPerBlock));
        attributes->numRegs = static_cast<int>(model_registers(program, program.max_threads));
        std::string digits;
        for (const char c : kernel.library->module->ast.target) {
            if (c >= '0' && c <= '9') digits += c;
        }
        attributes->ptxVersion = digits.empty() ? 0 : std::stoi(digits);
        attributes->binaryVersion = static_cast<int>(runtime.profile.compute);
        attributes->maxDynamicSharedSizeBytes = dynamic_shared_limit(kernel, program);
        attributes->preferredShmemCarveout = kernel.carveout;
        attributes->nonPortableClusterSizeAllowed = kernel.non_portable_cluster;
        attributes->clusterDimMustBeSet = program.explicit_cluster;
        const dim3 cluster = required_cluster(kernel, program);
        attributes->requiredClusterWidth = static_cast<int>(cluster.x);
        attributes->requiredClusterHeight = static_cast<int>(cluster.y);
        attributes->requiredClusterDepth = static_cast<int>(cluster.z);
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    return set_attribute(function, attribute, value);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    const Runtime *runtime = Runtime::get();
    if (!runtime || !runtime->devices->has(device)) return record(cudaErrorInvalidDevice);
    const unsigned before = current_device();
    this_thread().device = static_cast<unsigned>(device);
    const cudaError_t code = set_attribute(kernel, attribute, value);
    this_thread().device = before;
    return code;
}

cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache) {
    return api([&](Runtime &runtime) {
        runtime.modules.find_kernel(function);
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig) {
    return api([&](Runtime &runtime) {
        runtime.modules.find_kernel(function);
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetName(const char **name, const void *function) {
    return api([&](Runtime &runtime) {
        if (!name) return cudaErrorInvalidValue;
        *name = runtime.modules.find_kernel(function)->name.c_str();
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
    return api([&](Runtime &runtime) {
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        if (!offset || index >= program.parameters.size()) return cudaErrorInvalidValue;
        *offset = program.parameters[index].offset;
        if (size) *size = program.parameters[index].bytes;
        return cudaSuccess;
    });
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    return api([&](Runtime &runtime) {
        if (!kernel) return cudaErrorInvalidValue;
        Kernel *const found = runtime.modules.find_kernel(function);
        *kernel = reinterpret_cast<cudaKernel_t>(found->first ? found->first : found);
        return cudaSuccess;
    });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
    return api([&](Runtime &runtime) {
        if (!function) return cudaErrorInvalidValue;
        *function = reinterpret_cast<cudaFunction_t>(runtime.modules.find_kernel(symbol));
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared) {
    return occupancy(blocks, function, threads, shared);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   size_t shared, unsigned flags) {
    if (flags & ~static_cast<unsigned>(cudaOccupancyDisableCachingOverride)) return record(cudaErrorInvalidValue);
    return occupancy(blocks, function, threads, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads) {
    return api([&](Runtime &runtime) {
        if (!bytes || blocks <= 0 || threads <= 0) return cudaErrorInvalidValue;
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        const int64_t left = shared_left(runtime.profile, program, blocks, threads);
        if (left < 0) return cudaErrorInvalidValue;
        *bytes = static_cast<size_t>(left);
        return cudaSuccess;
    });
}
