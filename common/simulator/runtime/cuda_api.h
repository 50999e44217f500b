// The toolkit's prototypes, exported: whatever the library defines of them is checked against the header.
#pragma once

#include <cstring>

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

// `WARPSIM_TWIN(cudaMemcpyAsync, cudaMemcpyAsync_ptsz)` declares the entry that programs built with
// --default-stream per-thread call: the same function, with another meaning of stream 0.
#define WARPSIM_TWIN(original, twin) extern "C" __attribute__((visibility("default"))) decltype(original) twin

namespace warpsim::rt {

// An enumerator as a number: a program may pass any number, and to read one that the type does not have is undefined.
template <class Enumeration>
unsigned number_of(const Enumeration &value) {
    unsigned number;
    static_assert(sizeof number == sizeof value);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

}  // namespace warpsim::rt
