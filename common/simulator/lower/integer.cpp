// lop3: its truth table is an operand.
#include "exec/lop3.h"
#include "lower/alu.h"
#include "lower/families.h"

namespace warpsim {

// lop3.b32 d, a, b, c, immLut: the truth table goes into imm.
void lower_lop3(Lowering &lowering, const ptx::Instruction &in) {
    emit_form(lowering, in, *find_form("lop3.b32", 3)).imm = in.operands[4].integer & 0xff;
}

// lop3.{or,and}.b32 d|p, a, b, c, immLut, q
void lower_lop3_predicate(Lowering &lowering, const ptx::Instruction &in) {
    using ptx::Type;
    if (!in.operands[0].has_pair) lowering.unsupported(in, "it needs a second destination, a predicate");
    uint32_t source[3];
    for (size_t i = 0; i < 3; ++i) source[i] = alu_source(lowering, in, in.operands[i + 1], Type::b32);
    const uint32_t q = alu_source(lowering, in, in.operands[5], Type::pred);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::b32);
    const uint32_t p = alu_destination(lowering, in, in.operands[0].elements[0], Type::pred);
    const uint32_t list = lowering.list({p, q});
    Op &op = lowering.emit_row(in);
    op.dst = dst;
    op.a = source[0];
    op.b = source[1];
    op.c = source[2];
    op.imm = in.operands[4].integer & 0xff;
    op.extra = in.has("and");
    op.list = list;
    op.list_count = 2;
}

}  // namespace warpsim
