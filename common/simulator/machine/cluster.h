// Thread block clusters: blocks that run together on one host thread, know each other's shared memory by rank and meet
// at a barrier of their own. A launch without clusters has none of this, unless its kernel uses the instructions: each
// block is a cluster of one then.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/context.h"

namespace warpsim {

// Addresses in .shared::cluster: those of the block's own shared memory are offsets, those of another block have its
// rank + 1 in the bits from kRankShift on. Generic addresses: the same behind kSharedWindow.
inline uint64_t rank_bits(unsigned rank) {
    return uint64_t(rank + 1) << kRankShift;
}

inline constexpr uint64_t kOffsetMask = (1ull << kRankShift) - 1;
// Rank + 1 of the other block that an offset in .shared::cluster names; 0: none, it is the block's own memory or wrong.
inline unsigned named_rank(uint64_t offset) {
    return offset >> 32 ? 0 : unsigned(offset >> kRankShift);
}
// False: the rank is none of the cluster's, which has been reported.
bool rank_exists(Warp &, const Op &, unsigned lane, uint64_t address, uint64_t rank);

struct ClusterContext {
    std::vector<BlockContext *> blocks;                // by rank
    std::vector<std::unique_ptr<BlockContext>> peers;  // all but the first, which owns this
    // barrier.cluster, by agent: lanes that have arrived in the open phase, and in a complete one without having waited
    // since; the op of a warp's first arrival or wait in its phase, kNoSlot: none.
    std::vector<uint32_t> arrived, passed, arrived_at, waited_at;
    Clocks::Shared arriving, completed;  // what is released in the open phase, and in the last one
    void start(unsigned warps_of_each);
};

// The block and all that run with it: it alone, or its cluster.
struct Team {
    BlockContext *const *first;
    size_t count;
    BlockContext *const *begin() const { return first; }
    BlockContext *const *end() const { return first + count; }
};
Team team_of(BlockContext *const &);

// Uses of a peer's shared memory: for as long as it lives the warp's block is that one.
class InBlock {
  public:
    InBlock(Warp &w, Block &block) : warp_(w), own_(w.block) { w.block = &block; }
    InBlock(const InBlock &) = delete;
    InBlock &operator=(const InBlock &) = delete;
    ~InBlock() { warp_.block = own_; }

  private:
    Warp &warp_;
    Block *own_;
};

// Whose shared memory the address is in, an offset in .shared::cluster: takes the rank out of it. A block that is not
// there, has exited or need not have started is reported; null: the lane must not go on. ends_later: the access is
// carried out in the background.
Block *shared_owner(Warp &, const Op &, unsigned lane, uint64_t &address, bool ends_later);

// Instructions that may lead to another block's shared memory. Program::remote_ops[Op::target] is what such an op does
// in one block, with its address in a slot that exec_remote fills for each block that lanes name. (What is noted of an
// access points to its op, so that it must stay.)
void exec_remote(Warp &, const Op &);

// barrier.cluster: instructions/cluster/cluster.cpp
bool wait_for_cluster(WarpContext &, Fragment &, const Op &, uint32_t lanes);  // as wait_for_mbarrier
void exit_cluster(WarpContext &, uint32_t lanes);  // after lanes have exited: w.alive has them no more
std::string cluster_wait_text(const BlockContext &);

}  // namespace warpsim
