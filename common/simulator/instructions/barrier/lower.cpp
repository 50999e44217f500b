// Block barriers and fences: rows, lowering, and the handlers of fences. Barriers: instructions/barrier/barrier.cpp.
#include "core/op_formats.h"
#include "hazard/global_shadow.h"
#include "hazard/shared_shadow.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/context.h"
#include "machine/core_ops.h"

namespace warpsim {

namespace {

void exec_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->fence(w, w.exec, false);
}

void exec_cluster_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->fence(w, w.exec, true);
}

void exec_device_fence(Warp &w, const Op &op) {
    show_stores(w);
    if (w.block->global_shadow) w.block->global_shadow->order().fence(w.agent, w.exec, op.extra & kSystemScope);
    exec_cluster_fence(w, op);
}

void exec_proxy_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->proxy_fence(w, w.exec, true);
}

void exec_mbarrier_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->proxy_fence(w, w.exec, false);
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// bar.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, {!}c; bar.red.op.pred p, a{, b}, {!}c; and barrier.*
void lower_barrier(Lowering &l, const Instruction &in) {
    BarrierForm form;
    form.aligned = in.opcode == "bar" || in.has("aligned");
    const bool red = in.has("red");
    if (red)
        form.kind = in.has("popc") ? BarrierKind::red_popc : in.has("and") ? BarrierKind::red_and : BarrierKind::red_or;
    else if (in.has("arrive"))
        form.kind = BarrierKind::arrive;
    const size_t first = red ? 1 : 0, last = in.operands.size() - (red ? 1 : 0);
    const Operand &name = in.operands[first];
    if (name.kind == Operand::Kind::integer && (name.integer < 0 || name.integer > 15))
        l.unsupported(in, "a barrier's number is 0 to 15, not " + std::to_string(name.integer));
    const uint32_t number = l.source(name, Type::u32);
    const uint32_t count = last - first == 2 ? l.source(in.operands[first + 1], Type::u32) : kNoSlot;
    const uint32_t value = red ? l.source(in.operands.back(), Type::pred) : kNoSlot;
    const uint32_t dst =
        red ? l.destination(in.operands[0], form.kind == BarrierKind::red_popc ? Type::u32 : Type::pred) : kNoSlot;
    Op &op = l.emit_row(in);
    op.a = number;
    op.b = count;
    op.c = value;
    op.dst = dst;
    op.extra = pack<uint32_t>(form);
}

// fence and membar: the scope says who sees of them.
void lower_fence(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    if (in.has("cluster")) op.fn = exec_cluster_fence;
    if (in.has("gpu") || in.has("gl") || in.has("sys")) op.fn = exec_device_fence;
    if (in.has("sys")) op.extra = kSystemScope;
}

constexpr InstructionRow kRows[] = {
    {"bar{.cta}.sync!", "a{, b}", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.arrive!", "a, b", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.red!.popc.u32", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"bar{.cta}.red!.{and,or}.pred", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.sync!{.aligned}", "a{, b}", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.arrive!{.aligned}", "a, b", OpClass::barrier, Flow::block_sync, exec_nothing, lower_barrier},
    {"barrier{.cta}.red!.popc{.aligned}.u32", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing,
     lower_barrier},
    {"barrier{.cta}.red!.{and,or}{.aligned}.pred", "d, a{, b}, p", OpClass::barrier, Flow::block_sync, exec_nothing,
     lower_barrier},
    {"membar.{cta,gl,sys}", "", OpClass::fence, Flow::straight, exec_fence, lower_fence},
    {"membar.proxy!.alias", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence{.sc,.acq_rel,.acquire,.release}.{cta,cluster,gpu,sys}", "", OpClass::fence, Flow::straight, exec_fence,
     lower_fence},
    {"fence.acquire.sync_restrict::shared::cluster.cluster", "", OpClass::fence, Flow::straight, exec_fence,
     lower_plain},
    {"fence.release.sync_restrict::shared::cta.cluster", "", OpClass::fence, Flow::straight, exec_fence, lower_fence},
    {"fence.mbarrier_init!.release.cluster", "", OpClass::fence, Flow::straight, exec_mbarrier_fence, lower_plain},
    {"fence.proxy!.alias", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence.proxy!.async{.shared::cta,.shared::cluster}", "", OpClass::fence, Flow::straight, exec_proxy_fence,
     lower_plain},
    // Of global memory alone: what was written to shared memory is not behind it.
    {"fence.proxy!.async.global", "", OpClass::fence, Flow::straight, exec_fence, lower_plain},
    {"fence.proxy!.async::generic.acquire.sync_restrict::shared::cluster.cluster", "", OpClass::fence, Flow::straight,
     exec_proxy_fence, lower_plain},
    {"fence.proxy!.async::generic.release.sync_restrict::shared::cta.cluster", "", OpClass::fence, Flow::straight,
     exec_proxy_fence, lower_plain},
    {"fence.proxy!.tensormap::generic.release.{cta,cluster,gpu,sys}", "", OpClass::fence, Flow::straight, exec_fence,
     lower_plain},
};

}  // namespace

std::span<const InstructionRow> barrier_rows() {
    return kRows;
}

}  // namespace warpsim
