// Work that is queued while the host waits for it without a CUDA call: a flag that a host function sets, pinned memory
// that a kernel writes. A thread of the runtime's own runs it once nothing else has for a second.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpsim::rt {

class Runtime;

class IdleProgress {
  public:
    explicit IdleProgress(Runtime &runtime) : runtime_(runtime) {}
    // Work has been queued; the runtime's lock is held.
    void watch();
    // For the end of the process: no operation begins any more; waits for the one that runs, ten seconds at most.
    void stop();

  private:
    void run();
    void run_queued(uint64_t &seen);

    Runtime &runtime_;
    bool started_ = false;  // guarded by the runtime's lock
    std::atomic<bool> stopped_{false}, running_{false};
};

}  // namespace warpsim::rt
