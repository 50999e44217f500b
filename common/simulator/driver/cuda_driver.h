// The toolkit's prototypes of the driver API, exported: whatever the library defines of them is checked against the
// header, under the symbol names that the header's own macros give (cuMemAlloc is cuMemAlloc_v2).
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop
