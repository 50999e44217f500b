// Lowering that the arithmetic families share: look an instruction's text up, fetch its operands, emit one op.
#pragma once

#include <string>

#include "exec/alu.h"
#include "lower/lowering.h"

namespace warpsim {

// All forms of exec/, built on first use.
const AluForms &alu_forms();

// The form of `text`, or of `text` + "/3" where the instruction has three sources; null if there is none.
const AluForm *find_form(const std::string &text, size_t sources);

// Registers as wide as the type, or (sources of cvt) wider.
enum class Width { exact, at_least };

// Emits `form` with the instruction's operands in order (destination first). The result is valid until the next emit.
// Operands that do not fit the form's types are refused by message.
Op &emit_form(Lowering &, const ptx::Instruction &, const AluForm &, Width = Width::exact);

// What is wrong with the modifiers of an instruction that has no form.
std::string why_no_form(const ptx::Instruction &);

// find_form of the instruction's own text, and emit_form; unsupported where there is none.
void lower_by_text(Lowering &, const ptx::Instruction &);

// The slot of a destination whose register must be exactly as wide as `type`.
uint32_t alu_destination(Lowering &, const ptx::Instruction &, const ptx::Operand &, ptx::Type);
// The slot of a source; predicates and other registers do not stand for each other.
uint32_t alu_source(Lowering &, const ptx::Instruction &, const ptx::Operand &, ptx::Type, Width = Width::exact);
// Refuses an instruction that has not `count` operands.
void expect_operands(Lowering &, const ptx::Instruction &, size_t count);

}  // namespace warpsim
