// The shadow's cells: who touched a granule of shared memory last, and when.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op.h"

namespace warpsim {

// A cell is stamp << 11 | who: for the last write `who` is an agent, warp << 5 | lane or kProxy << 5 | channel; for a
// warp's reads it is lo << 5 | hi, the lowest and the highest lane that read at that stamp. Cells of earlier blocks
// have smaller stamps than this block's first, so that nothing needs clearing between blocks.
inline constexpr unsigned kStampShift = 11;
inline constexpr uint32_t kWhoMask = (1u << kStampShift) - 1;
// Marks: write cells that are newer than any stamp and no agent's.
inline constexpr uint32_t kFirstMark = ~kWhoMask;
inline constexpr uint32_t kForeignCell = 0xfffffffdu;   // threads of other blocks of the cluster have written there
inline constexpr uint32_t kMbarrierCell = 0xfffffffeu;  // an mbarrier
inline constexpr uint32_t kPending = 0xffffffffu;       // something is on its way there that has not been waited for

inline constexpr unsigned kProxy = 32;  // the block's asynchronous proxy: a warp whose lanes are its channels

inline unsigned agent_warp(uint32_t cell) {  // or kProxy
    return cell >> 5 & 63;
}
inline unsigned agent_lane(uint32_t cell) {
    return cell & 31;
}

// Accesses of one kind (plain reads, atomic or volatile reads, atomic or volatile writes) by warp and granule.
class AccessTable {
  public:
    void resize(unsigned warps, uint32_t granules) {
        stride_ = (granules + 15) & ~15u;
        warps_ = warps;
        const size_t cells = size_t(warps) * stride_;
        if (cells_.size() < cells) {
            cells_.resize(cells);
            ops_.resize(cells);
        }
        last_.assign(warps, 0);
        latest_ = 0;
    }
    void clear() {
        std::fill(cells_.begin(), cells_.end(), 0);
        std::fill(last_.begin(), last_.end(), 0);
        latest_ = 0;
    }
    const uint32_t *row(unsigned warp) const { return cells_.data() + size_t(warp) * stride_; }
    uint32_t op(unsigned warp, uint32_t granule) const { return ops_[size_t(warp) * stride_ + granule]; }
    uint32_t last(unsigned warp) const {
        return last_[warp];
    }  // stamp of the warp's latest access in this block, 0: none

    uint32_t latest() const { return latest_; }  // the same of all warps

    // Adds a warp's accesses at one stamp. Create one for an instruction, then call it for its granules.
    class Writer {
      public:
        Writer(AccessTable &table, unsigned warp, uint32_t stamp, uint32_t op)
            : cells_(table.cells_.data() + size_t(warp) * table.stride_),
              ops_(table.ops_.data() + size_t(warp) * table.stride_),
              now_(stamp << kStampShift),
              op_(op) {
            table.last_[warp] = stamp;
            table.latest_ = std::max(table.latest_, stamp);
        }
        // Lanes lane0, lane0 + 1, ... access 2^Log granules each, one after the other from `granule` on; with Twin, so
        // do lanes lane0 + Twin, lane0 + Twin + 1, ...
        template <unsigned Log, unsigned Lanes, unsigned Twin = 0>
        void range(uint32_t granule, uint32_t lane0) {
            uint32_t *cell = cells_ + granule;
            for (unsigned i = 0; i < Lanes << Log; ++i) {
                const uint32_t lane = lane0 + (i >> Log), before = cell[i];
                const uint32_t low = std::min((before >> 5) & 31, lane), high = std::max(before & 31, lane + Twin);
                cell[i] = before >= now_ ? now_ | low << 5 | high : now_ | lane << 5 | (lane + Twin);
            }
            for (unsigned i = 0; i < Lanes << Log; ++i) ops_[granule + i] = op_;
        }
        // Lanes low to high (or some of them) all access the same 2^Log granules.
        template <unsigned Log>
        void same(uint32_t granule, uint32_t low, uint32_t high) {
            uint32_t *cell = cells_ + granule;
            for (unsigned i = 0; i < 1u << Log; ++i) {
                const uint32_t before = cell[i];
                const uint32_t lowest = std::min((before >> 5) & 31, low), highest = std::max(before & 31, high);
                cell[i] = before >= now_ ? now_ | lowest << 5 | highest : now_ | low << 5 | high;
            }
            for (unsigned i = 0; i < 1u << Log; ++i) ops_[granule + i] = op_;
        }

      private:
        uint32_t *cells_, *ops_;
        uint32_t now_, op_;
    };

  private:
    std::vector<uint32_t> cells_, ops_, last_;
    uint32_t latest_ = 0;
    size_t stride_ = 0;
    unsigned warps_ = 0;
};

}  // namespace warpsim
