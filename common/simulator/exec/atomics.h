// atom and red: read-modify-write of one element a lane, lanes in order.
#pragma once

#include <string_view>

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

// The handler for "add", "min", ..., "cas" on elements of type "u32", "f32", "f16x2", ...; null where there is none.
Handler atomic_handler(std::string_view operation, std::string_view type);

}  // namespace warpsim
