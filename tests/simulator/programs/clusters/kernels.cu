// Correct kernels of clusters: ranks, the memory of other blocks by every kind of access, barriers, mbarriers of other
// blocks, asynchronous stores. Prints OK.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "../check.h"
#include "cluster.cuh"

namespace {

constexpr unsigned n = 128;

// Launches with clusters of `cluster` blocks.
template <class... A, class... B>
cudaError_t launch(void (*kernel)(A...), dim3 grid, dim3 block, dim3 cluster, B... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, A(arguments)...);
}

// Every special register of clusters, of each block.
__global__ void places(unsigned *out) {
    unsigned v[16];
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[0]));
    asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[1]));
    asm volatile("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(v[2]));
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(v[3]));
    asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(v[4]));
    asm volatile("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(v[5]));
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(v[6]));
    asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(v[7]));
    asm volatile("mov.u32 %0, %%clusterid.z;" : "=r"(v[8]));
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(v[9]));
    asm volatile("mov.u32 %0, %%nclusterid.y;" : "=r"(v[10]));
    asm volatile("mov.u32 %0, %%nclusterid.z;" : "=r"(v[11]));
    v[12] = rank_of_block();
    v[13] = blocks_of_cluster();
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(v[14]));
    v[15] = blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z;
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (unsigned i = 0; i < 16; ++i) out[16 * block + i] = v[i];
}

bool check_places(dim3 grid, dim3 c, bool with_clusters) {
    const unsigned blocks = grid.x * grid.y * grid.z;
    unsigned *out;
    CHECK(cudaMalloc(&out, blocks * 16 * sizeof(unsigned)));
    if (with_clusters) {
        CHECK(launch(places, grid, 1, c, out));
    } else {
        places<<<grid, 1>>>(out);
    }
    std::vector<unsigned> v(blocks * 16);
    CHECK(cudaMemcpy(v.data(), out, v.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(out));
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                const unsigned rank = x % c.x + c.x * (y % c.y + c.y * (z % c.z));
                const unsigned want[16] = {x % c.x,       y % c.y,
                                           z % c.z,       c.x,
                                           c.y,           c.z,
                                           x / c.x,       y / c.y,
                                           z / c.z,       grid.x / c.x,
                                           grid.y / c.y,  grid.z / c.z,
                                           rank,          c.x * c.y * c.z,
                                           with_clusters, x + 100 * y + 10000 * z};
                for (unsigned i = 0; i < 16; ++i)
                    if (v[16 * (x + grid.x * (y + grid.y * z)) + i] != want[i]) return false;
            }
    return true;
}

// Each block reads its right neighbour's memory, in both ways to name it, and says whose it was.
__global__ void neighbours(unsigned *out) {
    __shared__ unsigned mine[n];
    const unsigned t = threadIdx.x, rank = rank_of_block(), count = blocks_of_cluster(), next = (rank + 1) % count;
    mine[t] = 1000 * blockIdx.x + t;
    cluster_sync();
    const unsigned address = mapa(mine + (t + 1) % n, next);
    unsigned *const generic = map_generic(mine, next);
    const bool good =
        rank_at(address) == next && rank_at(generic) == next && rank_at(mine) == rank && rank_at(shared(mine)) == rank;
    out[blockIdx.x * n + t] = load(address) + generic[(t + 1) % n] + (good ? 0 : 1u << 30);
    cluster_sync();
}

// All blocks count in the first one's memory; the old values are all different.
__global__ void counted(unsigned *out) {
    __shared__ unsigned counter, seen[4 * n];
    const unsigned t = threadIdx.x, rank = rank_of_block();
    if (t == 0) counter = 0;
    for (unsigned i = t; i < 4 * n; i += n) seen[i] = 0;
    cluster_sync();
    const unsigned old = add(mapa(&counter, 0), 1);
    add_only(mapa(seen + old, 0), 1);
    atomicAdd(map_generic(&counter, 1 % blocks_of_cluster()), 0u);
    cluster_sync();
    if (rank == 0) {
        if (t == 0) out[gridDim.x * n + blockIdx.x] = counter;
        for (unsigned i = t; i < 4 * n; i += n) out[blockIdx.x * n + i] = seen[i];
    }
}

// Halves of the barrier, with work between them; the first arrival is relaxed: nothing is handed over by it.
__global__ void split_barrier(unsigned *out) {
    __shared__ unsigned box[2][n];
    const unsigned t = threadIdx.x, count = blocks_of_cluster(), next = (rank_of_block() + 1) % count;
    cluster_arrive_relaxed();
    unsigned sum = t;
    cluster_wait();
    for (unsigned round = 0; round < 4; ++round) {
        store(mapa(&box[round % 2][t], next), sum + round);
        cluster_arrive();
        sum += round;
        cluster_wait();
        sum += box[round % 2][n - 1 - t];
    }
    out[blockIdx.x * n + t] = sum;
    cluster_sync();
}

// A ring of buffers from each block to the next: remote arrivals say "full" and "empty".
__global__ void ring(unsigned *out) {
    __shared__ unsigned box[2][n];
    __shared__ uint64_t full[2], empty[2];
    const unsigned t = threadIdx.x, count = blocks_of_cluster(), rank = rank_of_block();
    const unsigned next = (rank + 1) % count, before = (rank + count - 1) % count;
    if (t == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            init(&full[i], 32);
            init(&empty[i], 32);
        }
        fence_init();
    }
    cluster_sync();
    unsigned sum = 0;
    if (t < 32) {  // sends to the next block
        for (unsigned k = 0; k < 8; ++k) {
            const unsigned stage = k % 2, parity = k / 2 % 2;
            wait(&empty[stage], parity ^ 1);
            for (unsigned i = t; i < n; i += 32) store(mapa(&box[stage][i], next), 100 * rank + 10 * k + i);
            arrive_at(mapa(&full[stage], next));
        }
    } else if (t < 64) {  // receives from the one before
        for (unsigned k = 0; k < 8; ++k) {
            const unsigned stage = k % 2, parity = k / 2 % 2;
            wait(&full[stage], parity);
            for (unsigned i = t - 32; i < n; i += 32) sum += box[stage][n - 1 - i];
            arrive_at(mapa(&empty[stage], before));
        }
        out[blockIdx.x * 32 + t - 32] = sum;
    }
    cluster_sync();
}

// st.async and red.async: bytes complete to the receiver's mbarrier.
__global__ void background(unsigned *out) {
    __shared__ alignas(16) unsigned box[4 * n];
    __shared__ unsigned sums[8];
    __shared__ uint64_t bar, summed;
    const unsigned t = threadIdx.x, count = blocks_of_cluster(), rank = rank_of_block(), next = (rank + 1) % count;
    if (t == 0) {
        init(&bar, 1);
        init(&summed, 1);
        fence_init();
        expect(&bar, sizeof box);
        expect(&summed, 4 * n * count);
    }
    if (t < 8) sums[t] = 5;
    cluster_sync();
    if (t % 2) {
        store_async(mapa(box + 4 * t, next), make_uint4(t, t + 1, t + 2, 100 * rank), mapa(&bar, next));
    } else {
        for (unsigned i = 0; i < 4; ++i) store_async(mapa(box + 4 * t + i, next), t + i + 7 * rank, mapa(&bar, next));
    }
    for (unsigned other = 0; other < count; ++other)
        add_async(mapa(sums + t % 8, other), t + rank, mapa(&summed, other));
    wait(&bar, 0);
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; ++i) sum += box[4 * (n - 1 - t) + i];
    wait(&summed, 0);
    out[blockIdx.x * n + t] = sum + 1000 * sums[t % 8];
    cluster_sync();
}

// The transactions of a peer's mbarrier by hand.
__global__ void by_hand(unsigned *out) {
    __shared__ uint64_t bar;
    __shared__ unsigned value;
    const unsigned t = threadIdx.x, next = (rank_of_block() + 1) % blocks_of_cluster();
    if (t == 0) {
        init(&bar, 2);
        fence_init();
    }
    cluster_sync();
    if (t == 0) {
        expect_at(mapa(&bar, next), 64);
        complete_at(mapa(&bar, next), 24);
    }
    if (t == 33) {
        store(mapa(&value, next), 77 + blockIdx.x);
        complete_at(mapa(&bar, next), 40);
        arrive_at(mapa(&bar, next));
    }
    wait(&bar, 0);
    out[blockIdx.x * 64 + t] = value;
    cluster_sync();
}

// Bulk copies: from global memory into a peer's memory, to all blocks at once, from one block to the next, and a sum.
__global__ void bulk(unsigned *out, const unsigned *in) {
    __shared__ alignas(128) unsigned mine[n], to_all[n], from_peer[n], sums[n], received[n];
    __shared__ uint64_t bar[4];
    const unsigned t = threadIdx.x, count = blocks_of_cluster(), rank = rank_of_block(), next = (rank + 1) % count;
    constexpr unsigned bytes = n * sizeof(unsigned);
    if (t == 0) {
        for (unsigned i = 0; i < 4; ++i) init(&bar[i], 1);
        fence_init();
        expect(&bar[0], bytes);
        expect(&bar[1], bytes);
        expect(&bar[2], bytes);
        expect(&bar[3], count * bytes);
    }
    mine[t] = 1000 * rank + t;
    sums[t] = 1;
    fence_proxy();
    cluster_sync();
    if (t == 0) {
        copy_in(mapa(received, next), in + rank * n, bytes, mapa(&bar[0], next));
        if (rank == count - 1) multicast(to_all, in + 64 * n, bytes, &bar[1], (1 << count) - 1);
        copy_to_peer(mapa(from_peer, next), mine, bytes, mapa(&bar[2], next));
        for (unsigned other = 0; other < count; ++other)
            add_to_peer(mapa(sums, other), mine, bytes, mapa(&bar[3], other));
    }
    for (unsigned i = 0; i < 4; ++i) wait(&bar[i], 0);
    const unsigned k = n - 1 - t;
    out[blockIdx.x * n + t] = received[k] + 3 * to_all[k] + 5 * from_peer[k] + 7 * sums[k];
    cluster_sync();
    mine[t] = 0;  // its readers have said that they are done
    cluster_sync();
}

// Blocks of a size known when the kernel was compiled; some warps leave early.
__global__ void __cluster_dims__(2, 2, 1) fixed(unsigned *out) {
    __shared__ unsigned mine;
    const unsigned t = threadIdx.x, rank = rank_of_block();
    if (t == 0) mine = rank * 10;
    if (t >= 64) return;
    cluster_sync();
    unsigned sum = 0;
    for (unsigned other = 0; other < blocks_of_cluster(); ++other) sum += load(mapa(&mine, other));
    cluster_sync();
    if (t == 0) out[blockIdx.x + gridDim.x * blockIdx.y] = sum + rank;
}

template <class F>
bool check(const unsigned *device, size_t count, F want) {
    std::vector<unsigned> v(count);
    CHECK(cudaMemcpy(v.data(), device, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; ++i) {
        if (v[i] != want(i)) {
            std::printf("[%zu] %u, not %u\n", i, v[i], unsigned(want(i)));
            return false;
        }
    }
    return true;
}

#define EXPECT(what)                                   \
    if (!(what)) {                                     \
        std::printf("line %d: %s\n", __LINE__, #what); \
        return 1;                                      \
    }

}  // namespace

int main() {
    unsigned *out;
    CHECK(cudaMalloc(&out, 1 << 20));
    EXPECT(check_places({6, 4, 2}, {2, 2, 2}, true));
    EXPECT(check_places({8, 3, 1}, {4, 1, 1}, true));
    EXPECT(check_places({5, 3, 2}, {1, 1, 1}, true));
    EXPECT(check_places({5, 3, 2}, {1, 1, 1}, false));

    for (const unsigned c : {1u, 2u, 4u, 8u}) {
        CHECK(launch(neighbours, 8, n, c, out));
        EXPECT(check(out, 8 * n, [=](size_t i) {
            const unsigned block = unsigned(i) / n, t = unsigned(i) % n, next = block / c * c + (block % c + 1) % c;
            return 2 * (1000 * next + (t + 1) % n);
        }));
    }
    CHECK(launch(counted, 8, n, 4, out));
    EXPECT(check(out, 8 * n, [](size_t) { return 1; }));
    CHECK(launch(split_barrier, 6, n, 3, out));
    std::vector<unsigned> sums(6 * n);
    for (unsigned b = 0; b < 6; ++b)
        for (unsigned t = 0; t < n; ++t) sums[b * n + t] = t;
    for (unsigned round = 0; round < 4; ++round) {
        const std::vector<unsigned> old = sums;
        for (unsigned b = 0; b < 6; ++b)
            for (unsigned t = 0; t < n; ++t)
                sums[b * n + t] += round + old[(b / 3 * 3 + (b % 3 + 2) % 3) * n + n - 1 - t] + round;
    }
    EXPECT(check(out, 6 * n, [&](size_t i) { return sums[i]; }));
    CHECK(launch(ring, 8, 96, 4, out));
    EXPECT(check(out, 8 * 32, [](size_t i) {
        const unsigned before = (unsigned(i) / 32 % 4 + 3) % 4, lane = unsigned(i) % 32;
        unsigned sum = 0;
        for (unsigned k = 0; k < 8; ++k)
            for (unsigned j = lane; j < n; j += 32) sum += 100 * before + 10 * k + (n - 1 - j);
        return sum;
    }));
    CHECK(launch(background, 6, n, 2, out));
    EXPECT(check(out, 6 * n, [](size_t i) {
        const unsigned rank = unsigned(i) / n % 2, other = 1 - rank, t = unsigned(i) % n, from = n - 1 - t;
        unsigned sum = 0;
        if (from % 2) {
            sum = 3 * from + 3 + 100 * other;
        } else {
            for (unsigned k = 0; k < 4; ++k) sum += from + k + 7 * other;
        }
        unsigned total = 5;
        for (unsigned of = 0; of < 2; ++of)
            for (unsigned k = t % 8; k < n; k += 8) total += k + of;
        return sum + 1000 * total;
    }));
    unsigned *in;
    CHECK(cudaMalloc(&in, 65 * n * sizeof(unsigned)));
    std::vector<unsigned> numbers(65 * n);
    for (unsigned i = 0; i < 65 * n; ++i) numbers[i] = i * 2654435761u >> 12;
    CHECK(cudaMemcpy(in, numbers.data(), numbers.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (const unsigned c : {1u, 2u, 4u}) {
        CHECK(launch(bulk, 8, n, c, out, in));
        EXPECT(check(out, 8 * n, [&](size_t i) {
            const unsigned rank = unsigned(i) / n % c, before = (rank + c - 1) % c, k = n - 1 - unsigned(i) % n;
            unsigned sum = 1;
            for (unsigned of = 0; of < c; ++of) sum += 1000 * of + k;
            return numbers[before * n + k] + 3 * numbers[64 * n + k] + 5 * (1000 * before + k) + 7 * sum;
        }));
    }
    CHECK(launch(by_hand, 4, 64, 2, out));
    EXPECT(check(out, 4 * 64, [](size_t i) { return 77 + (unsigned(i) / 64 ^ 1); }));
    fixed<<<dim3(4, 4), 96>>>(out);
    EXPECT(check(out, 16, [](size_t i) { return 60 + unsigned(i) % 2 + 2 * (unsigned(i) / 4 % 2); }));
    CHECK(launch(fixed, dim3(2, 2), 96, dim3(2, 2), out));
    EXPECT(check(out, 4, [](size_t i) { return 60 + unsigned(i); }));
    std::printf("OK\n");
}
