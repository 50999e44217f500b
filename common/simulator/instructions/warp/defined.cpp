#include "instructions/warp/warp.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/op_formats.h"
#include "definedness/linear.h"
#include "machine/tracking.h"

namespace warpsim {
namespace {

unsigned brought_bytes(const Op &op) {
    return op.member == kNoSlot ? 0 : op.extra & kBringsMask;
}

OperandSlot brought_slot(const Op &op) {
    const unsigned bytes = brought_bytes(op);
    return {op.a, bytes == unsigned(Brings::predicate) ? 0 : bytes};
}

// Undefined bits of what the group's lanes brought, as in a slot.
const std::byte *brought_bits(Warp &w, const Op &op) {
    const std::byte *gathered = context_of(w).sync.undefined;
    return gathered ? gathered : w.undefined->bits() + op.a;
}

const uint32_t *brought_origins(Warp &w, const Op &op) {
    const uint32_t *gathered = context_of(w).sync.origins;
    return gathered ? gathered : w.undefined->origins(op.a);
}

// Members that brought something undefined.
uint32_t brought_undefined(Warp &w, const Op &op) {
    const OperandSlot slot{0, brought_slot(op).bytes};
    const std::byte *bits = brought_bits(w, op);
    uint32_t lanes = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        lanes |= uint32_t(RegisterShadow::get(bits, slot, lane) != 0) << lane;
    return lanes & context_of(w).sync.members;
}

// What the op would make of other values in place of those that were brought: its 32-bit results.
std::array<uint32_t, kLanes> run_with(Warp &w, const Op &op, const void *values) {
    SyncView &sync = context_of(w).sync;
    const std::byte *const real = sync.values;
    uint32_t *const dst = w.lanes<uint32_t>(op.dst);
    std::array<uint32_t, kLanes> before, result;
    std::copy_n(dst, kLanes, before.begin());
    sync.values = static_cast<const std::byte *>(values);
    op.fn(w, op);
    sync.values = real;
    std::copy_n(dst, kLanes, result.begin());
    std::copy_n(before.begin(), kLanes, dst);
    return result;
}

void write_all(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const Operands operands(w, flow);
    LaneOrigins origins;
    const unsigned first = unsigned(std::countr_zero(lanes));
    uint32_t origin = origin_id(brought_origins(w, op)[first]);
    if (origin == Definedness::kNoOrigin)
        origin = w.block->definedness->origin(Definedness::Source::variable, w, op, first, 0);
    origins.fill(origin);
    for (unsigned i = 0; i < flow.writes; ++i) {
        w.undefined->undefine(operands.writes[i], w.exec);
        set_origins(*w.undefined, operands.writes[i], w.exec, origins);
    }
}

}  // namespace

void pass_undefined_sync(WarpContext &w, const Op &op) {
    const DataFlow &flow = w.block->program->flows[op.index];
    const uint32_t brought = brought_bytes(op) ? brought_undefined(w, op) : 0;
    if (!w.undefined && !brought) return;
    if (!w.undefined) begin_tracking(w);
    const uint32_t lanes = brought | (undefined_reads(w, flow) & (w.exec | w.sync.members));
    lanes ? flow.rule(w, op, flow, lanes) : passes_nothing(w, op, flow, lanes);
}

void passes_shuffle(Warp &w, const Op &op, const DataFlow &flow, uint32_t) {
    for (uint32_t slot : {op.b, op.c}) operand_matters(w, op, {slot, 4}, w.exec, Use::lanes);
    alignas(64) uint32_t bits[kLanes], origins[kLanes];
    std::memcpy(bits, brought_bits(w, op), sizeof bits);
    std::memcpy(origins, brought_origins(w, op), sizeof origins);
    const auto moved = run_with(w, op, bits);
    const LaneOrigins from = run_with(w, op, origins);
    passes_nothing(w, op, flow, 0);
    const OperandSlot to{op.dst, 4};
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        RegisterShadow::put(w.undefined->bits(), to, lane, moved[lane]);
    }
    set_origins(*w.undefined, to, w.exec, from);
}

// A lane may read one that takes no part: reductions over a part of a warp do, and drop what they got.
void undefine_shuffled(Warp &w, const Op &op, uint32_t lanes, const uint32_t *from) {
    if (!w.block->definedness) return;
    if (!w.undefined) begin_tracking(context_of(w));
    w.undefined->undefine({op.dst, 4}, lanes);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        w.undefined->origins(op.dst)[lane] =
            w.block->definedness->origin(Definedness::Source::lane, w, op, lane, from[lane]);
    }
}

void passes_vote(Warp &w, const Op &op, const DataFlow &flow, uint32_t) {
    const SyncView &sync = context_of(w).sync;
    const uint32_t members = sync.members, unknown = brought_undefined(w, op);
    uint32_t values;
    std::memcpy(&values, sync.values ? sync.values : w.regs + op.a, sizeof values);
    const bool some = values & members & ~unknown, none = ~values & members & ~unknown;
    bool decided = !unknown;
    const Vote vote = Vote(op.extra >> kModeShift & 0xf);
    if (vote == Vote::all) decided = decided || none;
    if (vote == Vote::any) decided = decided || some;
    if (vote == Vote::uniform) decided = decided || (some && none);
    if (decided) return passes_nothing(w, op, flow, 0);
    write_all(w, op, flow, unknown);
    if (vote != Vote::ballot) return;
    for (uint32_t rest = w.exec; rest; rest &= rest - 1)
        RegisterShadow::put(w.undefined->bits(), {op.dst, 4}, unsigned(std::countr_zero(rest)), unknown);
}

void passes_group(Warp &w, const Op &op, const DataFlow &flow, uint32_t) {
    const uint32_t unknown = brought_undefined(w, op);
    unknown ? write_all(w, op, flow, unknown) : passes_nothing(w, op, flow, 0);
}

}  // namespace warpsim
