// Warp-synchronous ops. An op's lanes may stand at several places of the program: the core then runs the handler once
// for each place, after it has gathered what all of them bring.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

// In each, w.exec are the lanes at this place and the core's sync view (exec/context.h) tells the group.
// Op fields: dst, pair predicate in imm (kNoSlot: none), a, b: lane, c: clamp and segment
Handler shuffle_handler(Shuffle);
void exec_vote(Warp &, const Op &);     // dst: predicate, or ballot in a register
void exec_match32(Warp &, const Op &);  // dst, pair predicate in imm
void exec_match64(Warp &, const Op &);
void exec_reduce(Warp &, const Op &);
void exec_elect(Warp &, const Op &);         // dst: leader's lane; imm: predicate slot
void exec_warp_barrier(Warp &, const Op &);  // bar.warp.sync
void exec_active_mask(Warp &, const Op &);

void exec_wait_for_launches(Warp &, const Op &);  // griddepcontrol.wait
void exec_fence(Warp &, const Op &);              // orders what the block sees
void exec_cluster_fence(Warp &, const Op &);      // and what the other blocks of its cluster see
void exec_device_fence(Warp &, const Op &);       // and all blocks: of device scope or wider
void exec_trap(Warp &, const Op &);

}  // namespace warpsim
