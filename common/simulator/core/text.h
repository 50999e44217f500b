// Numbers as messages and reports write them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace warpsim {

// "0x1f": an address, a handle.
inline std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

// "0x0000001f": a warp's lanes, one bit each.
inline std::string lanes_hex(uint32_t lanes) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", lanes);
    return text;
}

// "1 byte", "16 bytes".
inline std::string size_text(uint64_t bytes) {
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace warpsim
