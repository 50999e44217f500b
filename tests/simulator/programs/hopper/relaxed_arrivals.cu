// Right programs whose arrivals at the cluster's barrier, or at an mbarrier, are relaxed: a fence before them, and one
// behind a relaxed wait, hands over what there is. The first is how CUTLASS's kernels for Hopper start.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "../clusters/cluster.cuh"

constexpr unsigned kStages = 3, kTiles = 8, kWords = 256, kBlocks = 2;  // a tile of words, a half of it by each block

__device__ void fence_of_cluster() {
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
__device__ void arrive_relaxed_at(unsigned bar) {
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ void wait_relaxed(uint64_t *bar, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
            "p; }"
            : "=r"(done)
            : "r"(shared(bar)), "r"(parity)
            : "memory");
}

// A producer warp copies tiles into both blocks, consumers add them up and free each stage in both blocks.
__global__ void __launch_bounds__(160) pipeline(unsigned *out, const unsigned *in) {
    __shared__ alignas(128) unsigned tile[kStages][kWords];
    __shared__ alignas(8) uint64_t full[kStages], empty[kStages];
    const unsigned t = threadIdx.x, rank = rank_of_block();
    if (t == 0) {
        for (unsigned s = 0; s < kStages; ++s) {
            init(&full[s], 1);
            init(&empty[s], 4 * kBlocks);
        }
        fence_init();
    }
    cluster_arrive_relaxed();
    unsigned sum = 0;  // what needs no peer comes between the two
    cluster_wait();
    if (t >= 128) {
        for (unsigned k = 0; k < kTiles && t == 128; ++k) {
            const unsigned s = k % kStages, round = k / kStages;
            wait(&empty[s], round % 2 ^ 1);
            expect(&full[s], 4 * kWords);
            multicast(&tile[s][rank * kWords / 2], in + k * kWords + rank * kWords / 2, 2 * kWords, &full[s], 3);
        }
        for (unsigned k = kTiles; k < kTiles + kStages && t == 128; ++k)  // a peer's arrivals come before the exit
            wait(&empty[k % kStages], k / kStages % 2 ^ 1);
        return;
    }
    for (unsigned k = 0; k < kTiles; ++k) {
        const unsigned s = k % kStages;
        wait(&full[s], k / kStages % 2);
        sum += tile[s][t] + tile[s][t + 128];
        __syncwarp();
        if (t % 32 < kBlocks) arrive_at(mapa(&empty[s], t % 32));
    }
    out[blockIdx.x * 128 + t] = sum;
}

// Data of the peer behind fences and a relaxed barrier.
__global__ void exchange(unsigned *out) {
    __shared__ unsigned mine[128];
    const unsigned t = threadIdx.x, peer = rank_of_block() ^ 1;
    mine[t] = 1000 * blockIdx.x + t;
    __threadfence();
    cluster_arrive_relaxed();
    cluster_wait();
    const unsigned value = load(mapa(mine + t, peer));
    cluster_sync();
    mine[t] = value + 1;
    __syncthreads();
    if (t == 0) fence_of_cluster();  // for what the barrier ordered before it
    cluster_arrive_relaxed();
    cluster_wait();
    out[blockIdx.x * 128 + t] = load(mapa(mine + (127 - t), peer));
    cluster_sync();
}

// The same by an mbarrier, arrivals and waits both relaxed.
__global__ void exchange_by_mbarrier(unsigned *out) {
    __shared__ unsigned mine[128];
    __shared__ alignas(8) uint64_t bar;
    const unsigned t = threadIdx.x, peer = rank_of_block() ^ 1;
    if (t == 0) {
        init(&bar, 128);
        fence_of_cluster();
    }
    cluster_arrive_relaxed();
    cluster_wait();
    mine[t] = 1000 * blockIdx.x + t;
    fence_of_cluster();
    arrive_relaxed_at(mapa(&bar, peer));
    wait_relaxed(&bar, 0);
    fence_of_cluster();
    out[blockIdx.x * 128 + t] = load(mapa(mine + (t ^ 5), peer));
    cluster_sync();
}

int main() {
    unsigned *in, *out;
    cudaMallocManaged(&in, 4 * kTiles * kWords);
    cudaMallocManaged(&out, 4 * 128 * kBlocks);
    for (unsigned i = 0; i < kTiles * kWords; ++i) in[i] = i * 2654435761u >> 7;
    cudaLaunchConfig_t config{};
    config.gridDim = kBlocks;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {kBlocks, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    bool good = true;
    config.blockDim = 160;
    cudaLaunchKernelEx(&config, pipeline, out, (const unsigned *)in);
    good = good && cudaDeviceSynchronize() == cudaSuccess;
    for (unsigned i = 0; i < 128 * kBlocks; ++i) {
        unsigned sum = 0;
        for (unsigned k = 0; k < kTiles; ++k) sum += in[k * kWords + i % 128] + in[k * kWords + i % 128 + 128];
        good = good && out[i] == sum;
    }
    config.blockDim = 128;
    cudaLaunchKernelEx(&config, exchange, out);
    good = good && cudaDeviceSynchronize() == cudaSuccess;
    for (unsigned i = 0; i < 128 * kBlocks; ++i) good = good && out[i] == i / 128 * 1000 + (127 - i % 128) + 1;
    cudaLaunchKernelEx(&config, exchange_by_mbarrier, out);
    good = good && cudaDeviceSynchronize() == cudaSuccess;
    for (unsigned i = 0; i < 128 * kBlocks; ++i) good = good && out[i] == (1 - i / 128) * 1000 + (i % 128 ^ 5);
    std::printf(good ? "OK\n" : "wrong\n");
    return !good;
}
