// The device runtime (dynamic parallelism): what the functions of libcudadevrt do when a kernel calls them. Launches,
// copies and fills are noted, and done when the grid has ended: no kernel may wait for what it asks for.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "core/op.h"
#include "exec/launch.h"

namespace warpsim {

struct SystemCall;

// What a block has of it.
struct DeviceRuntime {
    std::map<uint64_t, DeviceWork> buffers;  // launches that still get their parameters, by where those lie
    std::vector<DeviceWork> work;            // in the order of the calls
    std::map<uint32_t, int> errors;          // by thread: what cudaGetLastError gives
    uint64_t handles = 0;                    // streams and events made
    std::map<const char *, uint64_t> texts;  // of errors: where in device memory they are
};

const SystemCall *find_device_runtime_call(std::string_view name);  // nullptr: no such function
// The function takes memory from the heap of malloc.
bool uses_heap(Handler);

}  // namespace warpsim
