// What an operation of a stream, a launch or a copy, touched in global memory: intervals of bytes, and where the
// program did so. Two operations that nothing orders are compared by them when both are over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hazard/global_lines.h"
#include "hazard/knowledge.h"

namespace warpsim {

class GlobalConflicts;
struct Program;

// Of a piece that an operation of a stream writes in one go, an element: a thread's strong read sees all of it or none.
inline constexpr unsigned kStreamFlag = kGlobalWrites | kGlobalSystem;

class Footprint {
  public:
    // Of which accesses an interval is: "write at kernel.cu:12".
    struct Access {
        std::string text, did;  // did: "wrote at kernel.cu:12"
        std::string file;
        uint32_t line = 0;
        uint64_t fill = 0;  // other than 0: what is written everywhere; the same from two sides is no conflict
    };
    struct Piece {
        uint64_t begin = 0, end = 0;
        uint32_t access = 0;  // its number
        uint8_t flags = 0;    // kGlobalWrites, kGlobalStrong, kGlobalSystem; or kStreamFlag
        uint32_t detail = 0;  // number from 1 on; 0: nothing that it knew of other launches matters
    };
    // Who made the accesses of a piece, and what they knew.
    struct Detail {
        GlobalRecord record;
        uint64_t first = 0;  // granule of the record's lowest bit, counted from address 0
        unsigned shift = 0;  // log2 of a granule's bytes
        uint64_t team = 0;   // numbered over all launches
        uint32_t era = 0;
        Knowledge known;
        unsigned thread_at(uint64_t address) const;
    };

    uint32_t add_access(Access);
    void add(uint64_t begin, uint64_t end, unsigned flags, uint32_t access);
    // A launch's. detailed: it was ordered with others while it ran. Bytes in [skip, skip + skipped) are left out.
    void add_all(GlobalConflicts &, const Program &, bool detailed, uint64_t skip, uint64_t skipped);
    void add_op(const Program &, uint64_t begin, uint64_t end, unsigned flags, uint32_t op);
    // After the last add: what belongs together becomes one piece.
    void finish();

    bool empty() const { return pieces_.empty(); }
    bool writes() const;
    const std::vector<Piece> &pieces() const { return pieces_; }  // by begin
    const Access &access(const Piece &piece) const { return accesses_[piece.access]; }

    struct Conflict {
        const Piece *mine = nullptr, *theirs = nullptr;
        uint64_t address = 0;
        bool other_scope = false;  // both are atomic, but not in a scope that has both devices
    };
    // Whether a launch's thread that knows so much knows, by a flag that an operation of a stream has set, that this
    // footprint's operation (mine) or the other one is over.
    using Told = std::function<bool(const Knowledge &, bool mine)>;
    // With another one, the lowest for each pair of places in the programs, a few at most.
    std::vector<Conflict> conflicts(const Footprint &other, bool same_device, const Told &told) const;

  private:
    bool ordered(const Piece &, const Footprint &other, const Piece &theirs, const Told &, uint64_t &address) const;

    std::vector<Piece> pieces_;
    std::vector<uint64_t> reach_;  // the greatest end of the pieces up to each
    std::vector<Access> accesses_;
    std::map<uint32_t, uint32_t> by_op_;  // op * 2 + writes: number of an access
    std::vector<Detail> details_;
};

}  // namespace warpsim
