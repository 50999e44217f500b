// cp.async: copies from global to shared memory that arrive late. The source is read when the copy is issued; the bytes
// reach shared memory when the issuing thread waits for their group, and until then the destination holds poison.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"
#include "exec/completions.h"

namespace warpsim {

void exec_async_copy(Warp &, const Op &);
void exec_async_commit(Warp &, const Op &);
// Waits until at most Op::imm groups are in flight, or (wait_all) for everything, committed or not.
void exec_async_wait(Warp &, const Op &);

}  // namespace warpsim
