// What a block has written to global memory and other blocks do not see yet: plain stores, by a schedule that lets them
// be late; and updates of values that nobody looks at, whose order does not matter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/warp.h"

namespace warpsim {

// Of a block, or of a cluster: its own threads see what waits here, for whatever they read is shown first.
class LateStores {
  public:
    // random: the state from which it draws when stores are shown that nobody waits for.
    void start(uint64_t random) { random_ = random; }
    bool empty() const { return lines_.empty(); }
    // to: where the host has those bytes of global memory.
    void store(std::byte *to, const std::byte *from, unsigned bytes);
    // Shows what waits of lines that have any of these bytes.
    void show(uint64_t host, uint64_t bytes);
    void show_all();
    // A turn of the block is over: stores do not wait for ever.
    void end_turn();

  private:
    static constexpr unsigned kLineBytes = 64;
    static constexpr size_t kMostLines = 4096;  // then all are shown
    static constexpr uint64_t kTurns = 8;       // that a store waits, on average
    struct Line {
        std::byte bytes[kLineBytes];
        uint64_t stored = 0;  // a bit for each byte
    };
    static void show_line(uint64_t line, const Line &);

    std::unordered_map<uint64_t, Line> lines_;  // by host address / kLineBytes
    uint64_t random_ = 1;
};

// Before global memory is read or written by other ways than lanes' addresses, and at whatever releases.
inline void show_stores(const Warp &w) {
    if (w.block->late_stores) [[unlikely]]
        w.block->late_stores->show_all();
}

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
