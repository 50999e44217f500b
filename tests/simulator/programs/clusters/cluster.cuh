// Instructions of clusters, one function for each.
#pragma once

#include <cstdint>

__device__ inline unsigned shared(const void *p) {
    return unsigned(__cvta_generic_to_shared(p));
}
__device__ inline unsigned rank_of_block() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline unsigned blocks_of_cluster() {
    unsigned count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}
// The address of `p` in the shared memory of another block.
__device__ inline unsigned mapa(const void *p, unsigned rank) {
    unsigned result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(shared(p)), "r"(rank));
    return result;
}
template <class T>
__device__ T *map_generic(T *p, unsigned rank) {
    uint64_t result;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(result) : "l"(p), "r"(rank));
    return reinterpret_cast<T *>(result);
}
__device__ inline unsigned rank_at(unsigned address) {
    unsigned rank;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(address));
    return rank;
}
__device__ inline unsigned rank_at(const void *p) {
    unsigned rank;
    asm volatile("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(p));
    return rank;
}

__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

__device__ inline unsigned load(unsigned address) {
    unsigned value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}
__device__ inline void store(unsigned address, unsigned value) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
__device__ inline unsigned add(unsigned address, unsigned value) {
    unsigned old;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(address), "r"(value) : "memory");
    return old;
}
__device__ inline void add_only(unsigned address, unsigned value) {
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ inline void init(uint64_t *bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(bar)), "r"(count) : "memory");
}
__device__ inline void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void fence_proxy() {
    asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ inline void arrive(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(bar)) : "memory");
}
__device__ inline void expect(uint64_t *bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(bar)), "r"(bytes) : "memory");
}
// At another block's mbarrier.
__device__ inline void arrive_at(unsigned bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ inline void expect_at(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}
__device__ inline void complete_at(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}
__device__ inline void wait(unsigned bar, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
            "p; }"
            : "=r"(done)
            : "r"(bar), "r"(parity)
            : "memory");
}
__device__ inline void wait(uint64_t *bar, unsigned parity) {
    wait(shared(bar), parity);
}
__device__ inline void store_async(unsigned address, unsigned value, unsigned bar) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(address), "r"(value),
                 "r"(bar)
                 : "memory");
}
__device__ inline void store_async(unsigned address, uint4 v, unsigned bar) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
        "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(bar)
        : "memory");
}
__device__ inline void add_async(unsigned address, unsigned value, unsigned bar) {
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(address),
        "r"(value), "r"(bar)
        : "memory");
}
__device__ inline void copy_to_peer(unsigned to, const void *from, unsigned bytes, unsigned bar) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "r"(shared(from)), "r"(bytes), "r"(bar)
        : "memory");
}
__device__ inline void add_to_peer(unsigned to, const void *from, unsigned bytes, unsigned bar) {
    asm volatile(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::
            "r"(to),
        "r"(shared(from)), "r"(bytes), "r"(bar)
        : "memory");
}
__device__ inline void copy_in(unsigned to, const void *from, unsigned bytes, unsigned bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}
__device__ inline void multicast(void *to, const void *from, unsigned bytes, uint64_t *bar, unsigned short blocks) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
        "%4;" ::"r"(shared(to)),
        "l"(from), "r"(bytes), "r"(shared(bar)), "h"(blocks)
        : "memory");
}
