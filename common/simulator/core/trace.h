// What warps did in their order, for a timeline (WARPSIM_TRACE): no times, those are for a model to compute.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/op.h"

namespace warpsim {

// What an instruction that touches memory cost each time, as OpStats counts it.
struct TraceCost {
    uint32_t op = 0;
    uint32_t wavefronts = 0;  // of shared memory
    uint32_t sectors = 0;     // of global memory
    uint32_t bytes = 0;       // of bulk copies and boxes
    auto operator<=>(const TraceCost &) const = default;
};

// Instructions that a warp executed one behind the other: ops first to last, both included.
struct TracePiece {
    uint32_t first = 0, last = 0;
    std::vector<TraceCost> costs;  // of those ops that have one
    auto operator<=>(const TracePiece &) const = default;
};

struct TraceEvent {
    enum class Kind : uint8_t {
        run,            // the piece `which`
        arrive,         // at barrier `which`, in its use number `phase` from 0; it goes on
        sync,           // the same; it waits
        wait,           // until phase `phase` of mbarrier `which` was complete; below 0: it is from the start
        arrive_phase,   // `count` arrivals in the phase, and `bytes` announced
        arrive_copies,  // the same, when the warp's cp.async so far have come
        copy,           // `bytes` that will come to the mbarrier in the phase
        warpgroup,      // the op, with the other warps of its warpgroup
    };
    Kind kind = Kind::run;
    uint32_t op = 0;
    uint32_t which = 0;
    int64_t phase = 0;
    uint32_t count = 0;
    uint64_t bytes = 0;
};

struct TracedMbarrier {
    uint32_t address = 0;  // offset in shared memory
    uint32_t op = 0;       // that initialised it
    uint32_t expected = 0;
};

// An op that the trace names.
struct TracedOp {
    uint32_t op = 0;
    OpClass cls = OpClass::other;
    std::string text;  // "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
    std::string file;
    uint32_t line = 0;
    int64_t imm = 0;  // of what waits for groups: how many may be in flight
    std::vector<std::pair<std::string, uint32_t>>
        calls;  // of a header's code: file and line of each, the innermost first
};

struct TracedBlock {
    uint32_t block[3] = {};
    bool cut = false;  // it did more than a trace holds
    std::vector<TracePiece> pieces;
    std::vector<TracedMbarrier> mbarriers;       // each from its init to its inval
    std::vector<std::vector<TraceEvent>> warps;  // by warp, in its order
};

}  // namespace warpsim
