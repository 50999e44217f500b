#pragma once

#include <string>

namespace warpsim {

// "saxpy(int, float*)" for "_Z5saxpyiPf"; the name itself if it is not mangled.
std::string demangle(const std::string &name);

}  // namespace warpsim
