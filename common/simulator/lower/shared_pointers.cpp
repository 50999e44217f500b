#include "lower/shared_pointers.h"

#include <algorithm>

#include "lower/registers.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;

// Values of into_ that are no variable's number, beside kNone, which is a number like others.
constexpr uint32_t kUnknown = 0xfffffffeu, kNothingYet = 0xfffffffdu;

bool is_pointer(uint32_t value) {
    return value < kNothingYet;
}

// Of a sum: a pointer and a number.
uint32_t sum(uint32_t a, uint32_t b) {
    if (a == kNothingYet || b == kNothingYet) return kNothingYet;
    if (b == SharedPointers::kNone) return a;
    return a == SharedPointers::kNone ? b : kUnknown;
}

uint32_t either(uint32_t a, uint32_t b) {
    if (a == kNothingYet || a == b) return b;
    return b == kNothingYet ? a : kUnknown;
}

}  // namespace

uint32_t SharedPointers::value(const Operand &operand) const {
    switch (operand.kind) {
        case Operand::Kind::reg:
            return operand.component < 0 ? into_[operand.index] : kUnknown;
        case Operand::Kind::symbol: {
            const auto found = variables_->find(operand.name);
            return found == variables_->end() ? kNone : found->second;
        }
        case Operand::Kind::vector: {
            const bool numbers = std::all_of(operand.elements.begin(), operand.elements.end(),
                                             [&](const Operand &element) { return value(element) == kNone; });
            return numbers ? kNone : kUnknown;
        }
        default:
            return kNone;
    }
}

uint32_t SharedPointers::result(const Instruction &in) const {
    const auto &o = in.operands;
    const auto is = [&](const char *opcode, size_t operands) { return in.opcode == opcode && o.size() == operands; };
    if (in.opcode == "ld" || in.opcode == "atom") return kNone;
    uint32_t others = kNone;  // of what is no address: all are numbers, or not
    const auto number = [&](const Operand &operand) {
        const uint32_t v = value(operand);
        others = v == kNone || others == kUnknown ? others : v == kNothingYet ? v : kUnknown;
    };
    uint32_t pointer = kNone;
    size_t rest = 1;
    if (is("mov", 2) || is("cvt", 2) || is("cvta", 2) || is("sub", 3)) {
        pointer = value(o[1]);
        rest = 2;
    } else if (is("add", 3) || is("or", 3)) {
        pointer = sum(value(o[1]), value(o[2]));
        rest = 3;
    } else if (is("selp", 4)) {
        pointer = either(value(o[1]), value(o[2]));
        rest = 3;
    } else if (is("mad", 4)) {
        pointer = value(o[3]);
        number(o[1]);
        number(o[2]);
        rest = 4;
    }
    for (; rest < o.size(); ++rest) number(o[rest]);
    if (others != kNone) return others;
    return o[0].kind == Operand::Kind::vector && pointer != kNone ? kUnknown : pointer;
}

void SharedPointers::run(const ptx::Function &function, const std::map<std::string, uint32_t> &variables) {
    variables_ = &variables;
    into_.assign(function.registers.size(), kNothingYet);
    std::vector<RegisterUse> uses;
    for (bool changed = true; changed;) {  // each register changes twice at most
        changed = false;
        for (const Instruction &in : function.body) {
            uses.clear();
            register_uses(in, uses);
            for (const RegisterUse &use : uses) {
                if (!use.written) continue;
                const uint32_t now = either(into_[use.reg], result(in));
                changed = changed || now != into_[use.reg];
                into_[use.reg] = now;
            }
        }
    }
}

uint32_t SharedPointers::variable(const Operand &address) const {
    if (into_.empty()) return kNone;
    const Operand &base =
        address.kind == Operand::Kind::address && !address.elements.empty() ? address.elements[0] : address;
    const uint32_t found = value(base);
    return is_pointer(found) ? found : kNone;
}

}  // namespace warpsim
