// Warp-synchronous ops. An op's lanes may stand at several places of the program: the core then runs the handler once
// for each place, after it has gathered what all of them bring. And undefined values among the lanes of a warp.
#pragma once

#include "core/op_formats.h"
#include "core/warp.h"
#include "definedness/rules.h"
#include "machine/context.h"

namespace warpsim {

// In each handler, w.exec are the lanes at this place and the core's sync view (machine/context.h) tells the group.
void exec_warp_barrier(Warp &, const Op &);  // bar.warp.sync

// The rule of a warp-synchronous op, for the lanes of w.exec, whose group is described in w.sync.
void pass_undefined_sync(WarpContext &, const Op &);

// The result's bits are where the lanes' bits went: shfl.
void passes_shuffle(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// A shuffle's result in these lanes, which read lanes that take no part: `from` by lane.
void undefine_shuffled(Warp &, const Op &, uint32_t lanes, const uint32_t *from);
// Votes: what the defined predicates decide is defined; of a ballot each bit for itself.
void passes_vote(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// match, redux: all lanes, if any lane brings something undefined.
void passes_group(Warp &, const Op &, const DataFlow &, uint32_t lanes);

}  // namespace warpsim
