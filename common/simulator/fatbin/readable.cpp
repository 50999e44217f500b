#include "fatbin/readable.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace warpsim {

ReadableMemory::ReadableMemory() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin = 0, end = 0;
        char readable = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &readable) != 3 || readable != 'r') continue;
        if (!ranges_.empty() && ranges_.back().second == begin) {
            ranges_.back().second = end;
        } else {
            ranges_.emplace_back(begin, end);
        }
    }
    if (ranges_.empty()) ranges_.emplace_back(1, UINT64_MAX);
}

uint64_t ReadableMemory::from(const void *at) const {
    const uint64_t address = reinterpret_cast<uint64_t>(at);
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(address, UINT64_MAX));
    if (next == ranges_.begin()) return 0;
    const auto &[begin, end] = *std::prev(next);
    return address < end ? end - address : 0;
}

}  // namespace warpsim
