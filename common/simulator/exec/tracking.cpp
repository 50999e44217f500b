#include "exec/tracking.h"

#include <bit>

#include "definedness/rules.h"

namespace warpsim {
namespace {

// Tracked instructions between two looks at whether all registers are defined again.
constexpr uint32_t kPatience = 256;

const DataFlow &flow_of(const Warp &w, const Op &op) {
    return w.block->program->flows[op.index];
}

// Something beside registers depends on whether the op is executed.
bool has_effect(const Op &op, const DataFlow &flow) {
    return !flow.writes || op.flow == Flow::warp_sync || op.cls == OpClass::atomic || op.cls == OpClass::barrier ||
           op.cls == OpClass::control;
}

void distrust(Warp &w, const Op &op, const DataFlow &flow) {
    const Operands operands(w, flow);
    LaneOrigins origins{};
    for (unsigned lane = 0; lane < kLanes; ++lane)
        origins[lane] = w.block->definedness->origin(Definedness::Source::variable, w, op, lane, 0);
    for (unsigned i = 0; i < flow.writes; ++i) {
        w.undefined->undefine(operands.writes[i], w.exec);
        set_origins(*w.undefined, operands.writes[i], w.exec, origins);
    }
}

// The rule of an op for the lanes of w.exec.
void pass_undefined(Warp &w, const Op &op) {
    const DataFlow &flow = flow_of(w, op);
    if (!flow.rule) return;
    const uint32_t lanes = undefined_reads(w, flow) & w.exec;
    if (lanes) {
        flow.rule(w, op, flow, lanes);
    } else {
        passes_nothing(w, op, flow, lanes);
        if (flow.gives_carry) w.undefined->carry &= ~w.exec;
    }
    if ((op.cls == OpClass::load_global || op.cls == OpClass::load_generic) && w.block->definedness->distrusts_memory())
        distrust(w, op, flow);
}

}  // namespace

RegisterShadow &begin_tracking(WarpContext &w) {
    Frame &frame = *w.frame;
    const uint32_t bytes = frame.function->frame_bytes;
    if (!frame.shadow || frame.shadow->bytes() != bytes) frame.shadow = std::make_unique<RegisterShadow>(bytes);
    frame.tracked = true;
    frame.tracked_ops = 0;
    return *(w.undefined = frame.shadow.get());
}

void prepare_shadow(WarpContext &w, Frame &frame) {
    if (frame.tracked) frame.shadow->clear();  // what an earlier block left
    frame.tracked = false;
    if (!w.block->definedness) return;
    if (frame.function->unwritten.empty() && !w.block->definedness->distrusts_memory()) return;
    Frame *const current = w.frame;
    RegisterShadow *const undefined = w.undefined;
    w.frame = &frame;
    RegisterShadow &shadow = begin_tracking(w);
    for (const OperandSlot &slot : frame.function->unwritten) {
        shadow.undefine(slot, kAllLanes);
        set_origins(shadow, slot, kAllLanes, LaneOrigins{});
    }
    w.frame = current;
    w.undefined = undefined;
}

void run_tracked(WarpContext &w, const Op &op, uint32_t mask) {
    const DataFlow &flow = flow_of(w, op);
    uint32_t lanes = mask, doubtful = 0;
    const OperandSlot guard{op.guard, 0};
    if (op.guard != kNoSlot) {
        lanes &= w.predicate(op.guard) ^ op.guard_xor;
        doubtful = w.undefined->undefined(guard) & mask;
        if (doubtful && has_effect(op, flow)) {
            operand_matters(w, op, guard, doubtful, Use::guard);
            doubtful = 0;
        }
        if (lanes) ++w.stats[op.index].issued;
    }
    LaneOrigins origins;
    if (doubtful) std::copy_n(w.undefined->origins(op.guard), kLanes, origins.begin());
    if (lanes) {
        w.exec = lanes;
        pass_undefined(w, op);
        op.fn(w, op);
        w.exec = mask;
    }
    if (doubtful) {  // whether the lane has the old value or the new one
        const Operands operands(w, flow);
        for (unsigned i = 0; i < flow.writes; ++i) {
            w.undefined->undefine(operands.writes[i], doubtful);
            set_origins(*w.undefined, operands.writes[i], doubtful, origins);
        }
    }
    ++w.frame->tracked_ops;
}

void check_tracked(WarpContext &w, const Op &op, uint32_t mask) {
    const DataFlow &flow = flow_of(w, op);
    if (op.guard != kNoSlot && (op.flow == Flow::branch || has_effect(op, flow)))
        operand_matters(w, op, {op.guard, 0}, mask, op.flow == Flow::branch ? Use::branch : Use::guard);
    if (op.guard != kNoSlot) mask &= w.predicate(op.guard) ^ op.guard_xor;
    if (op.flow == Flow::indirect || op.flow == Flow::call || op.flow == Flow::block_sync ||
        op.flow == Flow::mbarrier_wait) {
        const Operands operands(w, flow);
        for (unsigned i = 0; i < flow.reads; ++i)
            operand_matters(w, op, operands.reads[i], mask,
                            op.flow == Flow::indirect || op.flow == Flow::call ? Use::branch : Use::barrier);
        for (unsigned i = 0; i < flow.writes; ++i) w.undefined->define(operands.writes[i], mask);
    }
    if (w.frame->tracked_ops < kPatience) return;
    w.frame->tracked_ops = 0;
    if (!w.undefined->all_defined() || w.block->definedness->distrusts_memory()) return;
    w.frame->tracked = false;
    w.undefined = nullptr;
}

}  // namespace warpsim
