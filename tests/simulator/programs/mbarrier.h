// mbarriers and bulk copies, an instruction in each macro, so that a line of a program is the line of its instruction.
#pragma once

// clang-format off
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
#define INIT(bar, count) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SHARED(bar)), "r"(count) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(SHARED(bar)) : "memory")
#define ARRIVE_TIMES(bar, n) asm volatile("mbarrier.arrive.shared.b64 _, [%0], %1;" ::"r"(SHARED(bar)), "r"(n) : "memory")
#define ARRIVE_EXPECT(bar, bytes) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(SHARED(bar)), "r"(bytes) : "memory")
#define WAIT(bar, parity) asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra AGAIN; }" ::"r"(SHARED(bar)), "r"(parity) : "memory")
#define LOAD(to, from, bytes, bar) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(SHARED(to)), "l"(from), "r"(bytes), "r"(SHARED(bar)) : "memory")
#define STORE(to, from, bytes) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(SHARED(from)), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT_GROUP() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define WAIT_GROUP_READ() asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
// clang-format on
