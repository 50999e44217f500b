// Conflicts in global memory between the teams (blocks or clusters) of one launch. Teams hand in what they touched: each
// once, in the order of the grid, where the kernel's blocks do not communicate; else whenever they have had their turn.
// Two accesses of one byte by different teams conflict if at least one writes, neither knew of the other (Knowledge),
// and they are not both strong in a scope that has both.
#pragma once

#include <cstdint>
#include <functional>
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
    };
    struct Conflict {
        Side now, then;  // of the team that hands in, and of the one that has done so before
        uint64_t address = 0;
        bool both_read_and_write = false, same_value = false;
    };
    // Adds what has changed since the team was last here. Calls found for the conflicts with other teams; it may throw.
    void hand_in(GlobalShadow &, const std::function<void(const Conflict &)> &found);
    void forget(uint64_t address, uint64_t bytes, unsigned line_shift);

    ReleasedAt released;  // at flags and counters, for GridOrder

  private:
    struct Record : GlobalRecord {
        uint64_t team = 0;
        uint32_t era = 0, payload = 0;  // payload: number of the line's values, 0: none
        uint64_t valued = 0;
        Knowledge known;
    };
    void check(GlobalShadow &, const GlobalLine &mine, const GlobalLine &all, const GlobalRecord &, unsigned flags,
               const std::function<void(const Conflict &)> &found);
    bool ordered(const GlobalShadow &, const GlobalRecord &now, unsigned lane, const Knowledge &, const Record &then,
                 unsigned by) const;
    bool same_value(const GlobalShadow &, const GlobalLine &mine, const Record &then, unsigned granule) const;
    void add(GlobalShadow &, const GlobalLine &mine, GlobalLine &all, const GlobalRecord &, unsigned flags);

    const bool communicates_;
    LineTable table_;
    std::vector<Record> records_;  // [0] is none
    std::vector<std::byte> payloads_;
    uint32_t payload_ = 0;         // of the line that is handed in, once it is kept
    std::vector<uint32_t> order_;  // a line's records, the oldest first
};

}  // namespace warpsim
