// Events: marks in streams, with the time at which the stream passed them.
#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "runtime/scheduler.h"

namespace warpsim::rt {

struct Event {
    using Clock = std::chrono::steady_clock;

    unsigned flags = 0;
    unsigned device = 0;
    // The latest record: each has its own time, since an earlier one may still be queued.
    Ticket ticket;
    std::shared_ptr<Clock::time_point> time;
    std::shared_ptr<Graph> captured;  // recorded in a stream under capture, behind these
    std::vector<Graph::Node *> captured_tails;

    bool done() const { return ticket.done(); }
};

class Events {
  public:
    std::shared_ptr<Event> create(unsigned flags);
    // Throws Failure{cudaErrorInvalidResourceHandle}.
    std::shared_ptr<Event> resolve(cudaEvent_t) const;
    void destroy(cudaEvent_t);
    void clear() { events_.clear(); }
    void clear(unsigned device);

    // A time later than any before it, so that durations are never 0.
    Event::Clock::time_point now();

  private:
    std::map<cudaEvent_t, std::shared_ptr<Event>> events_;
    Event::Clock::time_point last_{};
};

}  // namespace warpsim::rt
