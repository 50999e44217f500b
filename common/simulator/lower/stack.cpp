// alloca, stacksave, stackrestore.
#include "exec/stack.h"

#include <bit>

#include "lower/families.h"
#include "lower/function_lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Type;

constexpr int64_t kDefaultAlignment = 8;

Type type_of(const Instruction &in) {
    return ptx::type_from_name(in.modifiers.back());
}

uint32_t stack_top(Lowering &l) {
    return static_cast<FunctionLowering &>(l).stack_top();
}

}  // namespace

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

}  // namespace warpsim
