// Copies and fills between and within host memory, device memory and CUDA arrays, in up to three dimensions.
#pragma once

#include <string>

#include "runtime/arrays.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

// `rows` of `width` bytes, `pitch` apart, in each of the planes, `plane` bytes apart.
struct Region {
    uint64_t address = 0, pitch = 0, plane = 0;
};

struct Extent {
    uint64_t width = 0, rows = 1, planes = 1;
    bool empty() const { return !width || !rows || !planes; }
};

enum class Timing { blocking, async };

// Queues or performs a copy, as CUDA would for these kinds of memory: see the .cpp. `name`: the API call, for messages.
// Throws Failure.
void copy(Runtime &, const char *name, const Region &to, const Region &from, const Extent &, cudaMemcpyKind,
          const std::shared_ptr<Stream> &, Timing);

// `value` is repeated as an element of `element` bytes (1, 2 or 4).
void fill(Runtime &, const char *name, const Region &, const Extent &, unsigned value, unsigned element,
          const std::shared_ptr<Stream> &, Timing);

// The same as operations for a graph: checked now, performed when they run.
Operation make_copy(Runtime &, const char *name, const Region &to, const Region &from, const Extent &, cudaMemcpyKind);
Operation make_fill(Runtime &, const char *name, const Region &, const Extent &, unsigned value, unsigned element);

inline uint64_t address_of(const void *pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

// A box in an array, at x bytes, y and z. Throws Failure{cudaErrorInvalidValue} where it does not lie inside.
Region array_region(const char *name, const char *side, const DeviceArray &, uint64_t x, uint64_t y, uint64_t z,
                    const Extent &);

// What cudaMemcpy3D describes: lengths in bytes, or in elements where an array takes part. Throws Failure.
struct Copy3D {
    Region to, from;
    Extent extent;
};
Copy3D copy_3d_of(Runtime &, const char *name, const cudaMemcpy3DParms &);

}  // namespace warpsim::rt
