// Conflicts in global memory between the teams (blocks or clusters) of one launch. Teams hand in what they touched:
// each once, in the order of the grid, where the kernel's blocks do not communicate; else whenever they have had their
// turn. Two hazards are found:
//  - global_race: two accesses of one byte by different teams, at least one of which writes, neither of which knew of
//    the other (Knowledge), and which are not both strong in a scope that has both.
//  - noncoherent_read: a read through the non-coherent cache of what another team has written, though they are ordered:
//    that cache need not see the write.
// Two exceptions, for what programs rely on and devices keep:
//  - A team that has updated a place atomically may then use it by plain accesses: its update has seen those before.
//    The last block of a reduction resets the counter so.
//  - Bytes that one team has read may be overwritten by another that has since looked at what the first one stored by a
//    strong access after its read, though nothing was released: a value must have been read before what depends on it
//    is stored. Decoupled look-back counts on that, where a scan or a selection works in place. Which strong access the
//    other has looked at is not followed.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hazard/global_lines.h"
#include "hazard/global_shadow.h"
#include "hazard/knowledge.h"

namespace warpsim {

class GlobalConflicts {
  public:
    // communicates: accesses can be ordered, so that it matters when they were made.
    explicit GlobalConflicts(bool communicates) : communicates_(communicates) { records_.resize(1); }

    struct Side {
        uint64_t team = 0;
        uint32_t op = 0;
        unsigned flags = 0, agent = 0, lane = 0;
        uint32_t era = 0, stamp = 0;
    };
    struct Conflict {
        Side now, then;  // of the team that hands in, and of the one that has done so before
        uint64_t address = 0;
        bool both_read_and_write = false, same_value = false, noncoherent = false;
    };
    // Adds the accesses since the team was last here: an older one has met all that came before it, and meets what
    // comes later when that is handed in. Calls found for the conflicts with other teams; it may throw.
    void hand_in(GlobalShadow &, const std::function<void(const Conflict &)> &found);
    void forget(uint64_t address, uint64_t bytes, unsigned line_shift);

    // Calls visit(key of the line, record) for all that is known.
    template <class Visit>
    void each(Visit visit) {
        for (const GlobalLine &line : table_.lines())
            for (uint32_t number = line.first; number; number = records_[number].next)
                visit(line.key, records_[number]);
    }

    // A team, which has the turn, has made a strong access; published: its strong writes so far, with this one.
    void strong_access(uint64_t team, bool reads, bool writes, uint32_t published);

    ReleasedAt released;  // at flags and counters, for GridOrder

  private:
    struct Record : GlobalRecord {
        uint64_t team = 0;
        uint32_t era = 0, payload = 0;  // payload: number of the line's values, 0: none
        uint64_t valued = 0;
        Knowledge known;
    };
    void check(GlobalShadow &, const GlobalLine &mine, const GlobalLine &all, const GlobalRecord &,
               const std::function<void(const Conflict &)> &found);
    bool comes_after(const Knowledge &, const Record &then, unsigned by) const;
    bool ordered(const GlobalShadow &, const GlobalRecord &now, unsigned lane, const Knowledge &, const Record &then,
                 unsigned by) const;
    bool same_value(const GlobalShadow &, const GlobalLine &mine, const Record &then, unsigned granule) const;
    void add(GlobalShadow &, const GlobalLine &mine, GlobalLine &all, const GlobalRecord &);
    void add_as_seen(const GlobalShadow &, const GlobalLine &mine, GlobalRecord);

    bool is_look(const GlobalShadow &, const GlobalRecord &read, const GlobalRecord &other) const;
    bool looked_since(uint64_t team, const Record &then) const;

    const bool communicates_;
    uint64_t turn_ = 1;
    struct StrongTurns {
        std::vector<std::pair<uint32_t, uint64_t>> writes;  // how many there were by the end of a turn, and the turn
        uint64_t last_read = 0;
    };
    std::unordered_map<uint64_t, StrongTurns> strong_;  // by team
    std::unordered_set<uint64_t> looks_;                // sources of plain reads that some team checked by an update
    LineTable table_;
    std::vector<Record> records_;  // [0] is none
    std::vector<std::byte> payloads_;
    uint32_t payload_ = 0;            // of the line that is handed in, once it is kept
    std::vector<uint32_t> order_;     // a line's records, the oldest first
    std::vector<GlobalRecord> seen_;  // the same as other teams see them
};

}  // namespace warpsim
