// Warpgroups: four warps, the first a multiple of 4, that execute wgmma and setmaxnreg together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/op.h"
#include "core/warp.h"
#include "exec/wgmma_operands.h"

namespace warpsim {

inline constexpr unsigned kWarpgroupWarps = 4;

// One wgmma that no wait has covered, as a warp sees it.
struct WgmmaInFlight {
    const Op *op = nullptr;
    uint64_t group = 0;   // how many groups the warp had committed before
    uint32_t reads = 0;   // the shadow's number
    bool missed = false;  // a wait came and it had not been committed
};

struct WgmmaWarp {
    std::vector<WgmmaInFlight> in_flight;  // oldest first
    uint64_t committed = 0;                // groups so far
    const Op *wait = nullptr;              // the last one, for messages; null: there was none
    uint64_t wait_committed = 0;           // groups at that wait
    uint32_t wait_reads = 0;               // the shadow's number of the last wgmma before it
    uint32_t registers = 0;                // of each thread, as setmaxnreg left them
};

// A block's share of wgmma and of the registers that setmaxnreg moves.
struct WgmmaQueue {
    bool used = false;  // the rest says something
    std::vector<WgmmaWarp> warps;
    uint64_t free_registers = 0;  // of the block's pool
    WgmmaTiles tiles;
    // The queue, empty at the block's first use of it.
    WgmmaQueue &of(const Block &);
};

void exec_wgmma(Warp &first, const Op &);  // exec/wgmma.cpp; for all four warps
void exec_wgmma_fence(Warp &, const Op &);
void exec_wgmma_commit(Warp &, const Op &);
void exec_wgmma_wait(Warp &, const Op &);
// Before an instruction that may touch a register in flight (kTouch... in extra), target: of the wgmma, imm: the note.
void exec_wgmma_touch(Warp &, const Op &);
void exec_set_max_registers(Warp &first, const Op &);  // never called: the registers may have to be waited for

}  // namespace warpsim
