// cp.async: copies from global to shared memory that arrive late. The source is read when the copy is issued; the bytes
// reach shared memory when the issuing thread waits for their group, and until then the destination holds poison.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "exec/warp.h"

namespace warpsim {

// One warp instruction's copies.
struct AsyncCopy {
    uint32_t lanes = 0;  // still in flight
    uint32_t bytes = 0;
    std::array<uint64_t, kLanes> group{};  // by lane: how many groups it had committed before
    std::array<uint32_t, kLanes> to{};     // offset in shared memory
    std::array<std::array<std::byte, 16>, kLanes> data{};
};

// A warp's copies in flight, oldest first.
struct AsyncGroups {
    std::vector<AsyncCopy> copies;
    std::array<uint64_t, kLanes> committed{};  // groups so far, by lane
};

// cp.async.ca / .cg. Op::a, Op::imm: the shared address; Op::list: slot of the global address (kNoSlot: none), its
// offset's low and high half, slot of src-size (kNoSlot: all) and predicate slot of ignore-src (kNoSlot: none). Op::dst
// is unused, Op::b holds cp-size.
inline constexpr uint32_t kSourceBase32 = 1u << 16;  // in Op::extra beside kBase32 of exec/memory.h
void exec_async_copy(Warp &, const Op &);
void exec_async_commit(Warp &, const Op &);
// Waits until at most Op::imm groups are in flight; Op::b != 0: for everything, committed or not (wait_all).
void exec_async_wait(Warp &, const Op &);

}  // namespace warpsim
