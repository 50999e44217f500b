// Who touched which bytes of global memory: records of accesses, by line.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/op.h"

namespace warpsim {

// What an access of global memory is, apart from reading.
inline constexpr unsigned kGlobalWrites = 1;
inline constexpr unsigned kGlobalStrong = 2;        // atomic, volatile, relaxed and stronger
inline constexpr unsigned kGlobalTeam = 4;          // strong within the block or the cluster only
inline constexpr unsigned kGlobalSystem = 16;       // strong for other devices, too
inline constexpr unsigned kGlobalUpdate = 8;        // an atomic operation: it reads, too
inline constexpr unsigned kGlobalNoncoherent = 32;  // a read through a cache that need not see the launch's writes

// A read, and a plain one.
inline bool is_plain_read(unsigned flags) {
    return (flags & ~kGlobalNoncoherent) == 0;
}

// A line is 64 granules, so that a mask names its bytes. A granule is the narrowest access of the kernel.
inline constexpr unsigned kLineGranules = 64;

// How the lanes of a record share its granules.
enum class LaneForm : uint8_t {
    single,   // first_lane has all of them
    uniform,  // each lane of `lanes` has all of them
    spread,   // 2^log granules for each lane, one lane after the other: first_lane's begin at granule `begin`
};

// Accesses of a line by lanes of one warp at one stamp (Clocks), by one op.
struct GlobalRecord {
    uint64_t mask = 0;  // granules
    uint32_t op = 0, stamp = 0;
    uint32_t knowledge = 0;  // of other teams, by GridOrder's number
    uint32_t next = 0;       // in the line's list; 0: none
    uint32_t lanes = 0;
    int32_t begin = 0;
    uint32_t published = 0;  // strong writes that the team had made before it
    uint16_t agent = 0;
    uint8_t flags = 0, first_lane = 0, log = 0;
    LaneForm form = LaneForm::single;
    bool is_new = true;  // there was such an access since its team has handed in

    // The lanes that have granule k: one, or those of `lanes`.
    uint32_t lanes_at(unsigned k) const {
        if (form == LaneForm::uniform) return lanes;
        return 1u << (form == LaneForm::single ? first_lane : first_lane + unsigned((int32_t(k) - begin) >> log));
    }
    bool same_lanes(const GlobalRecord &o) const {
        if (form != o.form) return false;
        if (form == LaneForm::uniform) return lanes == o.lanes;
        return first_lane == o.first_lane && (form == LaneForm::single || (begin == o.begin && log == o.log));
    }
    // Each granule is accessed by one thread, the same in both.
    bool same_thread_each(const GlobalRecord &o) const {
        return agent == o.agent && form != LaneForm::uniform && same_lanes(o);
    }
};

// Can two such accesses be a conflict?
inline bool may_conflict(unsigned a, unsigned b) {
    return ((a | b) & kGlobalWrites) && !(a & b & kGlobalStrong);
}

struct GlobalLine {
    uint64_t key = 0;                       // device address >> log2 of the line's bytes
    std::array<uint64_t, 4> granules{};     // touched, by kGlobalWrites | kGlobalStrong
    uint64_t valued = 0;                    // granules of plain writes whose values are in the payload
    uint32_t first = 0, count = 0;          // records, the latest first
    uint32_t payload = 0;                   // number of its values, from 1 on; 0: it has none
    bool changed = false;                   // since it was handed in
    uint64_t rivals(unsigned flags) const;  // granules on which such an access may meet a conflict
};

inline uint64_t GlobalLine::rivals(unsigned flags) const {
    const uint64_t reads = granules[0], writes = granules[kGlobalWrites], strong_reads = granules[kGlobalStrong],
                   strong_writes = granules[kGlobalStrong | kGlobalWrites];
    const bool strong = flags & kGlobalStrong;
    if (flags & kGlobalWrites) return strong ? reads | writes : reads | writes | strong_reads | strong_writes;
    return strong ? writes : writes | strong_writes;
}

// Lines by their key: a hash table with open addressing. Lines keep their numbers, in the order of their first use.
class LineTable {
  public:
    GlobalLine &at(uint64_t key) {
        if (lines_.size() * 2 >= slots_.size()) grow();
        for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
            const uint32_t number = slots_[i];
            if (number && lines_[number - 1].key == key) return lines_[number - 1];
            if (number) continue;
            lines_.emplace_back();
            lines_.back().key = key;
            slots_[i] = uint32_t(lines_.size());
            return lines_.back();
        }
    }
    GlobalLine *find(uint64_t key) {
        if (lines_.empty()) return nullptr;
        for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
            const uint32_t number = slots_[i];
            if (!number) return nullptr;
            if (lines_[number - 1].key == key) return &lines_[number - 1];
        }
    }
    std::vector<GlobalLine> &lines() { return lines_; }
    uint32_t number_of(const GlobalLine &line) const { return uint32_t(&line - lines_.data()); }
    void clear() {
        if (lines_.size() * 8 < slots_.size()) {
            for (const GlobalLine &line : lines_) erase_slot(line.key);
        } else {
            std::fill(slots_.begin(), slots_.end(), 0);
        }
        lines_.clear();
    }

  private:
    size_t slot_of(uint64_t key) const { return size_t(key * 0x9e3779b97f4a7c15ull >> shift_); }
    void grow() {
        const size_t size = std::max<size_t>(256, slots_.size() * 2);
        shift_ = 64 - unsigned(std::countr_zero(size));
        slots_.assign(size, 0);
        for (size_t n = 0; n < lines_.size(); ++n) {
            size_t i = slot_of(lines_[n].key);
            while (slots_[i]) i = (i + 1) & (size - 1);
            slots_[i] = uint32_t(n + 1);
        }
    }
    // All lines go, so that chains need not be kept whole: a slot may be anywhere behind the key's own.
    void erase_slot(uint64_t key) {
        for (size_t i = slot_of(key); slots_[i]; i = (i + 1) & (slots_.size() - 1)) slots_[i] = 0;
    }

    std::vector<GlobalLine> lines_;
    std::vector<uint32_t> slots_;  // number of a line + 1; 0: free
    unsigned shift_ = 56;
};

}  // namespace warpsim
