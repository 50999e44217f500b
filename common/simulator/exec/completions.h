// What arrives later: one queue for each block. Something in it completes to a group of the thread that issued it, to an
// mbarrier or to a bulk group, and arrives when a thread waits for that.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/op.h"

namespace warpsim {

// One warp instruction's copies by cp.async. Each lane's completes to a group of that lane.
struct AsyncCopy {
    uint32_t lanes = 0;  // still in flight
    uint32_t bytes = 0;
    std::array<uint64_t, kLanes> group{};  // by lane: how many groups it had committed before
    std::array<uint32_t, kLanes> to{};     // offset in shared memory
    std::array<std::array<std::byte, 16>, kLanes> data{};
};

// A warp's copies in flight, oldest first.
struct AsyncGroups {
    std::vector<AsyncCopy> copies;
    std::array<uint64_t, kLanes> committed{};  // groups so far, by lane
    bool used = false;
};

class Completions {
  public:
    void start_block(unsigned warps) {
        if (groups_.size() < warps) groups_.resize(warps);
        for (AsyncGroups &groups : groups_) {
            if (!groups.used) continue;
            groups.copies.clear();
            groups.committed.fill(0);
            groups.used = false;
        }
    }
    bool has_groups(unsigned warp) const { return groups_[warp].used; }
    AsyncGroups &groups(unsigned warp) {
        groups_[warp].used = true;
        return groups_[warp];
    }

  private:
    std::vector<AsyncGroups> groups_;  // by warp
};

}  // namespace warpsim
