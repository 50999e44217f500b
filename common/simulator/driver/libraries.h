// Code that is loaded by modules and libraries, which are the same thing here.
#pragma once

#include <string>

#include "driver/call.h"
#include "driver/jit_options.h"

namespace warpsim::driver {

inline rt::Library *library_of(CUmodule module) {
    return reinterpret_cast<rt::Library *>(module);
}
inline CUmodule module_of(rt::Library *library) {
    return reinterpret_cast<CUmodule>(library);
}

// PTX or a fat binary in memory; or the content of a file of PTX or of a bare fat binary. They belong to the current
// context if `owned`. Throw Refusal.
rt::Library *load_code(const void *code, bool owned);
rt::Library *load_file(const char *path, bool owned);
void unload(rt::Library *);

// The whole file. Throws Refusal{CUDA_ERROR_FILE_NOT_FOUND}.
std::string read_file(const char *path);

}  // namespace warpsim::driver
