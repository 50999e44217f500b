// Which operations of streams are ordered, by what the program asked for and not by when they ran: vector clocks. A
// lane is a stream, or one of the branches of a graph that it launches; a step is an operation's number there.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

}  // namespace warpsim::rt
