// Runs one grid. The runtime library calls execute(); everything below it is the machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/program.h"
#include "core/statistics.h"
#include "hazard/footprint.h"
#include "hazard/grid_order.h"

namespace warpsim {

class GlobalMemory;

// What a kernel asks for by the device runtime (device_runtime/device_runtime.h), to be done when its grid has ended.
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

// What a block has of the device runtime.
struct DeviceRuntime {
    std::map<uint64_t, DeviceWork> buffers;  // launches that still get their parameters, by where those lie
    std::vector<DeviceWork> work;            // in the order of the calls
    std::map<uint32_t, int> errors;          // by thread: what cudaGetLastError gives
    uint64_t handles = 0;                    // streams and events made
    std::map<const char *, uint64_t> texts;  // of errors: where in device memory they are
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
    // Where other operations may run at the same time: what it touches is collected for them. Its blocks, or clusters,
    // are numbered from first_team on, no two of a process alike; what is released at device scope or a wider one, and
    // at system scope, is kept beyond its end.
    bool collects = false;
    bool overtakes = false;  // it may begin before the launches before it in its stream are over
    uint64_t first_team = 0;
    ReleasedAt *released_on_device = nullptr, *released_to_system = nullptr;
    std::function<void(const std::string &)> print;  // printf of the kernel; called in a deterministic order
    uint64_t pending_launches = 2048;                // from the kernel (cudaLimitDevRuntimePendingLaunchCount)
    // What an error is called, and what it means: cudaGetErrorName and cudaGetErrorString in kernels.
    const char *(*error_name)(int code) = nullptr, *(*error_text)(int code) = nullptr;
    std::function<void(DeviceWork &&)> launched;  // what it launched, in such an order, when it has ended well
};

// A grid that runs to its end, or until a fatal hazard, a budget or the time limit.
class Execution {
  public:
    Execution(Program &, GlobalMemory &, LaunchConfig, const Options &);
    ~Execution();

    enum class State : uint8_t {
        over,
        still,      // each of its blocks waits for somebody else
        undecided,  // they go round for long, and nothing shows that they always will
    };
    // Runs it, or runs it on. may_pause: something else may help it on, so that a standstill is no deadlock yet, and
    // the state is another one than `over`. Never throws.
    State run(bool may_pause);
    // After `still`: something that its blocks look at has changed.
    bool may_go_on() const;
    // After `over`; report.error tells.
    LaunchReport report();
    // What it touched, where LaunchConfig asks for that; before: by threads that had not waited for the launches
    // before.
    Footprint touched(), touched_before();

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// The same in one go.
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
