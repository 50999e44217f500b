// printf in kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/warp.h"

namespace warpsim {

struct WarpContext;

// Reads from any address as lane `lane` sees it. False: out of bounds.
bool read_generic(Warp &, unsigned lane, uint64_t address, void *to, size_t bytes);

// Appends to `out` what printf makes of the format at device address `format` and the packed arguments at `values`,
// each aligned to its own size. Returns the number of arguments, -1 for a null format, -2 where memory is not there.
using ReadMemory = std::function<bool(uint64_t address, void *to, size_t bytes)>;
int format_device_text(uint64_t format, uint64_t values, const ReadMemory &, std::string &out);

// Adds text to the block's output, which appears in block order when the launch ends.
void print(WarpContext &, const std::string &text);

}  // namespace warpsim
