// Undefined values in the registers that a wgmma reads and writes.
#pragma once

#include "definedness/rules.h"

namespace warpsim {

// For one of the warps. An element of D stays undefined, unless scale-d is false; an undefined element of A in
// registers makes its row of D undefined.
void passes_wgmma(Warp &, const Op &, const DataFlow &, uint32_t lanes);

}  // namespace warpsim
