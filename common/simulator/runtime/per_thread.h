// What programs built with --default-stream per-thread call: the same functions by names that end in _ptsz or _ptds,
// for which stream 0 is the calling thread's own.
#pragma once

#include <utility>

#include "runtime/runtime.h"

namespace warpsim::rt {

// For as long as it lives, stream 0 is the calling thread's own stream (`on`) or the legacy default stream.
class PerThreadStream {
  public:
    explicit PerThreadStream(bool on = true) : before_(std::exchange(this_thread().per_thread_stream, on)) {}
    ~PerThreadStream() { this_thread().per_thread_stream = before_; }
    PerThreadStream(const PerThreadStream &) = delete;
    PerThreadStream &operator=(const PerThreadStream &) = delete;

  private:
    const bool before_;
};

}  // namespace warpsim::rt
