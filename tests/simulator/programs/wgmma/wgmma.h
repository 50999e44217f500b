// wgmma and what goes with it, for the tests' kernels. Tiles lie without a swizzle: 8 x 16-byte core matrices.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// clang-format off
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define MMA(d, a, b, adds) asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(adds))
#define MMA_REGISTERS(d, a, b, adds) asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds))
#define INIT(bar, count) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SHARED(bar)), "r"(count) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(SHARED(bar)) : "memory")
#define ARRIVE_EXPECT(bar, bytes) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(SHARED(bar)), "r"(bytes) : "memory")
#define WAIT_PHASE(bar, parity) asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(SHARED(bar)), "r"(parity) : "memory")
#define LOAD(to, from, bytes, bar) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(SHARED(to)), "l"(from), "r"(bytes), "r"(SHARED(bar)) : "memory")
// clang-format on

constexpr unsigned kBytesA = 64 * 32, kBytesB = 8 * 32;

// Of a tile of 16 k: the next 16 bytes of k are 128 bytes on, the next 8 rows 256.
__device__ inline uint64_t describe(const void *tile) {
    return uint64_t((SHARED(tile) & 0x3ffff) >> 4) | uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32;
}
