// Whether lanes that run can ever do anything again: they are run alone, op by op, until they come back to the very
// state in which they were before. If they changed nothing on their way that anybody else sees, and read no clock, then
// they will go round for ever, unless another thread changes what they read.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "exec/context.h"
#include "exec/memory.h"

namespace warpsim {

// A load or an atomic, as lanes executed it last.
struct Polled {
    uint32_t op = kNoSlot;
    unsigned lane = 0;     // the first
    uint64_t address = 0;  // its: of the device, or the offset in shared memory
    bool shared = false;
    bool strong = false;  // an atomic, or volatile, relaxed, acquire
};

// Bytes of global memory that lanes read while they were watched: as long as these stay, so does what they do.
struct Seen {
    const std::byte *host = nullptr;
    unsigned count = 0;
    std::array<std::byte, 32> held{};
    bool is_same() const { return std::memcmp(host, held.data(), count) == 0; }
};

// The way of the lanes of one fragment.
struct Trail {
    WarpContext *warp = nullptr;
    uint32_t mask = 0;
    uint32_t pc = kNoSlot;         // where the state was saved
    std::vector<std::byte> state;  // registers of all calls in progress, local memory
    uint64_t steps = 0, next = 1;  // places that it came to; at which of them the state is saved again
    uint64_t saved = 0, ran = 0;   // rounds of the watch: of that state, the last one in which it ran
    bool repeated = false;         // it came back to a state, which was saved in round `since`
    uint64_t since = 0;
    std::vector<Polled> polled;  // since the state was saved
};

class Watch {
  public:
    // Runs a fragment that is ready, and no other of its warp, until it has come back to its state, waits, splits or
    // meets others. False: it does something, or it has run for so long that nothing can be said .
    bool follow(WarpContext &, uint32_t fragment);
    // Something was changed or sent, or depends on a clock or on the host.
    bool changed() const { return changed_; }
    // The first such thing was a look at a clock that goes.
    bool reads_clock() const { return reads_clock_; }
    uint64_t round = 0;
    // By address. Read while nothing was changed.
    const std::map<uint64_t, Seen> &seen() const { return seen_; }
    std::vector<Trail> &trails() { return trails_; }

    // For the warp's loop, before and after an op is executed by `lanes`.
    class Look {
      public:
        Look(Watch &, const WarpContext &, const Op &, uint32_t lanes);
        Look(const Look &) = delete;
        Look &operator=(const Look &) = delete;
        ~Look();

      private:
        Watch &watch_;
        std::vector<Seen> before_;  // of what the op may change
    };
    // For the warp's loop: the fragment comes to op `pc`. True: it need not go on.
    bool comes_to(const WarpContext &, const Fragment &, uint32_t pc);

  private:
    Trail &trail_of(WarpContext &, uint32_t mask);
    void note(Polled);

    std::vector<Trail> trails_;
    std::map<uint64_t, Seen> seen_;
    Trail *current_ = nullptr;
    bool changed_ = false, reads_clock_ = false, stopped_ = false;
};

// exec/warp_loop.cpp: as run_warp, looked at by the watch.
Progress watch_warp(WarpContext &, uint64_t slice, Watch &);

}  // namespace warpsim
