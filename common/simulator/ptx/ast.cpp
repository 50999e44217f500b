#include "ptx/ast.h"

#include <algorithm>

namespace warpsim::ptx {

bool Instruction::has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::text() const {
    std::string text = opcode;
    for (const std::string &modifier : modifiers) text += "." + modifier;
    return text;
}

}  // namespace warpsim::ptx
