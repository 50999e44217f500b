// Runs one grid. The runtime library calls execute(); everything below it is the machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/program.h"
#include "core/statistics.h"

namespace warpsim {

class GlobalMemory;

// What a kernel asks for by the device runtime (exec/device_runtime.h), to be done when its grid has ended.
struct DeviceWork {
    enum class Kind : uint8_t { launch, copy, fill };
    Kind kind = Kind::launch;
    bool tail = false;    // after all of the others, and what they ask for
    uint64_t kernel = 0;  // its address, as programs see it
    uint32_t grid[3] = {}, block[3] = {};
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> parameters;     // at least what the kernel takes, if nothing is wrong
    uint64_t to = 0, from = 0, bytes = 0;  // of a copy or fill
    uint8_t value = 0;                     // of a fill
};

struct LaunchConfig {
    uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    uint32_t cluster[3] = {1, 1, 1};  // blocks of a cluster; the grid is a multiple of it
    bool explicit_cluster = false;    // asked for by the program, be it of one block
    uint32_t cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
    uint32_t dynamic_shared = 0;
    const std::byte *parameters = nullptr;  // Program::parameter_bytes
    bool cooperative = false;
    unsigned multiprocessors = 132;  // of the simulated device
    unsigned resident_blocks = 1;    // per multiprocessor, from the occupancy model: how many take turns
    uint64_t stack_limit = 4096;     // bytes per thread for recursive calls (cudaLimitStackSize)
    std::function<void(const std::string &)> print;  // printf of the kernel; called in a deterministic order
    uint64_t pending_launches = 2048;                // from the kernel (cudaLimitDevRuntimePendingLaunchCount)
    std::function<void(DeviceWork &&)> launched;     // what it launched, in such an order, when it has ended well
};

// Runs the grid to its end, or until a fatal hazard, a budget or the time limit. Never throws; report.error tells.
LaunchReport execute(Program &, GlobalMemory &, const LaunchConfig &, const Options &);

// Shared by all workers of a launch.
struct LaunchState {
    Program *program = nullptr;
    const LaunchConfig *config = nullptr;
    const Options *options = nullptr;
    std::atomic<uint64_t> instructions{0};
    std::mutex mutex;
};

}  // namespace warpsim
