#include "lower/operands.h"

#include <algorithm>
#include <cstddef>

#include "lower/instructions.h"

namespace warpsim {

namespace {

using ptx::Operand;

void visit(const Operand &operand, bool written, bool whole, std::vector<RegisterUse> &out) {
    switch (operand.kind) {
        case Operand::Kind::reg:
            if (written) {
                const bool all = whole && operand.component < 0;
                if (!all) out.push_back({operand.index, false, false});
                out.push_back({operand.index, true, all});
            } else {
                out.push_back({operand.index, false, false});
            }
            break;
        case Operand::Kind::address:
            written = false;
            break;
        default:
            break;
    }
    for (const Operand &element : operand.elements) visit(element, written, whole, out);
}

}  // namespace

void register_uses(const ptx::Instruction &in, std::vector<RegisterUse> &out) {
    const size_t start = out.size();
    const bool whole = in.guard < 0;
    if (in.guard >= 0) out.push_back({uint32_t(in.guard), false, false});
    const bool writes = writes_first_operand(in);
    for (size_t i = 0; i < in.operands.size(); ++i) {
        // wgmma adds to its first operand.
        visit(in.operands[i], i == 0 && writes, whole && in.opcode != "wgmma", out);
    }
    std::stable_partition(out.begin() + std::ptrdiff_t(start), out.end(),
                          [](const RegisterUse &use) { return !use.written; });
}

}  // namespace warpsim
