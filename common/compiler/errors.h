#pragma once

#include <stdexcept>
#include <string>

namespace compiler {

// What the compiler does not do, or no valid IR: the message names it, with the line of the source where there is one.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace compiler
