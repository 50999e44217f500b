// Floating-point arithmetic of all formats; "opcode.float" for opcodes that integers have, too.
#include "lower/alu.h"

namespace warpsim {

void register_float(FamilyTable &table) {
    for (const char *shared : {"add", "sub", "mul", "mad", "div", "abs", "neg", "min", "max"})
        table[std::string(shared) + ".float"] = &lower_by_text;
    for (const char *opcode : {"fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign", "testp"})
        table[opcode] = &lower_by_text;
}

}  // namespace warpsim
