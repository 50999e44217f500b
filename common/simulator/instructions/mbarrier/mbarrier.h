// mbarriers: what is done to them. Waits: instructions/mbarrier/mbarrier.cpp.
#pragma once

#include <string>

#include "core/op_formats.h"
#include "core/warp.h"

namespace warpsim {

struct Mbarrier;

void exec_mbarrier(Warp &, const Op &);                // init, inval, arrive, arrive_drop, expect_tx, complete_tx
void exec_mbarrier_copies_arrive(Warp &, const Op &);  // cp.async.mbarrier.arrive
void exec_mbarrier_pending_count(Warp &, const Op &);

// The lanes' mbarriers, as offsets in shared memory. Reports what is out of bounds, misaligned or in another state
// space; returns the lanes with nothing wrong.
uint32_t mbarrier_addresses(Warp &, const Op &, uint32_t *address, uint32_t exec);
// The mbarrier that a lane uses there; null: there is none, which has been reported. by_proxy: a bulk copy uses it.
Mbarrier *find_mbarrier(Warp &, const Op &, unsigned lane, uint32_t address, bool by_proxy);
// After a change of it, or of what completes to it: its phase may be complete, and who waits for it looks again.
void changed_mbarrier(Block &, uint32_t address, Mbarrier &);
// Bytes have been announced (more) or have arrived (less).
void change_mbarrier_bytes(Warp &, const Op &, unsigned lane, uint32_t address, Mbarrier &, int64_t by);
// What completes to it arrives, one after the other, until its open phase is another one than `phase`.
void let_arrive(Block &, uint32_t address, uint64_t phase);
// Before something is added to what completes to mbarriers: where it is a great deal, the oldest arrives.
void limit_arrivals(Block &);
std::string mbarrier_text(const Block &, uint32_t address);  // "the mbarrier at shared 0x400 (initialised at k.cu:8)"
std::string mbarrier_lacks(const Mbarrier &);                // "1 arrival and 512 bytes outstanding"

// What a state register holds: the phase, and how many arrivals were pending before.
inline constexpr unsigned kStateCountBits = 20;
inline constexpr uint32_t kMostArrivals = (1u << kStateCountBits) - 1;

}  // namespace warpsim
