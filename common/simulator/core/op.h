// The lowered form of a kernel: a flat array of Ops that the warp loop runs without looking anything up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/types.h"

namespace warpsim {

inline constexpr unsigned kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

struct Op;
struct Warp;

// Executes one op for the lanes in warp.exec (never 0). Straight-line ops only read and write registers and
// memory. A handler must leave the registers of lanes outside warp.exec alone.
using Handler = void (*)(Warp &, const Op &);

// What the report's "by_class" counts.
enum class OpClass : uint8_t {
    integer,
    fp16,
    fp32,
    fp64,
    special_function,
    conversion,
    move,
    predicate,
    control,
    barrier,
    fence,
    load_global,
    store_global,
    load_shared,
    store_shared,
    load_local,
    store_local,
    load_constant,
    load_param,
    store_param,
    load_generic,
    store_generic,
    atomic,
    shuffle,
    vote,
    ldmatrix,
    stmatrix,
    tensor,
    warpgroup,  // wgmma.fence and its groups, setmaxnreg
    async_copy,
    mbarrier,
    bulk_copy,
    tensor_copy,
    texture,
    surface,
    other,
    count_,
};

// How the warp loop treats an op.
enum class Flow : uint8_t {
    straight,  // call fn, go on with the next op
    branch,    // jump to `target` in the lanes of exec
    indirect,  // brx.idx: index in slot a, targets in the operand list
    call,      // target / indirect through a
    ret,
    exit,
    warp_sync,      // fn runs once the lanes named by slot `member` (kNoSlot: all 32) have arrived
    block_sync,     // barrier.*: see instructions/barrier
    warpgroup,      // fn runs once all lanes of the four warps of a warpgroup have arrived: instructions/wgmma
    mbarrier_wait,  // fn tests a phase; while it is open the lanes may be put aside: instructions/mbarrier
    cluster_wait,   // barrier.cluster.wait, likewise: instructions/cluster
    yield,          // straight, but a good place to let others run (nanosleep, polling loads)
    ordered,  // the same, and other blocks see it or it sees them: it waits for its block's turn (scheduler/turns.h)
    // The rest is for the core alone: it turns straight into guarded, and adds joins and jumps when it lays out blocks.
    guarded,  // straight with a guard predicate
    join,     // paths meet here: nothing to execute, not counted
    jump,     // an unconditional branch that the layout needed, not counted
};

inline constexpr uint32_t kNoSlot = 0xffffffffu;

// Slots are byte offsets from Warp::regs. A slot holds 32 lanes side by side: uint16_t[32] for 16-bit
// registers, uint32_t[32] for 32-bit, uint64_t[32] for 64-bit, 2*uint64_t[32] (low words first) for b128; a predicate
// is one uint32_t with a bit for each lane. Immediates live in constant slots, already broadcast and in the width that
// was asked for, so handlers know registers only. A destination never overlaps a source slot unless they are the same
// register.
struct Op {
    Handler fn = nullptr;
    uint32_t dst = kNoSlot, a = kNoSlot, b = kNoSlot, c = kNoSlot;
    uint32_t guard = kNoSlot;   // predicate slot
    uint32_t guard_xor = 0;     // kAllLanes for @!p
    uint32_t member = kNoSlot;  // warp_sync: slot of the membermask (uint32_t lanes)
    uint32_t target = 0;        // branch: op index; call: function index
    uint32_t list = 0;          // first index into Program::operand_list
    uint16_t list_count = 0;
    Flow flow = Flow::straight;
    OpClass cls = OpClass::other;
    int64_t imm = 0;     // address offset, shift, ... the family's own
    uint32_t extra = 0;  // the family's own (packed modifiers)
    uint32_t index = 0;  // this op's position: index of its OpStats and OpDebug
};

// Kept beside the ops, not in them: needed for messages and reports only.
struct OpDebug {
    ptx::SourceLocation source;   // what counters are charged to
    ptx::SourceLocation nearest;  // what messages say: that line, or a neighbour's where there is none
    uint32_t ptx_line = 0;
    std::string text;     // "ld.shared.v4.f32"
    bool counted = true;  // of several ops for one PTX instruction one is counted as issued
};

}  // namespace warpsim
