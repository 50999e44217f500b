// Loads of which only some bytes are used, as `.pragma "used_bytes_mask n"` says: nvcc widens three neighbouring floats
// to a load of four. The other bytes may be unwritten in shared memory, and anywhere be written by others at the same
// time.
#pragma once

#include "exec/memory.h"

namespace warpsim {

// A load as load_handler's, but that Op::c is the mask (a bit for each byte of a lane), and that Op::extra has the
// MemorySpace at kSpaceShift and what packed_shape says.
void exec_load_of_used_bytes(Warp &, const Op &);
uint32_t packed_shape(MemorySpace, const AccessShape &);

}  // namespace warpsim
