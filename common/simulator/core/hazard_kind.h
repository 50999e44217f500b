// What can be wrong with a kernel.
#pragma once

#include <cstdint>

namespace warpsim {

enum class HazardKind : uint8_t {
    out_of_bounds,
    misaligned,
    uninitialized_shared,
    uninitialized_variable,
    shared_race,
    global_race,       // in global memory: threads of a block, blocks of a launch
    launch_race,       // in global memory: launches, copies and frees that nothing orders
    noncoherent_read,  // ld.global.nc of what the launch has written
    async_pending,
    divergent_barrier,
    deadlock,
    missing_lanes,
    invalid_address,
    trap,
    assertion,
    budget,
    illegal_instruction,
    invalid_argument,
    mbarrier,     // misused
    proxy_fence,  // missing
    wgmma,        // misused
    cluster,      // a block's memory used before it runs or after, barriers of the cluster misused
    setmaxnreg,   // left out by the compiler
    count_,
};

}  // namespace warpsim
