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

// A place in memory that has a name.
struct Place {
    std::string name;
    uint64_t offset = 0;  // bytes
};

// What cuTensorMapEncodeTiled makes a tensor map of.
struct Map {
    Place place;
    unsigned rank = 0;
    std::array<uint64_t, 5> size{}, stride{};  // one stride less
    std::array<uint32_t, 5> box{}, step{};
    std::array<int, 5> kinds{};  // type, interleave, swizzle, promotion, fill
};

// Bytes as the host has made them, but for pointers and tensor maps, which are put in at these offsets.
struct Argument {
    std::vector<unsigned char> bytes;
    std::vector<std::pair<size_t, Place>> pointers;
    std::vector<std::pair<size_t, Map>> maps;
};

struct Launch {
    std::string symbol;  // the kernel as its PTX names it
    unsigned grid[3] = {1, 1, 1};
    unsigned threads = 0;
    unsigned shared_bytes = 0;  // dynamic
    bool early = false;         // it may begin while the launch before it is ending
    std::vector<Argument> arguments;
};

// Device memory of a call, filled from a file of its name; of an output the file gets what is in it after the run.
struct Memory {
    std::string name;
    size_t bytes = 0;
    bool is_output = false;
};

// Elements from one batch, head and row of a tensor to the next.
struct Strides {
    int64_t batch = 0, head = 0, row = 0;
};

struct Request {
    flash::Problem problem;
    uint64_t seed = 0;                                          // of the inputs
    bool log_sum_exp = false;                                   // the kernel writes it
    size_t workspace_bytes = 0, zeroed_bytes = 0;               // of the workspace's beginning, before and after
    std::vector<Memory> memory;                                 // of a call whose launches have arguments
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
//     workspace BYTES ZEROED               of them so many are 0 before the call and have to be 0 after it; or nothing
//     boxes Q_ROWS KV_ROWS
//     tensor NAME BATCH HEAD ROW           of Q, K, V and O, all or none: its strides in elements. The first three are
//                                          read from files of these names, and O is written to one, log_sum_exp
//                                          too, where there is that line; of e4m3 the scales of the heads, float, are
//                                          in Q_scales, K_scales and V_scales
//     launch SYMBOL GRID_X GRID_Y GRID_Z THREADS SHARED_BYTES      `early` after it, or nothing
//     input NAME BYTES, output NAME BYTES  device memory, with a file of that name; all of them stand in place of a
//                                          problem, and each launch has the arguments that follow it:
//     argument HEX                         its bytes
//     pointer OFFSET NAME BYTES            in the argument before: the address of so many bytes into a memory, of those
//                                          above or "workspace"
//     map OFFSET NAME BYTES RANK SIZES STRIDES BOX STEPS TYPE INTERLEAVE SWIZZLE PROMOTION FILL
//                                          in the argument before: a tensor map, as cuTensorMapEncodeTiled takes it
//     WARPSIM_... VALUE                    as in the simulator's README
//
// Throws std::invalid_argument that quotes the line.
Request parse_request(std::string_view text);

}  // namespace browser
