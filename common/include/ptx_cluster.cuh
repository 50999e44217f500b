// One documented function per PTX instruction for blocks of a cluster. They run at the same time, on multiprocessors
// close to each other, and each reaches the others' shared memory: distributed shared memory.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "ptx.cuh"

namespace ptx {

// %cluster_ctarank: this block's number in its cluster.
__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// barrier.cluster: waits until all threads of the cluster have come here or have exited. A thread sees afterwards what
// the others have written before, in any of the blocks' shared memories.
__device__ inline void cluster_sync() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

// mapa: the address of the same place in the shared memory of block `rank` of the cluster.
__device__ inline uint32_t shared_address_in(const void *shared, uint32_t rank) {
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(shared)), "r"(rank));
    return address;
}

// mbarrier.arrive: one arrival at the barrier at the same place in block `rank`. It says that this thread's reads have
// ended. It does not hand over what the thread has written: that takes .release.cluster, which is slower.
__device__ inline void mbarrier_arrive_in(uint64_t *barrier, uint32_t rank) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(shared_address_in(barrier, rank)) : "memory");
}

// tma_load() with .multicast: the box arrives at the same place in each block whose bit in `blocks` is set, and its
// bytes count at the barrier at the same place in each of them.
__device__ inline void tma_load_multicast(void *shared, const CUtensorMap *map, uint64_t *barrier, uint16_t blocks,
                                          int c0, int c1, int c2, int c3, int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(shared_address(shared)),
        "l"(map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

// cp.async.bulk from shared memory to that of another block: one thread starts the copy of `bytes` bytes, a multiple of
// 16, to an address of shared_address_in(). They count at the other block's barrier, given in the same way. The threads
// that wrote the bytes have executed fence_proxy_async().
__device__ inline void bulk_copy_to(uint32_t to, const void *shared, uint32_t bytes, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "r"(shared_address(shared)), "r"(bytes), "r"(barrier)
        : "memory");
}

}  // namespace ptx
