// Undefined values in the registers that a wgmma reads and writes.
#pragma once

#include "definedness/rules.h"

namespace warpsim {

struct WgmmaForm;
struct WgmmaTile;

// After a wgmma of these four warps: D is undefined in the rows and columns whose operands hold bytes in shared memory
// that are. A is null where it lies in registers.
void note_wgmma_tiles(Warp *const (&warps)[4], const Op &, const WgmmaForm &, const WgmmaTile *a, const WgmmaTile &b);

// For one of the warps. An element of D stays undefined, unless scale-d is false; an undefined element of A in
// registers makes its row of D undefined.
void passes_wgmma(Warp &, const Op &, const DataFlow &, uint32_t lanes);

}  // namespace warpsim
