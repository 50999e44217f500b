// tex, tld4, txq: reads of textures through 64-bit handles. The arithmetic is texture_sampling's.
#pragma once

#include "core/warp.h"

namespace warpsim {

void exec_texture(Warp &, const Op &);
void exec_texture_query(Warp &, const Op &);

}  // namespace warpsim
