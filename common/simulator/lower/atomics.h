// atom and red.
#pragma once

#include "lower/lowering.h"

namespace warpsim {

void lower_atom(Lowering &, const ptx::Instruction &);
void lower_red(Lowering &, const ptx::Instruction &);

}  // namespace warpsim
