// Who knows what about whom: the vector clocks of one block, or of all blocks of a cluster, by warp where that is exact
// and by thread where it is not.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/op.h"

namespace warpsim {

// A stamp names a stretch of a warp's execution between two ordering events; stamps of all warps come from one counter
// and only grow. An access made at stamp s happens before everything in a thread that knows its maker up to s.
class Clocks {
  public:
    using Vector = std::vector<uint32_t>;  // a stamp for each thread, then one for each channel of each block
    using Shared = std::shared_ptr<const Vector>;
    static constexpr unsigned kMaxBlocks = 16, kMaxWarps = 32 * kMaxBlocks;
    static constexpr uint32_t kMaxStamp = (1u << 21) - 2;  // must fit the shadow's cells
    static constexpr uint32_t kMargin = 4096;              // more than one event uses up

    // New blocks of so many warps; warps are numbered through. The last warp of each is full until set_threads says
    // otherwise. All stamps given out before are older than first_stamp().
    void start(unsigned blocks, unsigned warps_of_each);
    void set_threads(unsigned threads);  // of each block
    // The asynchronous proxy of a block: stands for a warp whose lanes are its channels.
    unsigned proxy(unsigned block) const { return warps_ + block; }
    bool is_proxy(unsigned agent) const { return agent >= warps_; }
    unsigned warps_of_block() const { return per_block_; }
    unsigned blocks() const { return blocks_; }
    // Forgets the block's history, as if all that happened so far were ordered; stamps start again at 1. The
    // caller must renumber what it has stored.
    void restart();
    uint32_t era() const { return era_; }  // how often restart() has been called, for any blocks
    bool nearly_exhausted() const { return now_ > kMaxStamp - kMargin; }

    uint32_t first_stamp() const { return base_; }  // no access carries it
    uint32_t stamp(unsigned warp) const { return stamp_[warp]; }
    // Every access at a smaller stamp is ordered before what `warp` does now, whoever of its block made it.
    uint32_t ordered_below(unsigned warp) const { return ordered_below_[warp]; }
    // The same for accesses of warp `by` alone.
    uint32_t ordered_below(unsigned warp, unsigned by) const { return known(warp, by) + 1; }
    // Is what agent (by, by_lane) did at `stamp` ordered before what thread (warp, lane) does now?
    bool ordered(unsigned warp, unsigned lane, unsigned by, unsigned by_lane, uint32_t stamp) const;

    // Up to which stamp is all that warp `by` did ordered before what thread (warp, lane) does now?
    uint32_t known_of_all(unsigned warp, unsigned lane, unsigned by) const;

    // Does the thread know that the block has started? What it knows of any of its threads shows it.
    bool knows_start(unsigned warp, unsigned lane, unsigned block) const;
    // Is what agent `by` did up to `stamp` ordered before what all threads of all blocks do now?
    bool known_to_all(unsigned by, uint32_t stamp) const;

    // Of a block: lanes of each of its warps. Warps that have exited are among those whom a barrier of all threads
    // joins, and not among those of one for a number of threads.
    void barrier(unsigned block, const uint32_t *lanes_by_warp, bool counted);
    void warp_barrier(unsigned warp, uint32_t lanes);
    void fence(unsigned warp, uint32_t lanes);
    // A fence of the cluster's scope or a wider one: what it covers a later arrival without an order of its own
    // releases.
    void cluster_fence(unsigned warp, uint32_t lanes);
    void exited(unsigned warp, uint32_t lanes) { exited_[warp] |= lanes; }
    // Lanes of a warp release what they know and did to `place`; acquire what was released there.
    void release(unsigned warp, uint32_t lanes, Shared &place);
    void acquire(unsigned warp, uint32_t lanes, const Shared &place);
    bool know(unsigned warp, uint32_t lanes, const Vector &) const;  // all of it already
    // The same of arrivals and waits that are .relaxed: releases what the lanes' last fences cover; acquires at their
    // next fence.
    void release_fenced(unsigned warp, uint32_t lanes, Shared &place);
    void see(unsigned warp, uint32_t lanes, const Shared &place);
    // The block's proxy has ended something in a channel: releases it to `place` and returns its stamp.
    uint32_t proxy_release(unsigned block, unsigned channel, Shared &place);
    Shared starts() const;                       // that all blocks have started
    static void join(Shared &, const Shared &);  // adds what is known there
    void synchronize_at(unsigned warp, unsigned lane, uint64_t address, bool reads, bool writes, bool acquire,
                        bool release);

  private:
    // Whole warps know nothing of proxies: known_ is 0 there.
    uint32_t &known_of(unsigned warp, unsigned of) { return known_[warp * (warps_ + blocks_) + of]; }
    uint32_t known(unsigned warp, unsigned of) const {
        return std::max(known_[warp * (warps_ + blocks_) + of], everyone_);
    }
    unsigned place(unsigned by, unsigned lane) const { return by * kLanes + lane; }
    Vector everyones() const { return Vector((warps_ + blocks_) * kLanes, everyone_); }
    void start_stamps();
    bool whole(unsigned warp, uint32_t lanes) const {
        return ((lanes | exited_[warp]) & exists_[warp]) == exists_[warp];
    }
    uint32_t with_exited(unsigned warp, uint32_t lanes) const;
    void join(const uint32_t *lanes_by_warp);  // what one of these lanes knows and did, all of them know
    void join_threads(const uint32_t *lanes_by_warp);
    void add_knowledge(Vector &, unsigned warp, unsigned lane, uint32_t own) const;
    void learn(unsigned warp, uint32_t lanes, const Shared &);
    void refresh(unsigned warp);
    void forget_details();

    unsigned warps_ = 0, blocks_ = 1, per_block_ = 0;
    uint32_t era_ = 0;
    uint32_t now_ = 1, base_ = 1, everyone_ = 1;  // everyone_: all threads know all others up to it
    uint32_t start_ = 1;                          // the stamp at which all blocks of a cluster started
    bool all_started_ = false;
    std::array<uint32_t, kMaxWarps> stamp_{}, ordered_below_{}, exists_{}, exited_{};
    std::vector<uint32_t> known_;  // [w][v]: all lanes of w about all of v
    // Details by thread, only where a lock, a flag or a part of a warp made them necessary since the last full barrier.
    bool details_ = false;                           // something below is set
    bool by_thread_ = false;                         // some more_ is
    std::vector<Shared> more_;                       // what a thread knows beyond known_
    std::vector<Shared> seen_;                       // read from flags, learnt at the next fence
    std::vector<uint32_t> fenced_;                   // stamp at the thread's last fence, 0: none
    std::vector<Shared> covered_;                    // in a cluster: by its last cluster_fence(), null: there was none
    std::unordered_map<uint64_t, Shared> released_;  // by address of a lock or flag
};

}  // namespace warpsim
