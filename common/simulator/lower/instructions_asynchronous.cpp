// Rows of the table of instructions: copies in the background and the mbarriers that they complete to.
#include "exec/async_copy.h"
#include "exec/bulk_cluster.h"
#include "exec/bulk_copy.h"
#include "exec/core_ops.h"
#include "exec/mbarrier.h"
#include "lower/families.h"
#include "lower/instructions.h"

namespace warpsim {
namespace {

#define SHARED ".shared,.shared::cta,.shared::cluster"
#define PREFETCH_SIZE "{.L2::64B,.L2::128B,.L2::256B}"
#define SHARED_CTA "{.shared,.shared::cta}"
#define BULK_TYPE ".{b32,b64,u32,u64,s32,s64,f32,f64}"
#define MBARRIER(SYNTAX, OPERANDS) \
    {"mbarrier." SYNTAX ".b64", OPERANDS, OpClass::mbarrier, Flow::straight, exec_mbarrier, lower_mbarrier}
// What waits for an mbarrier's phase may be put aside; the warp loop executes it (exec/mbarrier_wait.cpp).
#define MBARRIER_WAIT(SYNTAX, OPERANDS)                                         \
    {"mbarrier." SYNTAX "{.acquire,.relaxed}{.cta,.cluster}" SHARED_CTA ".b64", \
     OPERANDS,                                                                  \
     OpClass::mbarrier,                                                         \
     Flow::mbarrier_wait,                                                       \
     exec_nothing,                                                              \
     lower_mbarrier}

constexpr InstructionRow kRows[] = {
    {"cp.async!.{ca,cg}.{shared,shared::cta,shared::cluster}.global{.L2::cache_hint}" PREFETCH_SIZE,
     "[a], [b], i{, c}{, e}", OpClass::async_copy, Flow::straight, exec_async_copy, lower_cp_async},
    {"cp.async.commit_group!", "", OpClass::async_copy, Flow::straight, exec_async_commit, lower_plain},
    {"cp.async.wait_group!", "i", OpClass::async_copy, Flow::straight, exec_async_wait, lower_wait_group},
    {"cp.async.wait_all!", "", OpClass::async_copy, Flow::straight, exec_async_wait, lower_wait_group},
    {"cp.async.mbarrier.arrive!{.noinc}" SHARED_CTA ".b64", "[a]", OpClass::mbarrier, Flow::straight,
     exec_mbarrier_copies_arrive, lower_mbarrier_copies},
    {"cp.async.bulk!.{shared::cta,shared::cluster}.global.mbarrier::complete_tx::bytes{.L2::cache_hint}",
     "[a], [b], c, [e]{, f}", OpClass::bulk_copy, Flow::straight, exec_bulk_load, lower_bulk_copy},
    {"cp.async.bulk!.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}",
     "[a], [b], c, [e], f{, g}", OpClass::bulk_copy, Flow::straight, exec_bulk_multicast, lower_bulk_copy},
    {"cp.async.bulk!.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "[a], [b], c, [e]", OpClass::bulk_copy,
     Flow::straight, exec_bulk_to_peer, lower_bulk_to_peer},
    {"cp.async.bulk!.global.shared::cta.bulk_group{.L2::cache_hint}", "[a], [b], c{, e}", OpClass::bulk_copy,
     Flow::straight, exec_bulk_store, lower_bulk_copy},
    {"cp.async.bulk.prefetch!.L2.global{.L2::cache_hint}", "[a], b{, c}", OpClass::bulk_copy, Flow::straight,
     exec_bulk_prefetch, lower_bulk_copy},
    {"cp.async.bulk.commit_group!", "", OpClass::bulk_copy, Flow::straight, exec_bulk_commit, lower_plain},
    {"cp.async.bulk.wait_group!{.read}", "i", OpClass::bulk_copy, Flow::straight, exec_bulk_wait, lower_bulk_wait},
    {"cp.reduce.async.bulk!.global.shared::cta.bulk_group{.L2::cache_hint}.{add,min,max,inc,dec,and,or,xor}{.noftz}"
     ".{b32,b64,u32,u64,s32,s64,f16,bf16,f32,f64}",
     "[a], [b], c{, e}", OpClass::bulk_copy, Flow::ordered, exec_bulk_reduce, lower_bulk_copy},
    {"cp.reduce.async.bulk!.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,min,max,inc,dec,and,or,"
     "xor}" BULK_TYPE,
     "[a], [b], c, [e]", OpClass::bulk_copy, Flow::straight, exec_bulk_to_peer, lower_bulk_to_peer},
    MBARRIER("init!" SHARED_CTA, "[a], b"),
    MBARRIER("inval!" SHARED_CTA, "[a]"),
    MBARRIER("{arrive,arrive_drop}!{.release,.relaxed}{.cta,.cluster}{.shared,.shared::cta,.shared::cluster}",
             "d, [a]{, b}"),
    MBARRIER("{arrive,arrive_drop}.expect_tx!{.release,.relaxed}{.cta,.cluster}{" SHARED "}", "d, [a], b"),
    MBARRIER("{arrive,arrive_drop}.noComplete!{.release}{.cta}" SHARED_CTA, "d, [a], b"),
    MBARRIER("{expect_tx,complete_tx}!{.relaxed}{.cta,.cluster}{" SHARED "}", "[a], b"),
    MBARRIER_WAIT("test_wait!", "d, [a], b"),
    MBARRIER_WAIT("test_wait.parity!", "d, [a], b"),
    MBARRIER_WAIT("try_wait!", "d, [a], b{, c}"),
    MBARRIER_WAIT("try_wait.parity!", "d, [a], b{, c}"),
    {"mbarrier.pending_count!.b64", "d, a", OpClass::mbarrier, Flow::straight, exec_mbarrier_pending_count,
     lower_mbarrier_pending_count},
};

}  // namespace

std::span<const InstructionRow> asynchronous_rows() {
    return kRows;
}

}  // namespace warpsim
