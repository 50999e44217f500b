// Conflicts in global memory: what accesses tell the shadow, and when blocks hand in what they touched.
#pragma once

#include <cstdint>

#include "core/op_formats.h"
#include "core/warp.h"
#include "hazard/global_shadow.h"
#include "machine/addresses.h"
#include "machine/context.h"

namespace warpsim {

// What a load, store or atomic is to the shadow.
inline unsigned global_flags(const Op &op, bool writes) {
    const uint32_t bits = op.extra;
    return (writes ? kGlobalWrites : 0) | (bits & kStrong ? kGlobalStrong : 0) |
           (bits & kStrong && bits & kTeamScope ? kGlobalTeam : 0) |
           (bits & kStrong && bits & kSystemScope ? kGlobalSystem : 0) |
           (!writes && bits & kNoncoherent ? kGlobalNoncoherent : 0);
}

// The same of a bulk copy, or of a reduction by one.
inline unsigned copy_flags(Intent intent) {
    return intent == Intent::read ? 0 : intent == Intent::write ? kGlobalWrites : kGlobalWrites | kGlobalStrong;
}

// A strong access of global memory by a lane: what it releases to other blocks, or acquires from them.
void order_blocks(Warp &, const Op &, unsigned lane, uint64_t address, bool reads, bool writes);

// A block that does not communicate is over, the n-th of the launch that was begun; null: it was left out, or ended the
// launch. Looks at conflicts in the order of n, whatever host thread gets there.
void finished_block(LaunchShared &, uint64_t n, std::unique_ptr<GlobalShadow>);
// A block that communicates, in its turn.
void hand_in_accesses(LaunchShared &, GlobalShadow &);

// Device memory that malloc has returned: what was freed there before is over.
void forget_accesses(Warp &, uint64_t address, uint64_t bytes);

}  // namespace warpsim
