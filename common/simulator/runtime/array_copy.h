// CUDA arrays as one side of a copy.
#pragma once

#include "runtime/arrays.h"
#include "runtime/copy.h"

namespace warpsim::rt {

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
