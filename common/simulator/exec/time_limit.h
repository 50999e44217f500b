// The seconds that a launch may take.
#pragma once

#include <chrono>

#include "exec/context.h"

namespace warpsim {

inline bool is_out_of_time(const LaunchShared &launch) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - launch.start;
    return launch.options->timeout_s > 0 && elapsed.count() > launch.options->timeout_s;
}

// Ends the launch where it is out of time; the message names the line that a warp of the block has come to.
void check_time(BlockContext &);

}  // namespace warpsim
