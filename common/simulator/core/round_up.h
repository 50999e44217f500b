#pragma once

#include <cstdint>

namespace warpsim {

// The smallest multiple of `to` that is no smaller than value.
constexpr uint64_t round_up(uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
}

}  // namespace warpsim
