// LLVM IR, as clang writes it for nvptx64, to PTX.
#pragma once

#include <string>
#include <string_view>

namespace compiler {

// Throws Refusal (errors.h) where the IR has what is not supported, and says what and where.
std::string compile(std::string_view ir);

}  // namespace compiler
