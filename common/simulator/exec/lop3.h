// lop3 with a predicate.
#pragma once

#include "core/warp.h"

namespace warpsim {

// lop3.{or,and}.b32: as lop3, and predicate list[0] = (dst != 0) or predicate list[1]; extra: and instead of or.
void exec_lop3_predicate(Warp &, const Op &);

}  // namespace warpsim
