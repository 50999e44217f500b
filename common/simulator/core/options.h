// What the environment says about a run of the simulator.
#pragma once

#include <cstdint>
#include <string>

namespace warpsim {

inline constexpr unsigned kMostDevices = 16;

// From the WARPSIM_* environment, read once per process.
struct Options {
    unsigned threads = 0;             // WARPSIM_THREADS; 0: as many as the host has
    bool hazards = true;              // WARPSIM_HAZARDS=off
    bool hazards_warn = false;        // WARPSIM_HAZARDS=warn
    bool hazards_strict = false;      // WARPSIM_HAZARDS=strict: notes are hazards
    bool distrust_memory = false;     // WARPSIM_DISTRUST_MEMORY=1: what is loaded from global memory is undefined
    uint64_t schedule_seed = 0;       // WARPSIM_SCHEDULE; 0: the default order
    uint64_t max_instructions = 0;    // WARPSIM_MAX_INSTRUCTIONS (warp instructions per launch); 0: no limit
    double timeout_s = 60;            // WARPSIM_TIMEOUT_S, one launch; 0: no limit
    uint64_t max_memory = 0;          // WARPSIM_MAX_MEMORY, bytes of device memory; 0: the profile's
    std::string report_path;          // WARPSIM_REPORT
    uint64_t accesses = 0;            // WARPSIM_ACCESSES: executions of each memory instruction to report
    uint32_t accesses_block[3] = {};  // WARPSIM_ACCESSES_BLOCK=x,y,z, and
    uint32_t accesses_warp = 0;       // WARPSIM_ACCESSES_WARP: whose they are
    std::string trace_path;           // WARPSIM_TRACE
    unsigned trace_blocks = 1;        // WARPSIM_TRACE_BLOCKS: how many of the first blocks it is of
    bool print_table = false;         // WARPSIM_TABLE=1: counters to stderr after every launch
    std::string device = "sm_90";     // WARPSIM_DEVICE
    std::string wrappers;             // WARPSIM_WRAPPERS: patterns of files, separated by ':' (ptx/charged_lines.h)
    unsigned devices = 1;             // WARPSIM_DEVICES: how many there are, all of one kind
    unsigned multiprocessors = 0;     // WARPSIM_MULTIPROCESSORS; 0: as many as the device has
    int64_t last_stream = -1;         // WARPSIM_SCHEDULE=last:K, a stream's number; -1: none
    // Throws std::runtime_error that names the variable and what it may be.
    static Options from_environment();
};

}  // namespace warpsim
