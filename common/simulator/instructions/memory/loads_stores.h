// ld and st: what the lowering asks for.
#pragma once

#include "machine/addresses.h"

namespace warpsim {

// Null where there is no such form. Data in Op::dst (loads) or Op::b (stores), for count > 1 in the operand list.
Handler load_handler(MemorySpace, const AccessShape &);
Handler store_handler(MemorySpace, const AccessShape &);
// ld.param of a place in the kernel's parameters that lowering has found to lie inside: no base, Op::imm alone.
Handler load_known_param_handler(const AccessShape &);

// dst = a, extended from bytes to register_bytes: the elements of a vector whose registers differ in width.
Handler widen_handler(const AccessShape &);

// A load as load_handler's, but that Op::c is the mask (a bit for each byte of a lane), and that Op::extra has the
// MemorySpace at kSpaceShift and what packed_shape says.
void exec_load_of_used_bytes(Warp &, const Op &);
uint32_t packed_shape(MemorySpace, const AccessShape &);

}  // namespace warpsim
