// The insides of SharedShadow, shared by its source files.
#pragma once

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

struct SharedShadow::Impl {
    explicit Impl(bool &unwritten_read_flag) : unwritten_read(unwritten_read_flag) {}

    // One side of a conflict, for messages.
    struct Other {
        unsigned warp, lane;
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
        unsigned warp, lane;
        uint32_t mbarrier;
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
        unsigned warp, lane;  // that initialised it
        uint32_t op, stamp;
        unsigned channel;
        bool fenced;                         // by the thread that initialised it: the proxy sees it
        Clocks::Shared arriving, completed;  // what is released in the open phase, and in all before
        std::map<uint32_t, std::pair<uint32_t, uint64_t>> waits;  // by thread: op and phase of its last wait
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

    Clocks clocks;
    uint32_t granules = 0, exempt_bytes = 0;
    unsigned shift = 2, warps = 0;
    bool bound = false;                 // the block's shape is known: something has accessed shared memory
    std::vector<uint32_t> cell, maker;  // last write of each granule and its op
    AccessTable reads, strong_reads, strong_writes;
    bool strong_used = false;
    std::vector<uint32_t> copier;  // thread whose cp.async is pending on a granule; kBulk: a transfer
    uint32_t pending = 0;          // granules with a pending copy
    static constexpr uint32_t kBulk = 1u << 31;
    std::map<uint32_t, Transfer> writes_in_flight, reads_in_flight;  // by number
    uint32_t transfers = 0;
    std::vector<WgmmaRead> wgmma_reads;                         // oldest first
    uint32_t wgmma_first = 0, wgmma_end = 0, wgmma_issued = 0;  // bytes: all of them lie between
    std::map<uint32_t, LiveMbarrier> mbarriers;                 // by offset
    unsigned channels = 0;
    bool marked = false;  // some cell has a mark of an mbarrier
    static constexpr unsigned kFences = 4;
    std::vector<std::array<uint32_t, kFences>> proxy_fenced;  // by thread: stamps at its last proxy fences, 0: none
    bool &unwritten_read;                                     // an access has met a granule that nobody has written
    std::unordered_map<uint32_t, EarlyRead> early;
    std::unordered_set<uint32_t> raced;  // granules whose early read was a race
    bool cut_short = false;              // a race of this block has ended it

    void reset(uint32_t shared_bytes, unsigned granule, unsigned warps);
    void bind(Warp &);
    void renumber_if_needed();
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
    void read(Instruction &, uint32_t exec);
    template <unsigned Log>
    void write(Instruction &, uint32_t exec);
    void strong_access(Instruction &, uint32_t exec, unsigned log);

    // Exact tests of one lane and granule; they report.
    void check_read(Instruction &, unsigned lane, uint32_t granule);
    void check_write(Instruction &, unsigned lane, uint32_t granule);
    void check_table(Instruction &, unsigned lane, uint32_t granule, const AccessTable &, const char *did);
    void note_early_read(Instruction &, unsigned lane, uint32_t granule);
    bool settle_early_read(Instruction &, unsigned lane, uint32_t granule);
    bool same_value(const Instruction &, unsigned lane, unsigned other_lane, uint32_t granule) const;

    void check_reads_in_flight(Instruction &, unsigned lane, uint32_t granule);
    void check_wgmma_reads(Instruction &, uint32_t exec, uint32_t bytes);  // of `bytes` at each lane's address
    bool wgmma_read_ordered(const WgmmaRead &, unsigned warp, unsigned lane) const;
    void forget_wgmma_reads();
    void check_proxy(Instruction &, unsigned lane, uint32_t granule);
    void report_mbarrier(const Instruction &, unsigned lane, uint32_t granule);
    std::string waited_text(unsigned warp, unsigned lane, uint32_t mbarrier, const Program &) const;
    void report_race(const Instruction &, unsigned lane, uint32_t granule, const Other &);
    void report_pending(const Instruction &, unsigned lane, uint32_t granule);
    bool comes_first(const Instruction &, const Other &) const;
    bool executed(unsigned warp, uint32_t op, uint32_t stamp) const;
    void report(Warp &, const Op &, HazardKind, unsigned lane, uint32_t address, std::string text);
};

}  // namespace warpsim
