// atom and red: read-modify-write of one element a lane, lanes in order.
#pragma once

#include <string_view>

#include "exec/warp.h"

namespace warpsim {

// Op::extra holds the order and the space (exec/memory.h), Op::a and Op::imm the address, Op::b the operand, Op::c the
// second one (cas: b is compared with, c stored), Op::dst the old value or kNoSlot (red). The handler for "add", "min",
// ..., "cas" on elements of type "u32", "f32", "f16x2", ...; null where there is none.
Handler atomic_handler(std::string_view operation, std::string_view type);

}  // namespace warpsim
