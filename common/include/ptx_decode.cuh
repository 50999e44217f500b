// PTX instructions that decode stages use, one documented function each, as in ptx.cuh.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "ptx.cuh"

namespace ptx {

// movmatrix.trans: transposes an 8x8 matrix of 16-bit elements that lies across the warp's registers. Lane l gives
// elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1), and gets (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
__device__ inline uint32_t movmatrix_trans(uint32_t two) {
    uint32_t transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(two));
    return transposed;
}

// griddepcontrol.launch_dependents: from here on, and once all blocks of this launch have come here or have ended, the
// next launch of the stream may begin, if it was launched early (flash::launch_early()).
__device__ inline void let_next_launch_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// griddepcontrol.wait: waits until the launch before this one in the stream is over and all that it wrote is visible.
__device__ inline void wait_for_launch_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// prefetch.tensormap: has the tensor map brought into the cache, so that the first copy need not wait for it.
__device__ inline void prefetch_tensor_map(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// prefetch.global.L2: has the 128 bytes around `address` brought into L2. The thread does not wait.
__device__ inline void prefetch_L2(const void *address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

// tma_load of what is read only once: the hint has it leave L2 before all else. The number is the policy that
// createpolicy.fractional.L2::evict_first gives.
__device__ inline void tma_load_once(void *shared, const CUtensorMap *map, uint64_t *barrier, int c0, int c1, int c2,
                                     int c3, int c4) {
    constexpr uint64_t evict_first = 0x12f0000000000000;
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(shared_address(shared)),
        "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "l"(evict_first)
        : "memory");
}

// ld.acquire.gpu: reads a number that other blocks change meanwhile, and the thread sees from here on what they wrote
// before they changed it, with a release.
__device__ inline uint32_t load_acquire(const uint32_t *address) {
    uint32_t x;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(address) : "memory");
    return x;
}

// atom.add.acq_rel.gpu: adds to a number and returns what it was. All that this thread has written, and has seen others
// of its block write, is visible to the blocks that add later; and what blocks wrote that added earlier this thread
// sees from here on.
__device__ inline uint32_t add_acq_rel(uint32_t *address, uint32_t x) {
    uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(x) : "memory");
    return before;
}

}  // namespace ptx
