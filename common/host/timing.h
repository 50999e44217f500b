// Times work on the GPU by CUDA events.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

namespace flash {

struct Timing {
    double median_ms = 0, p20_ms = 0, p80_ms = 0;
    std::vector<float> times_ms = {};  // of all iterations, the shortest first
};

// Calls `work` (which queues kernels on the default stream) `warm_up` times, then `iterations` times between two
// events, with the L2 cache overwritten before each. Throws CudaError (device_array.h).
Timing time_on_gpu(const std::function<void()> &work, int warm_up, int iterations);

}  // namespace flash
