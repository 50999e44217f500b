// Correct kernels with mbarriers and bulk copies: rings of buffers between warps, states and parities, copies by
// cp.async that arrive, bulk stores and reductions. Prints OK.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "../check.h"

namespace {

__device__ unsigned shared(const void *p) {
    return unsigned(__cvta_generic_to_shared(p));
}
__device__ void init(uint64_t *bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(bar)), "r"(count) : "memory");
}
__device__ void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void fence_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ uint64_t arrive(uint64_t *bar) {
    uint64_t state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(shared(bar)) : "memory");
    return state;
}
__device__ uint64_t arrive_expect(uint64_t *bar, unsigned bytes) {
    uint64_t state;
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(state)
                 : "r"(shared(bar)), "r"(bytes)
                 : "memory");
    return state;
}
__device__ void wait(uint64_t *bar, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(shared(bar)), "r"(parity)
            : "memory");
}
__device__ bool test(uint64_t *bar, uint64_t state) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared(bar)), "l"(state)
                 : "memory");
    return done;
}
__device__ void load(void *to, const void *from, unsigned bytes, uint64_t *bar) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)),
        "l"(from), "r"(bytes), "r"(shared(bar))
        : "memory");
}
__device__ void store(void *to, const void *from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes)
                 : "memory");
}
__device__ void add(void *to, const void *from, unsigned bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to),
                 "r"(shared(from)), "r"(bytes)
                 : "memory");
}
__device__ void commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

constexpr unsigned kTile = 128, kStages = 3, kBytes = kTile * sizeof(unsigned);

// Warp 0 fills a ring; warps 1 to 4 take a tile each in turn, all together. out: [blocks][kTile].
__global__ void ring(unsigned *out, const unsigned *in, unsigned tiles) {
    __shared__ alignas(128) unsigned buffer[kStages][kTile];
    __shared__ uint64_t full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < kStages; ++s) {
            init(&full[s], 1);
            init(&empty[s], kTile);
        }
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            for (unsigned i = 0; i < tiles; ++i) {
                const unsigned s = i % kStages;
                wait(&empty[s], (i / kStages & 1) ^ 1);
                arrive_expect(&full[s], kBytes);
                load(buffer[s], in + i * kTile, kBytes / 2, &full[s]);
                load(buffer[s] + kTile / 2, in + i * kTile + kTile / 2, kBytes / 2, &full[s]);
            }
        }
    } else {
        unsigned sum = 0;
        for (unsigned i = 0; i < tiles; ++i) {
            const unsigned s = i % kStages;
            wait(&full[s], i / kStages & 1);
            sum += buffer[s][kTile + 31 - threadIdx.x];
            arrive(&empty[s]);
        }
        out[blockIdx.x * kTile + threadIdx.x - 32] = sum;
    }
}

// cp.async by all threads, arrivals behind it; states instead of parities.
__global__ void copies(unsigned *out, const unsigned *in) {
    __shared__ alignas(16) unsigned buffer[2][kTile];
    __shared__ uint64_t bars[2];
    const unsigned t = threadIdx.x;
    if (t < 2) init(&bars[t], kTile);
    __syncthreads();
    for (unsigned i = 0; i < 2; ++i) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared(&buffer[i][t])), "l"(in + i * kTile + t)
                     : "memory");
        if (i == 0) {
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared(&bars[i])) : "memory");
        } else {
            asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared(&bars[i])) : "memory");
        }
    }
    wait(&bars[0], 0);
    unsigned sum = buffer[0][kTile - 1 - t];
    const uint64_t state = arrive(&bars[1]);
    while (!test(&bars[1], state)) {
    }
    sum += buffer[1][kTile - 1 - t];
    out[t] = sum;
}

// Threads that leave: half drop out in the first phase, the rest complete the second alone.
__global__ void leavers(unsigned *out) {
    __shared__ unsigned values[kTile];
    __shared__ uint64_t bar;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&bar, kTile);
    __syncthreads();
    values[t] = t;
    if (t % 2) {
        asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(shared(&bar)) : "memory");
        return;
    }
    uint64_t state = arrive(&bar);
    while (!test(&bar, state)) {
    }
    const unsigned neighbour = values[t + 1];
    values[t] = neighbour;
    state = arrive(&bar);
    while (!test(&bar, state)) {
    }
    out[t] = values[(t + 2) % kTile];
    out[t + 1] = 0;
}

// Two buffers go out by bulk stores, each filled again when its store has read it; one sum by reductions of all blocks.
__global__ void stores(unsigned *out, unsigned *sums, const unsigned *in, unsigned tiles) {
    __shared__ alignas(128) unsigned buffer[2][kTile];
    const unsigned t = threadIdx.x, first = blockIdx.x * tiles;
    for (unsigned i = 0; i < tiles; ++i) {
        if (t == 0 && i >= 2) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        buffer[i % 2][t] = 3 * in[(first + i) * kTile + t];
        fence_proxy();
        __syncthreads();
        if (t == 0) {
            store(out + (first + i) * kTile, buffer[i % 2], kBytes);
            add(sums, buffer[i % 2], kBytes);
            commit();
        }
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    __syncthreads();
    if (out[first * kTile + t] != 3 * in[first * kTile + t]) out[first * kTile + t] = ~0u;
}

// A buffer used as numbers, as an mbarrier, and as numbers again.
__global__ void reused(unsigned *out) {
    __shared__ alignas(8) unsigned memory[2];
    uint64_t *bar = reinterpret_cast<uint64_t *>(memory);
    const unsigned t = threadIdx.x;
    if (t == 0) memory[1] = 7;
    __syncthreads();
    const unsigned before = memory[1];
    __syncthreads();
    if (t == 0) init(bar, blockDim.x);
    __syncthreads();
    arrive(bar);
    wait(bar, 0);
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared(bar)) : "memory");
        memory[0] = memory[1] = before + 1;
    }
    __syncthreads();
    out[t] = memory[t % 2];
}

int failures = 0;
void expect(bool right, const char *what) {
    if (!right) std::printf("wrong: %s\n", what), ++failures;
}

}  // namespace

int main() {
    constexpr unsigned tiles = 8;
    std::vector<unsigned> in(tiles * kTile), got(tiles * kTile), sums(kTile);
    for (unsigned i = 0; i < in.size(); ++i) in[i] = i * 7 + i / 5;
    unsigned *d_in, *d_out, *d_sums;
    const size_t bytes = in.size() * sizeof(unsigned);
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    CHECK(cudaMalloc(&d_sums, kBytes));
    CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_sums, 0, kBytes));
    const auto fetch = [&] { CHECK(cudaMemcpy(got.data(), d_out, bytes, cudaMemcpyDeviceToHost)); };

    ring<<<2, 32 + kTile>>>(d_out, d_in, tiles);
    fetch();
    for (unsigned t = 0; t < kTile; ++t) {
        unsigned sum = 0;
        for (unsigned i = 0; i < tiles; ++i) sum += in[i * kTile + kTile - 1 - t];
        expect(got[t] == sum && got[kTile + t] == sum, "ring");
    }
    copies<<<1, kTile>>>(d_out, d_in);
    fetch();
    for (unsigned t = 0; t < kTile; ++t) expect(got[t] == in[kTile - 1 - t] + in[2 * kTile - 1 - t], "copies");
    leavers<<<1, kTile>>>(d_out);
    fetch();
    for (unsigned t = 0; t < kTile; t += 2) expect(got[t] == (t + 2) % kTile + 1, "leavers");
    stores<<<2, kTile>>>(d_out, d_sums, d_in, tiles / 2);
    fetch();
    for (unsigned i = 0; i < got.size(); ++i) expect(got[i] == 3 * in[i], "stores");
    CHECK(cudaMemcpy(sums.data(), d_sums, kBytes, cudaMemcpyDeviceToHost));
    for (unsigned t = 0; t < kTile; ++t) {
        unsigned sum = 0;
        for (unsigned i = 0; i < tiles; ++i) sum += 3 * in[i * kTile + t];
        expect(sums[t] == sum, "sums");
    }
    reused<<<1, 64>>>(d_out);
    fetch();
    for (unsigned t = 0; t < 64; ++t) expect(got[t] == 8, "reused");
    CHECK(cudaDeviceSynchronize());
    if (!failures) std::puts("OK");
    return failures != 0;
}
