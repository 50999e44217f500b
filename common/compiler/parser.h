// Textual LLVM IR, as clang prints it, to ir::Module.
#pragma once

#include <memory>
#include <string_view>

#include "ir.h"

namespace compiler {

// Throws Refusal that names the IR's line.
std::unique_ptr<ir::Module> parse(std::string_view text);

}  // namespace compiler
