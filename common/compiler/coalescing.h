// Which variables share a register. Every phi and every register that assembly changes in place was made with copies; a
// copy between variables that are never needed at the same time goes away. PTX has registers without end, but a copy is
// an instruction, and one of an accumulator that wgmma is still writing would be a mistake.
#pragma once

#include <vector>

#include "machine.h"

namespace compiler {

// By variable: the one that stands for it. Copies of a variable to itself are left for the printer to skip.
std::vector<uint32_t> coalesce(const machine::Function &);

}  // namespace compiler
