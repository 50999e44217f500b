// What one block can know of others: all that their threads did up to some stamp, by the chains of releases and
// acquires that led to it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hazard/clocks.h"

namespace warpsim {

// Of one team, a block or a cluster: what each of its threads did up to its stamp, in the same era of the team's clocks
// (Clocks::era) or an earlier one.
struct Reach {
    uint64_t team = 0;
    uint32_t era = 0;
    Clocks::Shared stamps;  // by thread of the team: agent * kLanes + lane
};

// In the order of teams; null: nothing. Never changed once it is made, so that whoever knows the same shares it.
using Knowledge = std::shared_ptr<const std::vector<Reach>>;

Knowledge joined(const Knowledge &, const Knowledge &);

const Reach *reach_of(const Knowledge &, uint64_t team);  // null: it knows nothing of the team

// Is what the thread did at `stamp` in that era part of it?
bool knows(const Knowledge &, uint64_t team, uint32_t era, unsigned thread, uint32_t stamp);

}  // namespace warpsim
