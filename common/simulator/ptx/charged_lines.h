// Which source line an instruction is charged to, where its code was inlined from other functions and files.
#pragma once

#include <string>
#include <string_view>

#include "ptx/ast.h"

namespace warpsim::ptx {

// Is this file one of wrappers, whose code counts as that of the caller: CUDA's own headers, the system's, and files
// named ptx*.cuh, wgmma*.cuh, numbers.cuh? `more`: further patterns, separated by ':'. A pattern may have * and ?,
// which stand for '/' too; one without '/' is about the file's name, another about the path or an end of it.
bool is_wrapper(std::string_view path, std::string_view more = {});

// Charges each instruction to the innermost place that leads there whose file is no wrapper (the parser gives the
// innermost of all), and leaves of its calls those outside of wrappers. Where all are wrappers, as in a kernel of a
// library, it is the innermost place in the file of the kernel. more: as above.
void charge_lines(Module &, std::string_view more = {});

}  // namespace warpsim::ptx
