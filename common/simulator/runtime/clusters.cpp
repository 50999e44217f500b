#include "runtime/clusters.h"

#include <algorithm>

#include "runtime/launch.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace warpsim::rt {
namespace {

constexpr unsigned kGpcs = 8;  // of GH100, with the product's multiprocessors as evenly over them as pairs allow

bool same(const dim3 &a, const dim3 &b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

// Blocks of the kernel that a multiprocessor holds.
unsigned resident_of(Runtime &runtime, const Program &program, const cudaLaunchConfig_t &config) {
    const uint64_t threads = uint64_t{config.blockDim.x} * config.blockDim.y * config.blockDim.z;
    const uint64_t shared = block_shared_bytes(program, config.dynamicSmemBytes);
    if (!threads || threads > program.max_threads || shared > runtime.profile.shared_per_block_optin) return 0;
    return resident_blocks(runtime.profile, unsigned(threads), model_registers(program, unsigned(threads)),
                           uint32_t(shared));
}

dim3 asked_in(const cudaLaunchConfig_t &config) {
    dim3 asked{0, 0, 0};
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        if (config.attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
        const auto &cluster = config.attrs[i].val.clusterDim;
        asked = {cluster.x, cluster.y, cluster.z};
    }
    return asked;
}

}  // namespace

std::string dimensions(const dim3 &d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

dim3 required_cluster(const Kernel &kernel, const Program &program) {
    const uint32_t *compiled = program.required_cluster;
    if (compiled[0]) return {compiled[0], compiled[1], compiled[2]};
    const int *set = kernel.required_cluster;
    if (!set[0] && !set[1] && !set[2]) return {0, 0, 0};
    return {unsigned(std::max(set[0], 1)), unsigned(std::max(set[1], 1)), unsigned(std::max(set[2], 1))};
}

bool requires_cluster(const Kernel &kernel, const Program &program) {
    return required_cluster(kernel, program).x || program.explicit_cluster;
}

std::optional<dim3> cluster_of_launch(const Profile &profile, const Kernel &kernel, const Program &program,
                                      const dim3 &grid, const dim3 &asked, std::string &why) {
    const dim3 required = required_cluster(kernel, program);
    if (asked.x && required.x && !same(asked, required)) {
        why = "clusters of " + dimensions(asked) + ": the kernel was made for " + dimensions(required);
        return {};
    }
    if (!asked.x && !required.x && program.explicit_cluster) {
        why =
            "the kernel (.explicitcluster) needs the size of its clusters: cudaLaunchKernelEx with "
            "cudaLaunchAttributeClusterDimension";
        return {};
    }
    const dim3 cluster = asked.x ? asked : required.x ? required : dim3{1, 1, 1};
    if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) {
        why = "the grid " + dimensions(grid) + " is no multiple of the cluster " + dimensions(cluster);
        return {};
    }
    const uint64_t blocks = uint64_t{cluster.x} * cluster.y * cluster.z;
    const unsigned limit = kernel.non_portable_cluster ? kMostClusterBlocks : kPortableClusterBlocks;
    if (blocks > limit) {
        why = "a cluster of " + std::to_string(blocks) + " blocks: " + std::to_string(limit) + " are possible" +
              (kernel.non_portable_cluster
                   ? ""
                   : ", 16 with cudaFuncSetAttribute(..., cudaFuncAttributeNonPortableClusterSizeAllowed, 1)");
        return {};
    }
    if (program.max_cluster_rank && blocks > program.max_cluster_rank) {
        why = "a cluster of " + std::to_string(blocks) + " blocks: the kernel was compiled for at most " +
              std::to_string(program.max_cluster_rank) + " (__launch_bounds__, .maxclusterrank)";
        return {};
    }
    if (blocks > 1 && profile.compute < 90) {
        why = std::string("clusters: they need compute capability 9.0, and ") + profile.name + " has less";
        return {};
    }
    return cluster;
}

unsigned clusters_on_device(const Profile &profile, unsigned size, unsigned resident) {
    const unsigned pairs = profile.multiprocessors / 2;
    unsigned clusters = 0;
    for (unsigned gpc = 0; gpc < kGpcs; ++gpc) {
        const unsigned multiprocessors = 2 * (pairs / kGpcs + (gpc < pairs % kGpcs));
        clusters += multiprocessors * resident / size;
    }
    return clusters;
}

}  // namespace warpsim::rt

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config) {
    return api([&](Runtime &runtime) {
        if (!clusters || !config || (config->numAttrs && !config->attrs)) return cudaErrorInvalidValue;
        const Kernel &kernel = *runtime.modules.find_kernel(function);
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        std::string why;
        const auto cluster =
            cluster_of_launch(runtime.profile, kernel, program, config->gridDim, asked_in(*config), why);
        if (!cluster) {
            say("cudaOccupancyMaxActiveClusters: " + kernel.display_name + ": " + why);
            return cudaErrorInvalidClusterSize;
        }
        *clusters = int(clusters_on_device(runtime.profile, cluster->x * cluster->y * cluster->z,
                                           resident_of(runtime, program, *config)));
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const cudaLaunchConfig_t *config) {
    return api([&](Runtime &runtime) {
        if (!size || !config) return cudaErrorInvalidValue;
        const Kernel &kernel = *runtime.modules.find_kernel(function);
        const Program &program = runtime.modules.program(*runtime.modules.find_kernel(function));
        const unsigned resident = resident_of(runtime, program, *config);
        unsigned blocks = kernel.non_portable_cluster ? kMostClusterBlocks : kPortableClusterBlocks;
        if (program.max_cluster_rank) blocks = std::min(blocks, program.max_cluster_rank);
        if (const dim3 required = required_cluster(kernel, program); required.x)
            blocks = std::min(blocks, required.x * required.y * required.z);
        if (runtime.profile.compute < 90) blocks = 1;
        while (blocks > 1 && !clusters_on_device(runtime.profile, blocks, resident)) --blocks;
        *size = resident ? int(blocks) : 0;
        return cudaSuccess;
    });
}
