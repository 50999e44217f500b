// alloca, stacksave, stackrestore: the stack in local memory, behind the variables of the function's frame.
#include <algorithm>
#include <bit>

#include "core/round_up.h"
#include "instructions/rows.h"
#include "lower/function_lowering.h"
#include "machine/context.h"

namespace warpsim {

namespace {

template <class F>
void for_each_lane(uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(__builtin_ctz(lanes)));
}

[[noreturn]] void overflow(Warp &w, const Op &op, unsigned lane, uint64_t bytes, uint64_t taken) {
    report_hazard(w, op, HazardKind::illegal_instruction, int(lane), 0,
                  "stack overflow: alloca of " + std::to_string(bytes) + " bytes, where " + std::to_string(taken) +
                      " of the " + std::to_string(w.local_bytes) +
                      " bytes of local memory that a thread has are in use (cudaLimitStackSize sets them)");
    throw LaunchAborted{};
}

// dst: address in local memory, a: size, b: the moving frame_base, imm: alignment.
template <class T>
void exec_alloca(Warp &w, const Op &op) {
    const uint64_t own = variable_bytes(*context_of(w).frame);
    uint64_t *top = w.lanes<uint64_t>(op.b);
    for_each_lane(w.exec, [&](unsigned lane) {
        const uint64_t bytes = w.lanes<T>(op.a)[lane];
        const uint64_t start = round_up(top[lane] + own, uint64_t(op.imm));
        if (start > w.local_bytes || bytes > w.local_bytes - start) overflow(w, op, lane, bytes, top[lane] + own);
        if (w.undefined_local) w.undefined_local->undefine(lane * w.local_bytes + start, bytes);
        top[lane] = start + bytes - own;
        w.lanes<T>(op.dst)[lane] = T(start);
    });
}

// dst: the address behind all that alloca has taken, b: the moving frame_base.
template <class T>
void exec_stack_save(Warp &w, const Op &op) {
    const uint64_t own = variable_bytes(*context_of(w).frame);
    const uint64_t *top = w.lanes<uint64_t>(op.b);
    write_lanes<T>(w, op.dst, [=](unsigned lane) { return T(top[lane] + own); });
}

// a: what stacksave gave, b: the moving frame_base.
template <class T>
void exec_stack_restore(Warp &w, const Op &op) {
    const Frame &frame = *context_of(w).frame;
    const uint64_t own = variable_bytes(frame);
    for_each_lane(w.exec, [&](unsigned lane) {
        const uint64_t end = w.lanes<T>(op.a)[lane];
        uint64_t &top = w.lanes<uint64_t>(op.b)[lane];
        if (end < frame.local_base + own || end > top + own) {
            report_hazard(
                w, op, HazardKind::invalid_argument, int(lane), end,
                "stackrestore to " + std::to_string(end) + ", which no stacksave of this function has given since");
            return;
        }
        top = end - own;
    });
}

using ptx::Instruction;
using ptx::Type;

constexpr int64_t kDefaultAlignment = 8;

Type type_of(const Instruction &in) {
    return ptx::type_from_name(in.modifiers.back());
}

uint32_t stack_top(Lowering &l) {
    return static_cast<FunctionLowering &>(l).stack_top();
}

// alloca.type ptr, size{, alignment}
void lower_alloca(Lowering &l, const Instruction &in) {
    const int64_t alignment = in.operands.size() > 2 ? in.operands[2].integer : kDefaultAlignment;
    if (alignment <= 0 || !std::has_single_bit(uint64_t(alignment)) || alignment > (1 << 23))
        l.unsupported(in, "the alignment is a power of two up to 2^23");
    const Type type = type_of(in);
    const uint32_t size = l.source(in.operands[1], type), dst = l.destination(in.operands[0], type);
    Op &op = l.emit_row(in, type == Type::u64 ? exec_alloca<uint64_t> : exec_alloca<uint32_t>);
    op.dst = dst;
    op.a = size;
    op.b = stack_top(l);
    op.imm = alignment;
}

// stacksave.type d
void lower_stack_save(Lowering &l, const Instruction &in) {
    const uint32_t dst = l.destination(in.operands[0], type_of(in));
    Op &op = l.emit_row(in, type_of(in) == Type::u64 ? exec_stack_save<uint64_t> : exec_stack_save<uint32_t>);
    op.dst = dst;
    op.b = stack_top(l);
}

// stackrestore.type a
void lower_stack_restore(Lowering &l, const Instruction &in) {
    const uint32_t saved = l.source(in.operands[0], type_of(in));
    Op &op = l.emit_row(in, type_of(in) == Type::u64 ? exec_stack_restore<uint64_t> : exec_stack_restore<uint32_t>);
    op.a = saved;
    op.b = stack_top(l);
}

constexpr InstructionRow kRows[] = {
    // The stack in local memory.
    {"alloca.{u32,u64}", "d, a{, i}", OpClass::other, Flow::straight, nullptr, lower_alloca},
    {"stacksave.{u32,u64}", "d", OpClass::other, Flow::straight, nullptr, lower_stack_save},
    {"stackrestore.{u32,u64}", "a", OpClass::other, Flow::straight, nullptr, lower_stack_restore},
};

}  // namespace

std::span<const InstructionRow> stack_rows() {
    return kRows;
}

}  // namespace warpsim
