// Finds races, uninitialised reads and reads of bytes still in flight in one block's shared memory, independent of the
// order in which the simulator happened to run the warps (a happens-before detector; see the .cpp for the rules).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/warp.h"
#include "hazard/clocks.h"
#include "hazard/shared_tile.h"
#include "hazard/undefined_bytes.h"

namespace warpsim {

enum class Access : uint8_t { read, write, atomic, volatile_read, volatile_write };

// What a store is about to write, so that threads that write the same value are not called a race: component c of
// lane l is the first `bytes` bytes at slot[c] + l * stride (the register slots of a st.v4, little-endian).
struct StoredValues {
    const std::byte *slot[4] = {};
    unsigned components = 0;  // 1, 2 or 4 (8 and more: leave the pointer to the whole struct null)
    unsigned bytes = 0;       // of one component in memory
    unsigned stride = 0;      // of one lane in its slot
};

// Bytes of shared memory.
struct SharedStretch {
    uint32_t address = 0, bytes = 0;
};

class SharedShadow {
  public:
    // granule: 1, 2 or 4 bytes, see Program::shadow_granule. Reused from block to block with reset(), which is cheap.
    SharedShadow(uint32_t shared_bytes, unsigned granule, unsigned warps);
    ~SharedShadow();
    void reset(uint32_t shared_bytes, unsigned granule, unsigned warps);
    // These blocks are a cluster, by rank: they share their clocks. After reset() of each.
    static void unite(const std::vector<SharedShadow *> &);
    // The first `bytes` bytes are the system's: they hold values, and what happens there is not looked at. After
    // reset().
    void exempt(uint32_t bytes);

    // The block's threads, where its clocks are to know of all that they do, not only from the first access of shared
    // memory on. After reset().
    void bind(unsigned threads);
    Clocks &clocks();  // of the block, or of all blocks of its cluster

    // One instruction: lane l of exec touches bytes [address[l], address[l] + bytes). In bounds, aligned. Reports
    // through report_hazard. Call it before the memory is read or written. `values` (writes only, may be null) as
    // above.
    void access(Warp &, const Op &, Access, const uint32_t *address, unsigned bytes, uint32_t exec,
                const StoredValues *values = nullptr);

    // cp.async: issued by the lane into [address, address+bytes); done when its group has been waited for by that lane.
    void async_issue(Warp &, const Op &, const uint32_t *address, const uint32_t *bytes, uint32_t exec);
    // stamp: of the write that it becomes then, 0: now.
    void async_complete(Warp &, const Op &, int lane, uint32_t address, uint32_t bytes, uint32_t stamp = 0);

    // mbarriers, by their offset: mbarriers.cpp. Init is a write; from then on the bytes are the mbarrier's.
    void mbarrier_init(Warp &, const Op &, unsigned lane, uint32_t address);
    void mbarrier_inval(Warp &, unsigned lane, uint32_t address);
    // Reports a use that nothing orders after the init; by_proxy: also one without a proxy fence in between.
    void mbarrier_use(Warp &, const Op &, uint32_t lanes, uint32_t address, bool by_proxy);
    // Releases; relaxed: what a fence before it covers, and nothing else.
    void mbarrier_arrive(Warp &, uint32_t lanes, uint32_t address, bool relaxed);
    void mbarrier_completed(uint32_t address);  // the phase, with all that arrived in it
    // relaxed: a fence behind it acquires, and nothing else.
    void mbarrier_acquire(Warp &, const Op &, uint32_t lanes, uint32_t address, uint64_t phase, bool relaxed);
    // Lanes release what they know now, for an arrival later on; stamp: of what they do up to now.
    Clocks::Shared snapshot(Warp &, uint32_t lanes, uint32_t &stamp);
    void mbarrier_arrive_later(uint32_t address, const Clocks::Shared &);

    // Bulk copies: bulk_copies.cpp. The proxy carries them out for a lane. A number names the transfer.
    uint32_t bulk_write_issue(Warp &, const Op &, unsigned lane, uint32_t address, uint32_t bytes, uint32_t mbarrier);
    uint32_t bulk_write_complete(uint32_t transfer);   // as part of the mbarrier's phase; returns its stamp, 0: none
    uint32_t bulk_update_complete(uint32_t mbarrier);  // the same of a reduction that has been made: its stamp
    uint32_t bulk_read_issue(Warp &, const Op &, unsigned lane, uint32_t address, uint32_t bytes);
    void bulk_read_complete(Warp &, unsigned lane, uint32_t transfer);  // a read by the lane that waited for it
    // The same of a copy that completes to an mbarrier in `to`, maybe another block of the cluster: a read by its
    // proxy.
    void bulk_read_complete(uint32_t transfer, const SharedShadow &to, uint32_t mbarrier, uint32_t stamp);
    // The same of several stretches, which count as one transfer.
    uint32_t bulk_read_issue(Warp &, const Op &, unsigned lane, std::span<const SharedStretch>);
    // The last writes of all these bytes were bulk copies, and they are complete.
    bool brought_by_copies(const SharedTile &) const;
    // fence.proxy.async, or (data: false) fence.mbarrier_init, for the sake of mbarriers alone.
    void proxy_fence(Warp &, uint32_t lanes, bool data);

    // wgmma's operands: wgmma_reads.cpp. The proxy reads them for a warpgroup; its first warp's, and the other three.
    using Tiles = std::array<std::shared_ptr<const SharedTile>, 2>;  // A (null: in registers) and B
    uint32_t wgmma_issue(Warp *const (&warps)[4], const Op &, const Tiles &);
    void wgmma_wait(Warp &, uint32_t number);  // a warp of the group has waited for it

    // Ordering events, called by the core.
    // A completed bar.sync or bar.red, of all threads or for a number of them, has joined these lanes (mask per warp).
    void barrier(const std::vector<uint32_t> &lanes_by_warp, bool counted);
    // Lanes come to a barrier for so many threads (0: all), for messages.
    void barrier_reached(Warp &, const Op &, uint32_t lanes, unsigned number, uint32_t threads);
    // Barriers: barriers.cpp. Lanes come to one for a number of threads. Reports it where nothing orders that behind
    // all arrivals of the barrier's phase before: in another order of the warps they would be counted there.
    void barrier_meet(Warp &, const Op &, uint32_t lanes, unsigned number);
    // bar.arrive orders what these lanes have done and know so far, and nothing later, before whoever waits at the
    // barrier when it is complete.
    void barrier_arrive(Warp &, uint32_t lanes, unsigned number);
    void barrier_complete(unsigned number, const std::vector<uint32_t> &waiters);  // lanes (mask per warp)
    void warp_barrier(unsigned warp, uint32_t lanes);                              // bar.warp.sync
    void fence(Warp &, uint32_t lanes, bool cluster);  // membar / fence by these lanes; cluster: not of the block alone
    // Cluster barriers: arrivals (and exits) with what they know and did, a completed phase, waits. cluster.cpp.
    void cluster_arrive(Warp &, uint32_t lanes, Clocks::Shared &arriving, bool relaxed);
    void cluster_completed(Clocks::Shared &arriving, Clocks::Shared &completed);
    void cluster_wait(Warp &, uint32_t lanes, const Clocks::Shared &completed);
    // Lanes of other blocks are about to touch this block's memory. Reports those that do not know that it has started,
    // and notes the visit, unless something in the background makes it (ends_later).
    void visit(Warp &, const Op &, uint32_t lanes, bool ends_later);
    // The block's own lanes exit: visits that they know of are over before. visit_left, when the block has no thread
    // left: the first of the others; false: there is none.
    void end_visits(Warp &, uint32_t lanes);
    struct Visit {
        unsigned agent, lane;
        uint32_t op;
        std::string who;
    };
    bool visit_left(Visit &) const;
    // These lanes have exited: from now on each barrier of all threads (and of their warp) counts them as joined.
    void exited(unsigned warp, uint32_t lanes);

    // Undefined bits of shared memory: of bytes that nobody has written, and of those that got undefined values.
    // False: there can be none, no access has met an unwritten byte and no undefined value was stored.
    bool undefined() const { return unwritten_read_ || stored_.any(); }
    void undefined_bits(uint32_t address, unsigned bytes, uint8_t *bits) const;
    // The first of these bytes with an undefined bit, or the one behind them.
    uint32_t first_undefined(uint32_t address, uint32_t bytes) const;
    UndefinedBytes &stored() { return stored_; }  // bits of values that were stored
    void initialise(uint32_t address);            // an atomic exchange has given the bytes there a value
    // `bytes` at `to` are a copy of those at `at` of another block: they are undefined where those are. origin: of
    // bytes there that nobody has written.
    void copy_undefined(const SharedShadow &from, uint32_t at, uint32_t to, uint32_t bytes, uint32_t origin);
    // What became of a read before the first write: `waiting` until a write comes, which may make it a race.
    enum class EarlyReadState : uint8_t { settled, waiting, raced };
    EarlyReadState early_read(uint32_t address) const;
    bool cut_short() const;  // a race has ended the block: what waits for a write waits in vain

    // Atomics and volatile or relaxed/acquire/release accesses on any address, for locks and flags: see the .cpp. Call
    // it after access(). reads: the value is returned (atom yes, red no). Ordinary CUDA locks have no fences, so pass
    // acquire = true also for an atom.cas that succeeded or any atom.exch, and release = true for an atom.exch and for
    // an atom.cas that succeeded in storing 0, where the instruction carries no .relaxed of its own.
    void synchronize_at(Warp &, int lane, uint64_t generic_address, bool reads, bool writes, bool acquire,
                        bool release);

  private:
    struct Impl;
    UndefinedBytes stored_;
    bool unwritten_read_ = false;
    std::unique_ptr<Impl> impl_;
};

}  // namespace warpsim
