// Whether blocks can ever go on, which is found out by running them on; and what is said of threads that wait for ever:
// once for each cause, with the warps that it holds.
//
// Lanes that run are run alone, op by op, until they come back to the very state in which they were before. If they
// changed nothing on their way that anybody else sees, and read no clock, then they will go round for ever, unless
// another thread changes what they read.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "machine/addresses.h"
#include "machine/context.h"

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
    std::string phase;           // the phase of an mbarrier that it asked for last, in words
    uint32_t asked = kNoSlot;    // by which op
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
    void note_wait(const WarpContext &, const Op &, uint32_t lanes);

    std::vector<Trail> trails_;
    std::map<uint64_t, Seen> seen_;
    Trail *current_ = nullptr;
    bool changed_ = false, reads_clock_ = false, stopped_ = false;
};

// scheduler/warp_loop.cpp: as run_warp, looked at by the watch.
Progress watch_warp(WarpContext &, uint64_t slice, Watch &);

enum class Verdict : uint8_t {
    goes_on,      // something was changed, or the host may change what is read
    reads_clock,  // a clock was read, and nothing changed up to there
    uncertain,    // nothing was, but some lanes never came back to the state in which they were before
    still,        // each fragment waits, or goes round and changes nothing
};

// How often waits for mbarriers end in vain before somebody looks whether they always will.
inline constexpr unsigned kVainRounds = 8;

// instructions/mbarrier/mbarrier.cpp: waits for mbarriers end in vain now. False: the team has none.
bool release_waits_in_vain(BlockContext &first);

class Standstill {
  public:
    // Runs the block, or its cluster, in its turn where blocks take turns. Throws as ops do, and LaunchAborted when a
    // budget is used up.
    Verdict add(BlockContext &first);
    // The same while all clocks of the block stand, so that threads that look at a clock come back, too. Never
    // Verdict::reads_clock.
    Verdict add_now(BlockContext &first);
    // The same after a long time has passed: of threads that look at a clock it tells whether they go round for ever.
    Verdict add_later(BlockContext &first);
    // The fragments that go round, after all blocks have been found to stand still.
    const std::vector<Trail> &rounds() const { return trails_; }
    // What the blocks that stand still have read: they do so until some of it changes.
    const std::map<uint64_t, Seen> &seen() const { return seen_; }

  private:
    std::vector<Trail> trails_;
    std::map<uint64_t, Seen> seen_;
};

// Nothing in the block, or in its cluster, can go on. (report_deadlock of machine/context.h: all of its threads wait.)
[[noreturn]] void report_standstill(BlockContext &, const Standstill &);

// Nothing in any of the blocks can go on; those from `admitted` on, of `teams` in all, have not started.
[[noreturn]] void report_standstill(std::vector<BlockContext *>, const Standstill &, uint64_t admitted,
                                    uint64_t resident);

// instructions/barrier/barrier.cpp: "barrier 1, where 32 of 64 threads have arrived"
std::string barrier_wait_text(const BlockContext &, const Fragment &);

}  // namespace warpsim
