#include "lower/operands.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace warpsim {

namespace {

using ptx::Operand;

// These write no register though their first operand may be one. Everything whose first operand is an address
// (st, red, prefetch, cp.async, ...) has no destination either.
bool has_no_destination(const ptx::Instruction &in) {
    static constexpr std::array<std::string_view, 12> kOpcodes = {
        "bra", "brx", "exit", "ret", "trap", "nanosleep", "call", "membar", "fence", "setmaxnreg", "brkpt", "pmevent"};
    if (std::find(kOpcodes.begin(), kOpcodes.end(), in.opcode) != kOpcodes.end()) return true;
    return (in.opcode == "bar" || in.opcode == "barrier") && !in.has("red");
}

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
    const bool none = has_no_destination(in);
    const bool accumulates = in.opcode == "wgmma";  // its first operand is read and written
    for (size_t i = 0; i < in.operands.size(); ++i) {
        const bool written = i == 0 && (!none || in.opcode == "call");
        visit(in.operands[i], written, whole && !accumulates, out);
    }
    std::stable_partition(out.begin() + std::ptrdiff_t(start), out.end(),
                          [](const RegisterUse &use) { return !use.written; });
}

}  // namespace warpsim
