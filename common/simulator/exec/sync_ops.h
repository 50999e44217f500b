// Warp-synchronous ops. An op's lanes may stand at several places of the program: the core then runs the handler once
// for each place, after it has gathered what all of them bring.
#pragma once

#include "exec/warp.h"

namespace warpsim {

// How an op's source `a` is gathered from several places: bits 0..3 of Op::extra for every op with a membermask.
enum class Brings : uint8_t { nothing = 0, predicate = 1, word = 4, double_word = 8 };
inline constexpr uint32_t kBringsMask = 0xf;

// One of shfl's modes, what vote and redux compute: bits 4..7 of Op::extra.
enum class Shuffle : uint8_t { up, down, butterfly, index };
enum class Vote : uint8_t { all, any, uniform, ballot };
enum class Reduce : uint8_t { add, min, max, and_, or_, xor_ };
enum class Match : uint8_t { any, all };
inline constexpr unsigned kModeShift = 4;
inline constexpr uint32_t kReduceSigned = 1u << 8, kReduceFloat = 1u << 9, kReduceAbs = 1u << 10, kReduceNan = 1u << 11;

// In each, w.exec are the lanes at this place and the core's sync view (exec/context.h) tells the group.
// Op fields: dst, pair predicate in imm (kNoSlot: none), a, b: lane, c: clamp and segment
Handler shuffle_handler(Shuffle);
void exec_vote(Warp &, const Op &);     // dst: predicate, or ballot in a register
void exec_match32(Warp &, const Op &);  // dst, pair predicate in imm
void exec_match64(Warp &, const Op &);
void exec_reduce(Warp &, const Op &);
void exec_elect(Warp &, const Op &);         // dst: leader's lane; imm: predicate slot
void exec_warp_barrier(Warp &, const Op &);  // bar.warp.sync
void exec_active_mask(Warp &, const Op &);

void exec_fence(Warp &, const Op &);
void exec_trap(Warp &, const Op &);

}  // namespace warpsim
