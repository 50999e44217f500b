// Small ops that the core's lowering adds around an instruction's own.
#pragma once

#include "core/warp.h"

namespace warpsim {

void exec_not_predicate(Warp &, const Op &);  // dst = ~a
// dst = low bytes of a. imm: bytes of a lane of a; extra: bytes of a lane of dst.
void exec_copy_low_bytes(Warp &, const Op &);
// dst = frame base a (uint32_t lanes) + imm: the address of a .local or .param variable of a device function.
template <class T>
void exec_local_address(Warp &, const Op &);
// dst = clock. imm: which, a Special.
void exec_read_clock(Warp &, const Op &);
// Local memory at frame base b (kNoSlot: 0) + imm = a, extra bytes a lane; and the other way round into dst.
void exec_store_argument(Warp &, const Op &);
void exec_load_argument(Warp &, const Op &);
void exec_nothing(Warp &, const Op &);
// Before an instruction that may touch a register of a wgmma in flight (a WgmmaTouch in extra), target: of the wgmma,
// imm: the note. instructions/wgmma/warpgroup.cpp
void exec_wgmma_touch(Warp &, const Op &);
void exec_wait_for_launches(Warp &, const Op &);     // griddepcontrol.wait
void exec_let_dependents_start(Warp &, const Op &);  // griddepcontrol.launch_dependents: a hint here

}  // namespace warpsim
