// Updates of global memory that a host thread keeps to itself until something may look at them. Host threads that
// update the same counters would otherwise pass their cache lines to and fro.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpsim {

// Only for programs all of whose updates do the same and may come in any order (Program::updates_commute). Their blocks
// do not see each other; what a block itself may see is written before it looks.
class PendingUpdates {
  public:
    // Carries out an update by `value` of the element at `place`, also for other host threads.
    using Apply = void (*)(std::byte *place, uint64_t value);

    // An update by `value`, an element of type T; both(a, b) is what two updates come to.
    template <class T, class Both>
    void add(std::byte *place, T value, Apply apply, Both both) {
        const size_t index = reinterpret_cast<uintptr_t>(place) / sizeof(T) % kEntries;
        Entry &entry = entries_[index];
        if (entry.place == place) {
            entry.value = both(T(entry.value), value);
            return;
        }
        apply_ = apply;
        if (entry.place) {
            apply(entry.place, entry.value);
        } else {
            used_.push_back(uint16_t(index));
        }
        entry = {place, value};
    }

    // An access of device memory from address `low` up to `high`, the last byte: an update, or one that may see some.
    void meet(uint64_t low, uint64_t high, bool update) {
        if (update) {
            low_ = std::min(low_, low);
            high_ = std::max(high_, high);
        } else if (low <= high_ && high >= low_) {
            flush();
        }
    }

    void flush() {
        for (uint16_t index : used_) {
            apply_(entries_[index].place, entries_[index].value);
            entries_[index].place = nullptr;
        }
        used_.clear();
        low_ = ~0ull;
        high_ = 0;
    }

  private:
    static constexpr size_t kEntries = 1024;  // few enough for the CPU's first cache
    struct Entry {
        std::byte *place = nullptr;
        uint64_t value = 0;
    };

    std::array<Entry, kEntries> entries_;  // by address
    std::vector<uint16_t> used_;           // entries that hold an update
    uint64_t low_ = ~0ull, high_ = 0;      // device addresses of all of them
    Apply apply_ = nullptr;
};

}  // namespace warpsim
