// A function of LLVM IR to PTX with variables in place of registers.
#pragma once

#include "ir.h"
#include "machine.h"
#include "symbols.h"

namespace compiler {

// Throws Refusal, with the line of the source, for what is not supported. called: functions that it calls are added.
machine::Function lower(const ir::Module &, const ir::Function &, const Symbols &,
                        std::vector<const ir::Function *> &called);

// How a value is passed: `.param .b32 NAME` or `.param .align 8 .b8 NAME[24]`.
std::string parameter_declaration(const ir::Type *, uint64_t alignment, bool of_kernel, const std::string &name);

}  // namespace compiler
