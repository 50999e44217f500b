// One documented function per PTX instruction that the stages of the backward pass use besides those in ptx.cuh and
// ptx_hopper.cuh.
#pragma once

#include "ptx_hopper.cuh"

namespace ptx {

// stmatrix.x4.trans: as stmatrix_x4, each 8x8 matrix transposed on the way: matrix[i] of lane l holds elements
// (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4) of the matrix as it lies in shared memory.
__device__ inline void stmatrix_x4_trans(uint32_t row_address, const uint32_t (&matrix)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
                 "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

// movmatrix.trans: transposes an 8x8 matrix of 16-bit numbers. Lane l holds elements (l / 4, 2 (l % 4)) and
// (l / 4, 2 (l % 4) + 1), before and after.
__device__ inline uint32_t transpose(uint32_t pair) {
    uint32_t transposed;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(pair));
    return transposed;
}

// cp.async.bulk: one thread starts the copy of `bytes` bytes, a multiple of 16, from global to shared memory. They
// count at the barrier as those of a TMA load do.
__device__ inline void bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// cp.async.bulk.prefetch.tensor: has a box of the tensor, described as for tma_load, brought into L2. Nothing waits for
// it.
__device__ inline void tma_prefetch(const CUtensorMap *map, int c0, int c1, int c2, int c3, int c4) {
    asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];" ::"l"(map), "r"(c0),
                 "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

// ld.shared.v2.f32: two numbers from an address in shared memory, a multiple of 8 bytes. The compiler leaves loads in
// their order: with few registers it would else do one and its arithmetic before the next.
__device__ inline float2 load_shared(uint32_t address) {
    float2 two;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(two.x), "=f"(two.y) : "r"(address) : "memory");
    return two;
}

// red.global.add.v4.f32: adds four numbers to those at `sums`, a multiple of 16 bytes, in L2. The thread does not wait.
__device__ inline void reduce_add(float4 *sums, float x0, float x1, float x2, float x3) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums), "f"(x0), "f"(x1), "f"(x2), "f"(x3)
                 : "memory");
}

// ld.relaxed.gpu: reads a number that other blocks change meanwhile, from L2.
__device__ inline int load_relaxed(const int *address) {
    int x;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(address) : "memory");
    return x;
}

// ld.acquire.gpu: the same, and the thread sees from here on what was written before the number was, by whoever told
// it so with a release. It empties the L1 cache.
__device__ inline int load_acquire(const int *address) {
    int x;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(address) : "memory");
    return x;
}

// red.release.gpu.add: adds to a number once all that this thread has written, and has seen others of its block tell
// it, is visible to all blocks.
__device__ inline void add_release(int *address, int x) {
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(address), "r"(x) : "memory");
}

// fence.proxy.async for all memory: what this thread sees of global memory bulk copies see as well.
__device__ inline void fence_proxy_async_all() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

// mov %tid.x: the thread's number within its block. Other than threadIdx.x, it is read where this stands: it takes no
// register through the loop before.
__device__ inline int thread_number() {
    int x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

// No instruction: the same number, of which the compiler no longer knows where it comes from. Sums with it stay where
// they are used, instead of taking registers through the whole loop.
__device__ inline uint64_t opaque(uint64_t x) {
    asm volatile("" : "+l"(x));
    return x;
}

}  // namespace ptx
