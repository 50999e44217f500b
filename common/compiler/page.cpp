// The compiler as the page has it, as WebAssembly: LLVM IR in, PTX or what is refused out.
#include <exception>
#include <string>

#include "compile.h"

namespace {

std::string said;
bool refused;

}  // namespace

// The PTX of the IR, or why there is none: ir_to_ptx_refused() says which. The text is there until the next call.
extern "C" const char *ir_to_ptx(const char *ir) {
    try {
        said = compiler::compile(ir);
        refused = false;
    } catch (const std::exception &error) {
        said = error.what();
        refused = true;
    }
    return said.c_str();
}

extern "C" int ir_to_ptx_refused() {
    return refused ? 1 : 0;
}
