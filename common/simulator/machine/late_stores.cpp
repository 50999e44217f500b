#include "machine/late_stores.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/context.h"

namespace warpsim {

void LateStores::store(std::byte *to, const std::byte *from, unsigned bytes) {
    for (uint64_t at = reinterpret_cast<uint64_t>(to); bytes;) {
        const unsigned first = unsigned(at % kLineBytes), here = std::min(bytes, kLineBytes - first);
        Line &line = lines_[at / kLineBytes];
        std::memcpy(line.bytes + first, from, here);
        line.stored |= (here == kLineBytes ? ~0ull : (1ull << here) - 1) << first;
        at += here;
        from += here;
        bytes -= here;
    }
    if (lines_.size() > kMostLines) show_all();
}

// Bytes that nobody here has stored may be another block's, so only those that were stored are written.
void LateStores::show_line(uint64_t number, const Line &line) {
    std::byte *const to = reinterpret_cast<std::byte *>(number * kLineBytes);
    for (uint64_t rest = line.stored; rest;) {
        const unsigned first = unsigned(std::countr_zero(rest)), count = unsigned(std::countr_one(rest >> first));
        std::memcpy(to + first, line.bytes + first, count);
        rest &= first + count == kLineBytes ? 0 : ~0ull << (first + count);
    }
}

void LateStores::show(uint64_t host, uint64_t bytes) {
    if (lines_.empty() || !bytes) return;
    const uint64_t first = host / kLineBytes, last = (host + bytes - 1) / kLineBytes;
    if (last - first >= lines_.size()) return show_all();
    for (uint64_t number = first; number <= last; ++number) {
        const auto found = lines_.find(number);
        if (found == lines_.end()) continue;
        show_line(number, found->second);
        lines_.erase(found);
    }
}

void LateStores::show_all() {
    for (const auto &[number, line] : lines_) show_line(number, line);
    lines_.clear();
}

void LateStores::end_turn() {
    if (!lines_.empty() && next_random(random_) % kTurns == 0) show_all();
}

}  // namespace warpsim
