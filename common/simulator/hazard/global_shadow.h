// Races in global memory between threads of one team, a block or a cluster, and what it touched there, which
// GlobalConflicts compares with other teams. Two accesses of one byte are a race if at least one writes, nothing orders
// them, and they are not both strong; threads that store the same value do not race. A read through the non-coherent
// cache of what the launch has written before is a hazard though the two be ordered. A plain read that is followed by
// an atomic update of the same place by its own thread counts as strong, and so does the same read by others of its
// team: a loop around atomicCAS begins so, and a look at a maximum before atomicMax; what such a read brings is checked
// by the update.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/warp.h"
#include "hazard/clocks.h"
#include "hazard/global_lines.h"
#include "hazard/grid_order.h"
#include "hazard/shared_shadow.h"

namespace warpsim {

class GlobalShadow {
  public:
    // Clocks: of the team.
    void start(Clocks &, uint64_t team, unsigned warps_of_block, const Program &);

    // One instruction, before it moves data: lane l of exec touches `bytes` bytes from device address[l] on. Reports
    // through report_hazard. values: of a plain store, for the comparison of lanes; may be null.
    void access(Warp &, const Op &, unsigned flags, const uint64_t *address, unsigned bytes, uint32_t exec,
                const StoredValues *values = nullptr);
    // The same of one lane and any number of bytes: bulk copies. Parts of granules at the ends are left out.
    void access_range(Warp &, const Op &, unsigned flags, unsigned lane, uint64_t address, uint64_t bytes);
    // What the last access(), a plain store with values, has left in memory: host[l] is where lane l's address is.
    void stored(const uint64_t *host);
    // Reports the races of plain reads and atomic updates that no update of the reader's has settled: at the end, and
    // when the team has had some turns since, in which the reader could come to its update.
    void settle_doubts(bool ended);
    // Of a plain read in a line: the granules that the team updates atomically.
    uint64_t updated(const GlobalLine &, const GlobalRecord &) const;
    // Is it a plain read by which threads of the team have looked at what they then updated?
    bool is_look(uint32_t op) const { return !looks_.empty() && looks_.count(source_of(op)); }
    // A number for the place in the source: the copies of an instruction in an unrolled loop have the same.
    uint64_t source_of(uint32_t op) const;
    // Of a plain access in a line: the granules that the team has updated atomically before it, in the program's order.
    uint64_t updated_before(const GlobalLine &, const GlobalRecord &) const;
    // Memory that malloc has just returned is nobody's.
    void forget(uint64_t address, uint64_t bytes);

    // Accesses of threads that have not waited for the launches before (griddepcontrol.wait).
    struct Early {
        uint64_t begin, end;
        unsigned flags;
        uint32_t op;
    };
    void watch_early() { watches_early_ = true; }  // for this team
    std::vector<Early> &early() { return early_; }

    GridOrder &order() { return order_; }
    void strong_write() { ++published_; }
    uint32_t published() const { return published_; }

    // For GlobalConflicts.
    uint64_t team() const { return team_; }
    uint32_t era() const { return era_; }
    unsigned warps_of_block() const { return warps_of_block_; }
    unsigned line_shift() const { return granule_shift_ + 6; }
    std::vector<uint32_t> &changed() { return changed_; }  // numbers of lines
    GlobalLine &line(uint32_t number) { return table_.lines()[number]; }
    GlobalRecord &record(uint32_t number) { return records_[number]; }
    const std::byte *payload(const GlobalLine &line) const {
        return line.payload ? payloads_.data() + (size_t(line.payload - 1) << line_shift()) : nullptr;
    }
    void handed_in();  // all changed lines have been

  private:
    struct Touch;
    template <class Counts>
    uint64_t updates(const GlobalLine &, const GlobalRecord &, Counts) const;
    uint32_t touch(const Touch &, uint64_t key, const GlobalRecord &);
    void touch_range(const Touch &, uint64_t address, uint64_t bytes, GlobalRecord);
    void check(const Touch &, const GlobalLine &, const GlobalRecord &);
    bool same_value(const Touch &, const GlobalLine &, const GlobalRecord &, unsigned granule, unsigned lane) const;
    void add(GlobalLine &, const GlobalRecord &);
    void check_noncoherent(const Touch &, const GlobalLine &, const GlobalRecord &);
    void note_looks(const GlobalLine &, const GlobalRecord &update);
    void report(Warp &, const Op &, HazardKind, const GlobalLine &, unsigned granule, const GlobalRecord &now,
                unsigned lane, const GlobalRecord &then, unsigned by);
    void access_lanes(const Touch &, const uint64_t *address, unsigned bytes, uint32_t exec);
    void check_lanes(const Touch &, const uint64_t *address, uint32_t lanes);
    bool ordered(const GlobalRecord &now, unsigned lane, const GlobalRecord &then, unsigned by) const;

    // A plain read and an atomic update that nothing orders.
    struct Doubt {
        Warp *warp;
        const Op *op;
        uint32_t line;
        unsigned granule, lane, by;
        GlobalRecord now, then;
        unsigned turns = 0;  // that the team has had since
    };
    static constexpr size_t kMostDoubts = 256;

    Clocks *clocks_ = nullptr;
    const Program *program_ = nullptr;
    uint64_t team_ = 0;
    uint32_t era_ = 0;
    std::vector<Doubt> doubts_;
    std::unordered_set<uint64_t> looks_;  // sources of plain reads whose thread has updated the place after it
    unsigned warps_of_block_ = 1, granule_shift_ = 2;
    bool communicates_ = false;
    GridOrder order_;
    uint32_t published_ = 0;  // strong writes so far
    LineTable table_;
    std::vector<GlobalRecord> records_;  // [0] is none
    std::vector<std::byte> payloads_;    // a line's bytes each
    std::vector<uint32_t> changed_;
    struct Piece {  // of the last plain store
        uint32_t line, at, bytes;
        uint8_t lane;
        uint32_t from_lane;  // how far behind that lane's address it begins
    };
    std::vector<Piece> pieces_;
    bool watches_early_ = false;
    std::vector<Early> early_;
};

}  // namespace warpsim
