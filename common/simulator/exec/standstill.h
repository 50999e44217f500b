// Whether blocks can ever go on, which is found out by running them on (exec/watch.h).
#pragma once

#include <vector>

#include "exec/watch.h"

namespace warpsim {

enum class Verdict : uint8_t {
    goes_on,      // something was changed, or the host may change what is read
    reads_clock,  // a clock was read, and nothing changed up to there
    uncertain,    // nothing was, but some lanes never came back to the state in which they were before
    still,        // each fragment waits, or goes round and changes nothing
};

// How often waits for mbarriers end in vain before somebody looks whether they always will.
inline constexpr unsigned kVainRounds = 8;

// exec/mbarrier_wait.cpp: waits for mbarriers end in vain now. False: the team has none.
bool release_waits_in_vain(BlockContext &first);

class Standstill {
  public:
    // Runs the block, or its cluster, in its turn where blocks take turns. Throws as ops do, and LaunchAborted when a
    // budget is used up.
    Verdict add(BlockContext &first);
    // The same after a long time has passed, at which all clocks of the block stand meanwhile: of threads that look at
    // a clock it tells whether they go round for ever. Never Verdict::reads_clock.
    Verdict add_later(BlockContext &first);
    // The fragments that go round, after all blocks have been found to stand still.
    const std::vector<Trail> &rounds() const { return trails_; }
    // What the blocks that stand still have read: they do so until some of it changes.
    const std::map<uint64_t, Seen> &seen() const { return seen_; }

  private:
    std::vector<Trail> trails_;
    std::map<uint64_t, Seen> seen_;
};

}  // namespace warpsim
