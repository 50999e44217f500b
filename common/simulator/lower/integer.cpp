// Integer arithmetic and bit operations; "opcode.int" for opcodes that floats have, too.
#include "lower/alu.h"

namespace warpsim {
namespace {

// lop3.b32 d, a, b, c, immLut: the truth table goes into imm.
void lower_lop3(Lowering &lowering, const ptx::Instruction &in) {
    expect_operands(lowering, in, 5);
    const AluForm *form = find_form(in.text(), 3);
    const ptx::Operand &table = in.operands[4];
    if (!form || table.kind != ptx::Operand::Kind::integer) lowering.unsupported(in);
    emit_form(lowering, in, *form).imm = table.integer & 0xff;
}

}  // namespace

void register_integer(FamilyTable &table) {
    for (const char *shared : {"add", "sub", "mul", "mad", "div", "abs", "neg", "min", "max"})
        table[std::string(shared) + ".int"] = &lower_by_text;
    for (const char *opcode :
         {"mul24", "mad24", "sad", "rem", "addc", "subc", "madc",  "dp4a", "dp2a", "and", "or",  "xor",   "not",
          "cnot",  "shl",   "shr", "shf", "popc", "clz",  "bfind", "brev", "bfe",  "bfi", "fns", "szext", "bmsk"})
        table[opcode] = &lower_by_text;
    table["lop3"] = &lower_lop3;
}

}  // namespace warpsim
