// A function's body as PTX.
#pragma once

#include <string>

#include "debug_lines.h"
#include "machine.h"

namespace compiler {

// From the opening brace to the closing one.
std::string print_body(const machine::Function &, DebugLines &);

}  // namespace compiler
