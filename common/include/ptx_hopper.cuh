// One documented function per PTX instruction of Hopper's that the stages from 14 on use: mbarriers, TMA, wgmma, and
// what goes with them. wgmma itself, a long line for each shape, is in wgmma.cuh, which make_wgmma.py writes.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "ptx.cuh"

namespace ptx {

// ---- mbarrier ----
// A barrier in shared memory, 8 bytes that nothing but these functions may touch. A phase of it is complete when as
// many arrivals as it was initialised for have come, and as many bytes as were announced; then the next phase begins by
// itself.

// mbarrier.init: `arrivals` complete a phase. Others may use the barrier behind fence_mbarrier_init() and a
// __syncthreads().
__device__ inline void mbarrier_init(uint64_t *barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// fence.mbarrier_init: this thread's mbarrier_init() can be seen by TMA, which writes through another path than
// threads.
__device__ inline void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive: one arrival. What this thread has read and written before is done for those who wait for the phase.
__device__ inline void mbarrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// mbarrier.arrive.expect_tx: announces that `bytes` will come in this phase, and arrives.
__device__ inline void mbarrier_arrive_expect_tx(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

// mbarrier.try_wait.parity: waits until the phase of this parity is complete. Phases count from 0; asked for is the one
// under way or the one before it: 1 passes at once at a fresh barrier, as if the phase before the first were complete.
__device__ inline void mbarrier_wait(uint64_t *barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@!complete bra again;\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// ---- TMA ----

// cp.async.bulk.tensor: one thread asks for a box of the tensor that `map` describes, whose first element has these
// coordinates, innermost dimension first. It arrives at `shared`, a multiple of 1,024 bytes with the swizzle of 128,
// and its bytes at the barrier. Elements outside of the tensor are 0, and count as bytes.
__device__ inline void tma_load(void *shared, const CUtensorMap *map, uint64_t *barrier, int c0, int c1, int c2, int c3,
                                int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(shared)),
        "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

// ---- wgmma ----
// Asynchronous: it is issued, and goes on by itself. From the issue to the wait that covers it, its registers (the
// accumulators D, and A if it is in registers) may not be touched, and its tiles in shared memory not be written.

// A matrix in shared memory, as wgmma takes one: in rows of 128 bytes (or of 64) with their chunks of 16 swizzled, as
// TMA brings them. K-major (a row has 64 elements of k): stride_bytes from 8 rows to the next 8; leading_bytes does not
// count. MN-major (a row has 64 elements of m or n): stride_bytes from 8 rows, of k, to the next 8, leading_bytes from
// 64 elements of m or n to the next 64. A step in shared memory is added to the descriptor as bytes / 16.
__device__ inline uint64_t matrix_descriptor(const void *matrix, uint32_t leading_bytes, uint32_t stride_bytes,
                                             int row_bytes = 128) {
    const uint64_t swizzle = row_bytes == 128 ? 1 : 2;
    return (shared_address(matrix) & 0x3ffff) >> 4 | static_cast<uint64_t>(leading_bytes >> 4) << 16 |
           static_cast<uint64_t>(stride_bytes >> 4) << 32 | swizzle << 62;
}

// Tells the compiler that registers change here, behind its back: what is above stays above, what is below below.
__device__ inline void touch(float &x) {
    asm volatile("" : "+f"(x)::"memory");
}
__device__ inline void touch(uint32_t &x) {
    asm volatile("" : "+r"(x)::"memory");
}
template <typename Registers, int n>
__device__ void touch(Registers (&registers)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) touch(registers[i]);
}

// wgmma.fence: what this thread did to the registers given is done before the wgmma behind it begin. Needed before the
// first wgmma, and whenever the accumulators, or an A in registers, were touched by anything else.
template <typename... Registers>
__device__ void wgmma_fence(Registers &...registers) {
    (touch(registers), ...);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group: closes a batch: the warpgroup's wgmma since the last commit.
__device__ inline void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group N: waits until at most the N newest batches are still under way. The registers given may be touched
// from here on: name those of the batches that are complete.
template <int newest, typename... Registers>
__device__ void wgmma_wait(Registers &...registers) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(newest) : "memory");
    (touch(registers), ...);
}

// ---- bytes ----

// stmatrix.x4: four 8x8 matrices of 16-bit elements to shared memory, ldmatrix.x4 backwards: each lane gives the
// address of one row of 16 bytes, lanes 0-7 the rows of matrix 0, and so on; matrix[i] of lane l holds elements (l / 4,
// 2 (l % 4)) and (l / 4, 2 (l % 4) + 1) of matrix i.
__device__ inline void stmatrix_x4(uint32_t row_address, const uint32_t (&matrix)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address), "r"(matrix[0]),
                 "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

// fence.proxy.async: what this thread has written to shared memory can be seen by wgmma and TMA, which read through
// another path than threads, once they are told by a barrier.
__device__ inline void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// cvt.rn.satfinite.e4m3x2: four numbers rounded to e4m3, to the nearest, ties to even, x0 in the lowest byte. Above 448
// they become 448.
__device__ inline uint32_t pack_e4m3(float x0, float x1, float x2, float x3) {
    uint32_t bytes;
    asm("{\n"
        ".reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n"
        "}"
        : "=r"(bytes)
        : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
    return bytes;
}

// ---- named barriers ----
// A block has 16 barriers of whole warps; 0 is __syncthreads()'s.

// barrier.sync: waits until `threads` threads have come to barrier `id`, those that wait and those that only arrive.
__device__ inline void barrier_sync(int id, int threads) {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// barrier.arrive: comes to barrier `id` and goes on. What this warp has written before is seen by those who wait there.
__device__ inline void barrier_arrive(int id, int threads) {
    asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The same where `whether` holds, for all of a warp or for none of it: an instruction with a predicate, and no branch,
// behind which the compiler would begin anew with what it may put in which order.
__device__ inline void barrier_arrive_if(bool whether, int id, int threads) {
    asm volatile(
        "{\n\t"
        ".reg .pred whether;\n\t"
        "setp.ne.s32 whether, %0, 0;\n\t"
        "@whether barrier.cta.arrive.aligned %1, %2;\n\t"
        "}" ::"r"(int{whether}),
        "r"(id), "r"(threads)
        : "memory");
}

// ---- registers ----

// setmaxnreg.dec, .inc: this warpgroup has `registers` a thread from here on, a multiple of 8 from 24 to 256. What one
// gives back another may take: .inc waits until there are enough. All of its warps execute the same one.
template <int registers>
__device__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace ptx
