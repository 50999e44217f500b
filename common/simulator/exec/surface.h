// suld, sust, suq: bytes of CUDA arrays through 64-bit handles.
#pragma once

#include "core/warp.h"

namespace warpsim {

void exec_surface_load(Warp &, const Op &);
void exec_surface_store(Warp &, const Op &);
void exec_surface_query(Warp &, const Op &);

}  // namespace warpsim
