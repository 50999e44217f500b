// What a page asks for: one problem, and the launches that a stage's host code would make for it.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../host/problem.h"

namespace browser {

struct Launch {
    std::string symbol;  // the kernel as its PTX names it
    unsigned grid[3] = {1, 1, 1};
    unsigned threads = 0;
    unsigned shared_bytes = 0;  // dynamic
};

// Elements from one batch, head and row of a tensor to the next.
struct Strides {
    int64_t batch = 0, head = 0, row = 0;
};

struct Request {
    flash::Problem problem;
    uint64_t seed = 0;         // of the inputs
    bool log_sum_exp = false;  // the kernel writes it
    size_t workspace_bytes = 0;
    std::array<Strides, 4> tensors;                             // of Q, K, V and O, where they are given
    bool given = false;                                         // as files, which the caller compares, too
    int Q_box_rows = 0, KV_box_rows = 0;                        // of a kernel that takes tensor maps
    std::vector<Launch> launches;                               // in order
    std::vector<std::pair<std::string, std::string>> settings;  // WARPSIM_*
};

// Lines of words, in any order, all but `launch` at most once:
//
//     problem B Hq Hkv Nq Nkv d_head       bf16, fp16 or e4m3 after it, then `causal` or nothing
//     scale X                              of the scores; 1 / sqrt(d_head) where it is not given
//     seed N
//     log_sum_exp
//     workspace BYTES
//     boxes Q_ROWS KV_ROWS
//     tensor NAME BATCH HEAD ROW           of Q, K, V and O, all or none: its strides in elements. The first three are
//                                          read from files of these names, and O is written to one; of e4m3 the
//                                          scales of the heads, float, are in Q_scales, K_scales and V_scales
//     launch SYMBOL GRID_X GRID_Y GRID_Z THREADS SHARED_BYTES
//     WARPSIM_... VALUE                    as in the simulator's README
//
// Throws std::invalid_argument that quotes the line.
Request parse_request(std::string_view text);

}  // namespace browser
