// What kernels asked for while they ran (dynamic parallelism): launches, copies and fills.
#pragma once

#include <vector>

#include "machine/launch.h"
#include "runtime/modules.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

// Does all of it, and what the launched kernels ask for, before it returns: the parent's grid is complete only then.
// What goes to cudaStreamTailLaunch comes last. After an error the rest is left out.
void run_device_work(Runtime &, const Kernel &parent, std::vector<DeviceWork>);

// While that goes on: launches within a launch do not pause (Scheduler::pause).
bool in_device_work();

}  // namespace warpsim::rt
