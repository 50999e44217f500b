// Shared memory's banks: how many passes ("wavefronts") an access takes. 32 banks of 4 bytes; lanes that want the same
// word share it. An access of 8 bytes a lane goes in phases of 16 lanes, one of 16 bytes in phases of 8.
#pragma once

#include <cstdint>

#include "exec/op.h"

namespace warpsim {

struct SharedCost {
    unsigned wavefronts = 0;
    unsigned ideal = 0;  // phases with a lane in them
};

// address: aligned offsets of the lanes in exec (never 0); the others' are not read. bytes: 1 to 32 a lane.
SharedCost shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec);

// The same for 32 lanes whose addresses are `stride` bytes apart (modulo 2^32).
inline SharedCost strided_shared_cost(const uint32_t *address, unsigned bytes, uint32_t stride) {
    const unsigned phases = bytes <= 4 ? 1 : bytes / 4, slots = kLanes / phases;
    if (bytes <= 4 && stride % 4 != 0) {
        if (stride == bytes) return {1, 1};  // neighbours, several in a word
        return shared_cost(address, bytes, kAllLanes);
    }
    const uint32_t step = bytes <= 4 ? stride / 4 : stride / bytes;
    const uint32_t shared_slots = step & -step;  // gcd of step and any larger power of two
    const unsigned passes = step == 0 ? 1 : shared_slots < slots ? shared_slots : slots;
    return {phases * passes, phases};
}

// Atomics: lanes with the same word wait for one another too.
SharedCost atomic_shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec);

}  // namespace warpsim
