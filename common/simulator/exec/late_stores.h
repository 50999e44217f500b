// Plain stores that other blocks do not see yet.
//
// A GPU promises that a plain store is seen by other blocks only behind a fence, a release or the end of the launch. By
// the default schedule the simulator shows each store at once. By another one (WARPSIM_SCHEDULE), where the blocks of a
// kernel communicate, a block's stores wait here until it must show them, or for some of its turns. So a missing fence
// can also be seen as a wrong number, and a program that is right never changes its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

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

}  // namespace warpsim
