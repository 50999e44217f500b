// Host threads that wait between launches: a short launch does not pay for starting any.
#pragma once

#include <functional>

namespace warpsim {

// Runs job(0) on this thread and job(1) ... job(count - 1) on others, and returns when all are over. The job must not
// throw. One caller at a time.
void run_on_threads(unsigned count, const std::function<void(unsigned)> &job);

}  // namespace warpsim
