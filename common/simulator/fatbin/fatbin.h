// Finds the PTX in the fat binaries that nvcc embeds in a program, and what of this process's memory can be read:
// lengths and pointers found in a program's data are not to be trusted.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
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

namespace warpsim::fatbin {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Entry {
    bool is_ptx = false;
    unsigned compute = 0;  // 80 for compute_80 / sm_80
    char suffix = 0;       // 'a' or 'f' for compute_90a, compute_100f
    uint64_t flags = 0;
    const uint8_t *payload = nullptr;
    uint64_t payload_bytes = 0;  // as stored (compressed or not)
    uint64_t raw_bytes = 0;      // after decompression; 0 if stored plainly
};

// Whether `at`, which has four readable bytes, begins like a wrapper (magic 0x466243b1) or a bare fat binary
// (0xba55ed50).
bool is_fat_binary(const void *at);

// The fat binaries behind a wrapper, several where the device linker joined separately compiled objects; a bare fat
// binary is one. Throws Error where that takes bytes that cannot be read.
std::vector<const void *> images(const void *wrapper_or_fatbin);

// Lists the entries of a fat binary. Throws Error on bad magic, and on sizes that run past the header's own total or
// out of readable memory.
std::vector<Entry> list(const void *fatbin);

// The entry's PTX text, decompressed (zstd and LZ4 through the system's shared libraries).
// Throws Error: names the missing library or the damaged stream.
std::string ptx_text(const Entry &);

// The best PTX for a device of capability `compute` (90 for sm_90): the highest that it can run; an entry
// with suffix 'a' only where it equals the device's. nullptr where there is none.
const Entry *choose(const std::vector<Entry> &, unsigned compute, bool arch_specific);

}  // namespace warpsim::fatbin
