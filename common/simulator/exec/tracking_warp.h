// Undefined values among the lanes of a warp.
#pragma once

#include "definedness/rules.h"
#include "exec/context.h"

namespace warpsim {

// The rule of a warp-synchronous op, for the lanes of w.exec, whose group is described in w.sync.
void pass_undefined_sync(WarpContext &, const Op &);

// The result's bits are where the lanes' bits went: shfl.
void passes_shuffle(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// Votes: what the defined predicates decide is defined; of a ballot each bit for itself.
void passes_vote(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// match, redux: all lanes, if any lane brings something undefined.
void passes_group(Warp &, const Op &, const DataFlow &, uint32_t lanes);
// mma: an element by its row of A, its column of B and its element of C.
void passes_mma(Warp &, const Op &, const DataFlow &, uint32_t lanes);

}  // namespace warpsim
