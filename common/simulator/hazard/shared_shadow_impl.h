// The insides of SharedShadow, shared by its source files.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hazard/clocks.h"
#include "hazard/shared_shadow.h"
#include "hazard/tables.h"

namespace warpsim {

// The clocks of a block by its own warps' numbers. Those of its cluster (of itself, where it has none) go by agents:
// warps numbered through all blocks (Warp::agent), and the blocks' proxies.
struct BlockClocks {
    Clocks *all = nullptr;
    unsigned rank = 0, base = 0;  // of the block, and its first warp
    uint32_t first_stamp() const { return all->first_stamp(); }
    uint32_t stamp(unsigned warp) const { return all->stamp(base + warp); }
    uint32_t ordered_below(unsigned warp) const { return all->ordered_below(base + warp); }
    uint32_t ordered_below(unsigned warp, unsigned by) const { return all->ordered_below(base + warp, base + by); }
    unsigned agent(unsigned by) const { return by == kProxy ? all->proxy(rank) : base + by; }  // of a cell's warp
};

struct SharedShadow::Impl {
    explicit Impl(bool &unwritten_read_flag) : unwritten_read(unwritten_read_flag) {}

    // One side of a conflict, for messages.
    struct Other {
        unsigned agent, lane;
        uint32_t op, stamp;
        const char *did;  // "wrote", "may still be reading", ...
    };
    // A read of bytes that nobody had written: a race if a write follows that is not ordered after it.
    struct EarlyRead {
        Warp *warp;
        const Op *op;
        unsigned lane;
        uint32_t address;
        uint32_t stamp;
        bool strong;
    };
    // A bulk copy in flight, on behalf of a thread.
    struct Transfer {
        uint32_t op, first, end;  // granules
        unsigned agent, lane;
        uint32_t mbarrier;
        std::vector<std::pair<uint32_t, uint32_t>> parts;  // of them those that take part; none: all
        bool has(uint32_t granule) const {
            const auto holds = [&](const auto &part) { return granule >= part.first && granule < part.second; };
            return granule >= first && granule < end &&
                   (parts.empty() || std::any_of(parts.begin(), parts.end(), holds));
        }
    };
    // What a wgmma reads, or has read. In flight until a warp of its warpgroup has waited for it; then done before what
    // those warps do next. Kept until that orders it before everything.
    struct WgmmaRead {
        uint32_t number, op;
        unsigned first_warp;
        std::shared_ptr<const SharedTile> tile;
        unsigned waited;     // a bit for each of the four warps
        uint32_t stamps[4];  // of those waits
    };
    struct LiveMbarrier {
        unsigned warp, lane;  // that initialised it, of the block
        uint32_t op, stamp;
        unsigned channel;
        bool fenced;                         // by the thread that initialised it: the proxy sees it
        uint32_t init_fenced;                // stamp in its channel at a fence.mbarrier_init behind that, 0: none
        Clocks::Shared arriving, completed;  // what is released in the open phase, and in all before
        struct Wait {
            uint32_t op, stamp;
            uint64_t phase;
        };
        std::map<uint32_t, Wait> waits;  // by thread: its last one
    };
    // A barrier of the block that lanes of a warp have come to, for messages.
    struct ReachedBarrier {
        uint32_t op, stamp;  // the warp's before it
        uint32_t lanes, number, threads;
    };
    struct ReachedBarriers {
        std::array<ReachedBarrier, 8> last;
        uint32_t count = 0;  // so far; the newest is last[(count - 1) % 8]
    };
    // Of a warp at a barrier for a number of threads: its first lane, and what it had done by then.
    struct Arrival {
        unsigned warp, lane;
        uint32_t op, stamp;
    };
    struct BarrierPhases {
        Clocks::Shared released;              // by bar.arrive, in the open phase
        std::vector<Arrival> open, complete;  // in the open phase, and in the one before
    };
    // The instruction under examination.
    struct Instruction {
        Warp &warp;
        const Op &op;
        const uint32_t *address;
        unsigned bytes;
        const StoredValues *values;
        uint32_t done;  // lanes already recorded
        bool strong, reads, writes;
    };
    // An access by another block of the cluster, or a read that an agent outside of the block has ended here.
    struct Foreign {
        unsigned agent, lane;
        uint32_t op, stamp;
        bool strong, writes;
    };
    // The last access from outside by a thread, for the sake of the block's exit.
    struct Visit {
        uint32_t op, stamp;
    };

    Clocks own_clocks;
    BlockClocks clocks;
    std::vector<Impl *> mates;                                   // of the cluster, by rank, itself among them
    std::unordered_map<uint32_t, std::vector<Foreign>> foreign;  // by granule; the cell has a mark if one is a write
    std::map<std::pair<unsigned, unsigned>, Visit> visits;       // by agent and lane: not known to end before the exit
    uint32_t granules = 0, exempt_bytes = 0;
    unsigned shift = 2, warps = 0;
    bool bound = false;                 // the block's shape is known: something has accessed shared memory
    std::vector<uint32_t> cell, maker;  // last write of each granule and its op
    AccessTable reads, strong_reads, strong_writes;
    bool strong_used = false;
    // By warp and volatile store: the lanes that executed it together the last time.
    std::map<std::pair<unsigned, uint32_t>, uint32_t> stored_together;
    std::unordered_set<uint64_t> waited_for;  // granule << 32 | thread: by volatile reads in loops that wait
    std::vector<uint32_t> copier;             // thread whose cp.async is pending on a granule; kBulk: a transfer
    uint32_t pending = 0;                     // granules with a pending copy
    static constexpr uint32_t kBulk = 1u << 31;
    std::map<uint32_t, Transfer> writes_in_flight, reads_in_flight;  // by number
    uint32_t transfers = 0;
    std::vector<WgmmaRead> wgmma_reads;                         // oldest first
    uint32_t wgmma_first = 0, wgmma_end = 0, wgmma_issued = 0;  // bytes: all of them lie between
    std::map<uint32_t, LiveMbarrier> mbarriers;                 // by offset
    std::array<BarrierPhases, 16> barriers;                     // by number
    std::map<unsigned, Clocks::Shared> inits_fenced;            // by thread: its inits that a fence has released
    std::vector<ReachedBarriers> reached;                       // by warp
    unsigned channels = 0;
    bool marked = false;  // some cell has a mark of an mbarrier
    static constexpr unsigned kFences = 4;
    std::vector<std::array<uint32_t, kFences>> proxy_fenced;  // by thread: stamps at its last proxy fences, 0: none
    // The least and the largest of their last stamps, where they are known.
    uint32_t least_fenced = 0, most_fenced = 0;
    bool fences_known = false;
    bool &unwritten_read;  // an access has met a granule that nobody has written
    std::unordered_map<uint32_t, EarlyRead> early;
    std::unordered_set<uint32_t> raced;  // granules whose early read was a race
    bool cut_short = false;              // a race of this block has ended it

    void reset(uint32_t shared_bytes, unsigned granule, unsigned warps);
    void bind(Warp &);
    void bind(unsigned threads);
    void renumber_if_needed();
    void renumber(uint32_t first);
    bool is_foreign(const Warp &warp) const { return warp.agent - clocks.base >= warps; }
    bool ordered(const Warp &warp, unsigned lane, unsigned agent, unsigned by_lane, uint32_t stamp) const {
        return clocks.all->ordered(warp.agent, lane, agent, by_lane, stamp);
    }
    // The cell's write needs no closer look: it is older than all that the warp does not know.
    bool long_ordered(const Warp &warp, uint32_t c) const {
        return c <= initialised_cell() ||
               (!is_foreign(warp) && c < clocks.all->ordered_below(warp.agent) << kStampShift);
    }
    // The thread or block that an agent is, for messages.
    std::string agent_text(unsigned agent, unsigned lane) const;
    uint32_t looked_at(const uint32_t *address, uint32_t exec, uint32_t *kept) const;

    uint32_t unwritten_cell() const { return clocks.first_stamp() << kStampShift; }  // read before any write
    uint32_t initialised_cell() const { return unwritten_cell() | 1; }               // by atomics only

    // Fast tests over the granules of consecutive lanes (2^Log granules a lane); false: look closer.
    template <unsigned Log, unsigned Lanes>
    bool readable(unsigned warp, uint32_t granule, unsigned lane0) const;
    template <unsigned Log, unsigned Lanes>
    bool writable(unsigned warp, uint32_t granule, unsigned lane0) const;
    bool writable_lane(unsigned warp, uint32_t granule, unsigned lane, unsigned log) const;
    template <unsigned Log, unsigned Lanes>
    bool read_range(Instruction &, unsigned lane0);
    template <unsigned Log, unsigned Lanes>
    bool write_range(Instruction &, unsigned lane0);
    template <unsigned Log>
    bool read_twins(Instruction &);
    template <unsigned Log>
    bool read_rows(Instruction &, uint32_t exec);
    template <unsigned Log>
    void read(Instruction &, uint32_t exec);
    template <unsigned Log>
    void write(Instruction &, uint32_t exec);
    void strong_access(Instruction &, uint32_t exec, unsigned log);

    // Exact tests of one lane and granule; they report.
    void check_read(Instruction &, unsigned lane, uint32_t granule);
    void check_write(Instruction &, unsigned lane, uint32_t granule);
    void check_lockstep(Instruction &, unsigned lane, uint32_t granule);
    void check_table(Instruction &, unsigned lane, uint32_t granule, const AccessTable &, const char *did);
    void note_early_read(Instruction &, unsigned lane, uint32_t granule);
    bool settle_early_read(Instruction &, unsigned lane, uint32_t granule);
    bool same_value(const Instruction &, unsigned lane, unsigned other_lane, uint32_t granule) const;

    // cluster.cpp
    void foreign_access(Instruction &, uint32_t exec);
    void check_foreign(Instruction &, unsigned lane, uint32_t granule);
    void add_foreign(uint32_t granule, const Foreign &);
    void forget_foreign(uint32_t granule);
    void prune_foreign();

    // mbarriers.cpp: what a fence.mbarrier_init releases, and an arrival that is .relaxed
    void fence_inits(const Warp &, uint32_t lanes);
    void release_fenced(const Warp &, uint32_t lanes, Clocks::Shared &place);

    // A thread's write of granules first to end: where the first is that needs the exact test, if any. bulk_copies.cpp
    uint32_t writable_until(const Warp &, unsigned lane, uint32_t first, uint32_t end) const;
    void check_reads_in_flight(Instruction &, unsigned lane, uint32_t granule);
    void check_wgmma_reads(Instruction &, uint32_t exec, uint32_t bytes);  // of `bytes` at each lane's address
    bool wgmma_read_ordered(const WgmmaRead &, unsigned agent, unsigned lane) const;
    bool wgmma_reads_over(const Warp &, unsigned lane, uint32_t address) const;  // all that came before the lane there
    void forget_wgmma_reads();
    void forget_older_reads(unsigned first_warp, uint32_t number, const std::array<const SharedTile *, 2> &tiles);
    bool wgmma_readable(Warp *const (&warps)[4], const SharedTile &, uint32_t below);
    uint32_t fenced_by_all(uint32_t below);
    void check_proxy(Instruction &, unsigned lane, uint32_t granule);
    void check_foreign_proxy(Instruction &, unsigned lane, uint32_t granule);
    void report_proxy(Instruction &, unsigned lane, uint32_t granule, const std::string &who, uint32_t by, bool late);
    void report_mbarrier(const Instruction &, unsigned lane, uint32_t granule);
    bool synchronised_since_init(const Warp &, uint32_t lanes, const LiveMbarrier &) const;
    std::string waited_text(const Warp &, unsigned lane, uint32_t mbarrier, const Program &) const;
    void report_race(const Instruction &, unsigned lane, uint32_t granule, const Other &);
    void report_pending(const Instruction &, unsigned lane, uint32_t granule);
    // What stands between two accesses that nothing orders, and what would order them: order_text.cpp
    std::string order_text(const Instruction &, unsigned lane, const Other &) const;
    std::string filled_order_text(const Instruction &, unsigned lane, const Other &) const;
    std::string passed_text(const Instruction &, unsigned lane, const Other &) const;
    std::string last_wait_text(const Warp &, unsigned lane, const Program &) const;
    std::string target_text(const Instruction &, unsigned lane, const Other &) const;
    bool comes_first(const Instruction &, const Other &) const;
    bool executed(unsigned agent, uint32_t op, uint32_t stamp) const;
    void report(Warp &, const Op &, HazardKind, unsigned lane, uint32_t address, std::string text);
};

}  // namespace warpsim
