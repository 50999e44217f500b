// What launches of clusters and questions about them answer. Prints OK.
#include <cuda_runtime.h>

#include <cstdio>

#include "../check.h"

namespace {

__global__ void free_size(unsigned *out) {
    unsigned count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
__global__ void __cluster_dims__(2, 1, 1) of_two(unsigned *out) {
    unsigned count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
__global__ void __launch_bounds__(64, 1, 4) at_most_four(unsigned *) {}

struct Launch {
    cudaLaunchConfig_t config{};
    cudaLaunchAttribute attribute{};
    Launch(dim3 grid, dim3 cluster) {
        config.gridDim = grid;
        config.blockDim = 64;
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
        config.attrs = &attribute;
        config.numAttrs = 1;
    }
    cudaError_t operator()(void (*kernel)(unsigned *), unsigned *out) {
        const cudaError_t error = cudaLaunchKernelEx(&config, kernel, out);
        cudaGetLastError();
        return error;
    }
};

#define EXPECT(what)                                   \
    if (!(what)) {                                     \
        std::printf("line %d: %s\n", __LINE__, #what); \
        return 1;                                      \
    }

bool all(unsigned *out, unsigned blocks, unsigned want) {
    unsigned v[64];
    CHECK(cudaMemcpy(v, out, blocks * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < blocks; ++i)
        if (v[i] != want) return false;
    return true;
}

}  // namespace

int main() {
    unsigned *out;
    CHECK(cudaMalloc(&out, 64 * sizeof(unsigned)));
    EXPECT(Launch(32, 8)(free_size, out) == cudaSuccess && all(out, 32, 8));
    EXPECT(Launch(32, 16)(free_size, out) == cudaErrorInvalidClusterSize);
    CHECK(cudaFuncSetAttribute(free_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    EXPECT(Launch(32, 16)(free_size, out) == cudaSuccess && all(out, 32, 16));
    EXPECT(Launch(34, 4)(free_size, out) != cudaSuccess);
    of_two<<<6, 64>>>(out);
    EXPECT(all(out, 6, 2));
    EXPECT(Launch(6, 2)(of_two, out) == cudaSuccess && all(out, 6, 2));
    EXPECT(Launch(6, 3)(of_two, out) != cudaSuccess);
    EXPECT(Launch(8, 4)(at_most_four, out) == cudaSuccess);
    EXPECT(Launch(8, 8)(at_most_four, out) != cudaSuccess);

    int count = 0, resident = 0, multiprocessors = 0;
    Launch two(32, 2);
    CHECK(cudaOccupancyMaxActiveClusters(&count, free_size, &two.config));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, free_size, int(two.config.blockDim.x), 0));
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(count >= multiprocessors / 2 * resident);
    Launch sixteen(32, 16);
    int fewer = 0;
    CHECK(cudaOccupancyMaxActiveClusters(&fewer, free_size, &sixteen.config));
    EXPECT(fewer >= 1 && fewer < count);
    CHECK(cudaOccupancyMaxPotentialClusterSize(&count, at_most_four, &two.config));
    EXPECT(count == 4);
    CHECK(cudaOccupancyMaxPotentialClusterSize(&count, free_size, &two.config));
    EXPECT(count == 16);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, of_two));
    EXPECT(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 1);
    CHECK(cudaDeviceSynchronize());
    std::printf("OK\n");
}
