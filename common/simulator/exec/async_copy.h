// cp.async: copies from global to shared memory that arrive late. The source is read when the copy is issued; the bytes
// reach shared memory when the issuing thread waits for their group, and until then the destination holds poison.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/op_formats.h"
#include "core/warp.h"

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

void exec_async_copy(Warp &, const Op &);
void exec_async_commit(Warp &, const Op &);
// Waits until at most Op::imm groups are in flight, or (wait_all) for everything, committed or not.
void exec_async_wait(Warp &, const Op &);

}  // namespace warpsim
