#include "exec/coalescing.h"

#include <bit>

namespace warpsim {

namespace {

GlobalCost cost_of(unsigned sectors, unsigned lanes, unsigned bytes) {
    return {sectors, (lanes * bytes + kSectorBytes - 1) / kSectorBytes};
}

// Keeps the distinct values of value[0..count) in front; returns how many there are.
unsigned keep_distinct(uint64_t *value, unsigned count) {
    constexpr unsigned kSlots = 64;
    uint64_t table[kSlots], used = 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t v = value[i];
        unsigned slot = unsigned(v * 0x9e3779b97f4a7c15ull >> 58);
        while ((used >> slot & 1) && table[slot] != v) slot = (slot + 1) % kSlots;
        if (used >> slot & 1) continue;
        used |= 1ull << slot;
        table[slot] = v;
        value[kept++] = v;
    }
    return kept;
}

}  // namespace

GlobalCost global_cost(const uint64_t *address, unsigned bytes, uint32_t exec) {
    // Lanes that take part, close together; what is left repeats the last one.
    uint64_t packed[kLanes];
    const uint64_t *a = address;
    if (exec != kAllLanes) {
        unsigned count = 0;
        for (uint32_t rest = exec; rest; rest &= rest - 1) packed[count++] = address[std::countr_zero(rest)];
        for (const uint64_t last = packed[count - 1]; count < kLanes; ++count) packed[count] = last;
        a = packed;
    }
    // Ascending addresses, as nearly all are: every change from one lane to the next is a new one.
    uint32_t falls = 0, sectors = 0, lanes = 0;
    for (unsigned i = 1; i < kLanes; ++i) {
        falls += a[i] < a[i - 1];
        lanes += a[i] != a[i - 1];
        sectors += (a[i] ^ a[i - 1]) >= kSectorBytes;
    }
    if (falls == 0) return cost_of(sectors + 1, lanes + 1, bytes);
    if (a != packed) {
        for (unsigned i = 0; i < kLanes; ++i) packed[i] = a[i];
    }
    const unsigned distinct = keep_distinct(packed, kLanes);
    for (unsigned i = 0; i < distinct; ++i) packed[i] /= kSectorBytes;
    return cost_of(keep_distinct(packed, distinct), distinct, bytes);
}

}  // namespace warpsim
