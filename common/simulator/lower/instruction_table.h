// The table of PTX instructions: what each is called, which modifiers and operands it takes, what reports count it as,
// and who turns it into ops. Checking, register allocation and lowering read it.
//
// A row's syntax is the manual's line: ".name" must be there, ".{a,b}" is one of these, "{.a,.b}" one of these or none,
// "!" ends what is part of the name and stands first, and a "*" at the end leaves the rest to the lowering, which looks
// it up in a table of its own forms. Other modifiers may stand in any order, but types and state spaces among
// themselves.
// Its operands: "d" a destination (a register, a vector of them, or `_`), "d|p" one with or without a second
// destination, "a.part" one that may have a selector (.b0, .h10), "[a]" an address, "[a].unified" one that may say so,
// "i" an integer constant, "label", "call" (what the parser makes of a call), any other letter a source; "{, b}" may be
// left out. Such are the forms of arithmetic, generated beside their handlers (instructions/arithmetic/forms.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "definedness/rules.h"
#include "lower/lowering.h"

namespace warpsim {

struct InstructionRow {
    const char *syntax;
    const char *operands;
    OpClass cls;
    Flow flow;
    Handler handler;  // null: the lowering chooses
    LowerFunction lower;
    DefinednessRule definedness = passes_any;  // how undefined bits pass from what it reads to what it writes
};

// instructions/table.cpp: all rows, by family, those of an opcode in the order in which they are tried.
std::vector<std::span<const InstructionRow>> instruction_rows();
// Opcodes that are PTX and that warpsim leaves out as a whole.
std::span<const std::string_view> instructions_not_simulated();

// The row that the instruction's modifiers and operands fit; where none does, null and in `why` a sentence that says
// what is wrong: empty for an opcode that warpsim does not know.
// `ordered`: its modifiers in the row's order, in which lowering functions find them.
const InstructionRow *find_row(const ptx::Instruction &, std::vector<std::string> &ordered, std::string &why);

// How control flows from it, which its opcode says; straight for unknown ones.
Flow flow_of(const ptx::Instruction &);

// The instruction writes its first operand (its elements, where it has some). True for unknown opcodes.
bool writes_first_operand(const ptx::Instruction &);

}  // namespace warpsim
