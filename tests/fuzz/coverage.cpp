// The compiler calls this at each basic block of the simulator; nothing else is compiled with -fsanitize-coverage.
#include <cstring>

#include "fuzz.h"

namespace {
uint8_t counts[fuzz::kCoverageBytes];
[[gnu::tls_model("initial-exec")]] thread_local uint32_t previous;  // no call to find it
}  // namespace

// Places relative to this function, for the system moves programs about in memory.
extern "C" void __sanitizer_cov_trace_pc() {
    const auto place = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)) -
                                             reinterpret_cast<uintptr_t>(&__sanitizer_cov_trace_pc));
    const uint32_t mixed = place * 0x9e3779b1u;
    uint8_t &count = counts[((mixed >> 16) ^ previous) % fuzz::kCoverageBytes];
    count = static_cast<uint8_t>(count + (count < 255));
    previous = (mixed >> 17) % fuzz::kCoverageBytes;
}

namespace fuzz {

const uint8_t *coverage() {
    return counts;
}

void clear_coverage() {
    std::memset(counts, 0, sizeof counts);
    previous = 0;
}

}  // namespace fuzz
