// What of this process's memory can be read: lengths and pointers found in a program's data are not to be trusted.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace warpsim {

// A snapshot of the process's mappings. Where the system does not list them, everything but null counts as readable.
class ReadableMemory {
  public:
    ReadableMemory();
    // Bytes that can be read from `at` on without a gap; 0: none.
    uint64_t from(const void *at) const;

  private:
    std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // begin and end, ascending, neighbours joined
};

}  // namespace warpsim
