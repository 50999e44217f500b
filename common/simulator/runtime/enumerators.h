// Enumerators that a program passes.
#pragma once

#include <cstring>

namespace warpsim::rt {

// An enumerator as a number: a program may pass any number, and to read one that the type does not have is undefined.
template <class Enumeration>
unsigned number_of(const Enumeration &value) {
    unsigned number;
    static_assert(sizeof number == sizeof value);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

}  // namespace warpsim::rt
