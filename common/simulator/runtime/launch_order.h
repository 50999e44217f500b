// Which operations of streams are ordered, by what the program asked for and not by when they ran: vector clocks. A
// lane is a stream, or one of the branches of a graph that it launches; a step is an operation's number there.
//
// And their conflicts: two that nothing orders touch the same bytes, and one of them writes. Each operation for which
// another one may be unordered leaves what it touched (hazard/footprint.h) until everything that can still come is
// ordered behind it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/options.h"
#include "core/statistics.h"
#include "hazard/footprint.h"
#include "hazard/grid_order.h"

namespace warpsim::rt {

// Of each lane the last step that is known to come before.
class Clock {
  public:
    uint64_t at(uint32_t lane) const;
    void advance(uint32_t lane, uint64_t step);
    void join(const Clock &);
    void join(const std::shared_ptr<const Clock> &other) {
        if (other) join(*other);
    }

  private:
    std::vector<std::pair<uint32_t, uint64_t>> steps_;  // by lane
};

using SharedClock = std::shared_ptr<const Clock>;

// An operation's place in that order.
struct Mark {
    uint32_t lane = 0;
    uint64_t step = 0;
    SharedClock before;  // what it comes after
    // Of one lane, or of one operation: what a kernel launches itself is part of it.
    bool follows(const Mark &other) const {
        return (lane == other.lane && step >= other.step) || (before && before->at(other.lane) >= other.step);
    }
};

class Runtime;
struct Operation;
struct Stream;

// What a copy, a fill, a free or an allocation touches: `rows` of `width` bytes, `pitch` apart, in each of the planes.
struct TouchedRegion {
    uint64_t address = 0, width = 0, pitch = 0, rows = 1, plane = 0, planes = 1;
    bool writes = false;
    uint64_t fill = 0;  // other than 0: stands for what is written everywhere
};

// An operation that is over, or is about to be.
struct Touched {
    Mark mark;
    uint64_t order = 0;  // of the calls
    unsigned device = 0;
    bool is_launch = false, is_free = false, is_allocation = false, non_blocking = false, is_default = false;
    bool in_graph = false;
    bool triggers = false, waits = false;  // a kernel that lets the next one begin, that waits for the one before
    int64_t stream = 0;
    std::string name;       // "kernel f", "cudaMemcpyAsync"
    Footprint all, before;  // before: by threads that had not waited for the launches before
    bool overtakes = false;
    Mark overtaken;  // by it
};

// Of an operation that is no launch: says its hazards, and fails with them unless they are to be warnings.
void tell(Runtime &, LaunchReport);

class LaunchOrder {
  public:
    explicit LaunchOrder(const Options &options) : options_(options) {}

    // Numbers for so many teams of a launch.
    uint64_t number_teams(uint64_t teams) { return std::exchange(next_team_, next_team_ + teams); }
    ReleasedAt &released_on(unsigned device) { return released_[device]; }
    ReleasedAt &released_to_system() { return released_to_system_; }

    // Some operation that is over is not ordered with this one.
    bool has_unordered(const Mark &) const;
    // Compares it with those that it is not ordered with, and keeps it. What is said names the device where there are
    // several.
    std::vector<HazardRecord> add(const Runtime &, Touched);
    // Of a copy, a fill, a free or an allocation: says the conflicts, and that they are an error. One that writes an
    // element's bytes sets a flag: who reads it at system scope and acquires comes after all that the stream has done
    // before.
    void add_regions(Runtime &, Touched, const std::vector<TouchedRegion> &);
    // Forgets what nothing that can still come is unordered with: for its mark is_ordered_with_all answers true.
    // nothing_runs: no launch has paused, so that what was released before the last of them matters no more, either.
    void forget(const std::function<bool(const Mark &)> &is_ordered_with_all, bool nothing_runs);
    void clear();
    // Frees memory once nothing that can still come is unordered with the operation that frees it. False: it has been
    // freed so already.
    bool release_later(const Mark &, uint64_t address);

  private:
    const Touched *find(const Mark &) const;
    std::vector<const Touched *> not_awaited(const Touched &) const;
    void forget_released();
    void set_flag(const Mark &, uint64_t address);
    bool told(const Knowledge &, const Mark &) const;

    const Options &options_;
    uint64_t next_team_ = 1ull << 32;  // beyond those of launches that are alone
    std::vector<Touched> kept_;
    std::map<uint64_t, Mark> released_later_;   // by address
    std::unordered_map<uint64_t, Mark> flags_;  // what set them, by the team's number that stands for it
    std::array<ReleasedAt, kMostDevices> released_;
    ReleasedAt released_to_system_;
};

}  // namespace warpsim::rt
