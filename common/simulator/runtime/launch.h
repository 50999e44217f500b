// Kernel launches: checked against the device's limits when they are made, run when something waits for them.
#pragma once

#include "lower/module.h"
#include "runtime/clusters.h"
#include "runtime/cuda_api.h"
#include "runtime/modules.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

struct LaunchRequest {
    dim3 grid, block, cluster = {0, 0, 0};  // cluster.x 0: none is asked for
    size_t shared = 0;
    cudaStream_t stream = nullptr;
    bool cooperative = false;
    bool overtakes = false;  // it may begin before the launch before it in its stream is over
};

// The body of every launch function.
cudaError_t launch_api(const LaunchRequest &, const void *stub_or_handle, void **arguments);
// A checked launch as an operation, with the arguments' values of now. Throws Failure.
Operation make_launch(Runtime &, const LaunchRequest &, const void *stub_or_handle, void *const *arguments);

// Registers per thread that the occupancy model uses. The PTX only bounds what the machine code would need, so a block
// of the kernel's own maximum size always fits.
unsigned model_registers(const Program &, unsigned threads);
// Dynamic shared memory that a launch may ask for: 48 KB less the static part, unless cudaFuncSetAttribute raised it.
int dynamic_shared_limit(const Kernel &, const Program &);
// Shared memory of a block: static, padding and dynamic.
uint64_t block_shared_bytes(const Program &, uint64_t dynamic);

}  // namespace warpsim::rt
