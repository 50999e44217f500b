// Compiles the table's lines and finds the row that an instruction fits.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lower/instructions.h"

namespace warpsim {

class InstructionSyntax {
  public:
    explicit InstructionSyntax(std::initializer_list<std::span<const InstructionRow>> tables);
    const InstructionRow *find(const ptx::Instruction &, std::vector<std::string> &ordered, std::string &why) const;
    Flow flow_of(const ptx::Instruction &) const;
    bool writes_first_operand(const ptx::Instruction &) const;

  private:
    struct Group {
        bool required;
        std::vector<std::string_view> names;  // one of them
        // Types stand in the row's order, and so do state spaces and .and.popc; other modifiers anywhere.
        enum Kind { any, space, type, bits, count_ } kind = any;
    };
    struct OperandForm {
        enum class Kind { destination, source, address, integer, label, call } kind;
        bool pair = false;      // d|p
        bool selector = false;  // a.part, [a].unified
    };
    using Operands = std::vector<OperandForm>;
    struct Row {
        const InstructionRow *row;
        std::vector<Group> groups;
        size_t leading = 0;              // groups that are part of the name: they stand first
        bool open = false;               // "*": further modifiers are the lowering's to check
        std::vector<Operands> operands;  // with and without those that may be left out
    };
    static Row compile(const InstructionRow &, std::string &opcode);
    enum Fit { no, disordered, incomplete, yes };
    // ordered: the instruction's modifiers in the row's order.
    static Fit modifiers_fit(const Row &, const ptx::Instruction &, std::vector<std::string> &ordered,
                             std::string &why);
    static bool operands_fit(const Operands &, const ptx::Instruction &, std::string &why);

    std::map<std::string, std::vector<Row>, std::less<>> rows_;  // by opcode
};

}  // namespace warpsim
