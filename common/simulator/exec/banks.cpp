#include "exec/banks.h"

#include <algorithm>
#include <bit>

namespace warpsim {

namespace {

// Splits bytes into how lanes are grouped: a unit (4 bytes or the lane's own size), units in a pass over all banks.
struct Grouping {
    unsigned shift, slots;
    explicit Grouping(unsigned bytes)
        : shift(unsigned(std::countr_zero(std::max(bytes, 4u)))), slots(kLanes * 4 / std::max(bytes, 4u)) {}
    unsigned active_phases(uint32_t exec) const {
        if (slots == kLanes) return 1;
        unsigned phases = 0;
        for (unsigned lane = 0; lane < kLanes; lane += slots) phases += (exec >> lane & ((1u << slots) - 1)) != 0;
        return phases;
    }
};

}  // namespace

SharedCost shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec) {
    const Grouping group(bytes);
    const unsigned ideal = group.active_phases(exec);
    // Bank (within its phase) of every lane, and what that bank serves in this pass.
    uint32_t unit[kLanes], bank[kLanes], serves[kLanes];
    const uint32_t bank_mask = group.slots - 1;
    for (unsigned i = 0; i < kLanes; ++i) {
        unit[i] = address[i] >> group.shift;
        bank[i] = (unit[i] & bank_mask) | (i & ~bank_mask);
    }
    if (exec == kAllLanes) {
        for (unsigned i = 0; i < kLanes; ++i) serves[bank[i]] = unit[i];
        uint32_t waiting = 0;
        for (unsigned i = 0; i < kLanes; ++i) waiting |= uint32_t(serves[bank[i]] != unit[i]) << i;
        if (waiting == 0) return {ideal, ideal};
    }
    unsigned wavefronts = 0;
    while (exec) {
        wavefronts += group.active_phases(exec);
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            serves[bank[lane]] = unit[lane];
        }
        uint32_t waiting = 0;
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            waiting |= uint32_t(serves[bank[lane]] != unit[lane]) << lane;
        }
        exec = waiting;
    }
    return {wavefronts, ideal};
}

SharedCost atomic_shared_cost(const uint32_t *address, unsigned bytes, uint32_t exec) {
    const Grouping group(bytes);
    uint8_t lanes[kLanes] = {};  // by phase and bank
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        ++lanes[(address[lane] >> group.shift & (group.slots - 1)) | (lane & ~(group.slots - 1))];
    }
    unsigned wavefronts = 0;
    for (unsigned first = 0; first < kLanes; first += group.slots) {
        wavefronts += *std::max_element(lanes + first, lanes + first + group.slots);
    }
    return {wavefronts, group.active_phases(exec)};
}

}  // namespace warpsim
