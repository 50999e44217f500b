// The device linker's work for programs built with -rdc=true, on PTX.
#pragma once

#include <string>
#include <vector>

namespace warpsim::rt {

// One PTX module out of several: the highest .version, the first module's target, file numbers made unique.
std::string link_ptx(const std::vector<std::string> &modules);

}  // namespace warpsim::rt
