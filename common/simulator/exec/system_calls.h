// Functions that the CUDA driver provides to kernels: vprintf, malloc, free, __assertfail, and the device runtime
// (exec/device_runtime.h).
#pragma once

#include <array>
#include <string_view>

#include "core/warp.h"

namespace warpsim {

struct SystemCall {
    const char *name;
    unsigned arguments;
    std::array<unsigned, 6> argument_bytes;
    // Arguments and results lie in local memory at the places in the op's operand list (offset, bytes; results behind
    // the arguments), relative to frame base b (kNoSlot: 0).
    Handler run;
    bool ordered;  // what it does depends on what other blocks did
};

const SystemCall *find_system_call(std::string_view name);  // nullptr: no such function

// Gives a module whose kernels call malloc its heap, once. False: out of memory.
bool prepare_heap(Program &, GlobalMemory &);

}  // namespace warpsim
