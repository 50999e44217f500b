// What must be known about a kernel as a whole before its functions are lowered.
#pragma once

#include <cstdint>
#include <vector>

#include "lower/function_lowering.h"

namespace warpsim {

// Fills the program's functions (names only, the kernel first), the context's function maps, shared memory, and the
// flags. `entry` is an index into Module::functions. Throws Unsupported.
void analyze_program(ProgramContext &, size_t entry);

// After lowering: stack_bytes and recursive.
void measure_stack(ProgramContext &);

// The Module::functions indices behind Program::functions.
std::vector<size_t> reachable_functions(const ProgramContext &);

}  // namespace warpsim
