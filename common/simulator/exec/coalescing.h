// Global memory's sectors: how many aligned pieces of 32 bytes one warp instruction touches.
#pragma once

#include <cstdint>

#include "core/warp.h"

namespace warpsim {

inline constexpr unsigned kSectorBytes = 32;

struct GlobalCost {
    unsigned sectors = 0;
    unsigned ideal = 0;  // distinct bytes / 32, rounded up
};

// address: aligned addresses of the lanes in exec (never 0); the others' are not read. bytes: 1 to 32 a lane.
GlobalCost global_cost(const uint64_t *address, unsigned bytes, uint32_t exec);

inline void count_global(OpStats &stats, GlobalCost cost, unsigned bytes, uint32_t exec) {
    stats.global_sectors += cost.sectors;
    stats.global_ideal += cost.ideal;
    stats.global_bytes += uint64_t(bytes) * unsigned(__builtin_popcount(exec));
}

}  // namespace warpsim
