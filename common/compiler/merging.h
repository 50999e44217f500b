// Loads, and stores, of neighbouring elements to one of two or four elements, as nvcc has them: what memory is accessed
// with counts.
#pragma once

#include "machine.h"

namespace compiler {

void merge_accesses(machine::Function &);

}  // namespace compiler
