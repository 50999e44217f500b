// Blocks that see each other's progress, on several host threads, with an outcome that does not depend on them.
//
// An ordered op (atomics, volatile and acquire loads, release stores, the heap) is executed only in its block's turn.
// Between two turns a block runs by itself until each of its warps waits at an ordered op, at a barrier or has exited,
// or until it has run for long. One block after the other has the turn, in an order that only the blocks themselves
// decide; in the meantime other host threads run other blocks up to their next turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "machine/context.h"
#include "scheduler/standstill.h"

namespace warpsim {

// Whether the op is one of global memory for any of the lanes: a generic address may lead elsewhere.
bool meets_other_blocks(const Warp &, const Op &, uint32_t lanes);

class Turns {
  public:
    // resident: how many blocks can wait for each other.
    Turns(LaunchShared &, uint64_t resident);
    ~Turns();
    // One host thread's work; returns when the launch is over, or pauses. Never throws.
    void work(Worker &);
    // Whether a launch that stands still pauses, because something else may help it on, and is not reported.
    void let_pause(bool may) { may_pause_ = may; }
    bool has_paused() const { return pause_ != Pause::none; }
    // It paused although nothing shows that it stands still: it has only been the same for long.
    bool is_undecided() const { return pause_ == Pause::undecided; }
    // What it has read is no longer what it was.
    bool may_go_on() const;
    void resume();

  private:
    enum class State : uint8_t { fresh, running, waiting };
    struct Place {
        uint64_t id = 0;     // of the block, or of the cluster that it is the first of
        uint64_t total = 0;  // instructions of the launch when it was admitted
        State state = State::fresh;
        bool started = false, had_turn = false;
        std::unique_ptr<BlockContext> block;
    };

    Place *next();
    void run_apart(Place &, Worker &);
    bool run_turn(Place &, Worker &);
    void pass_on(Place &, bool over);
    bool is_long_the_same() const;
    enum class Pause : uint8_t { none, still, undecided };
    void pause(Pause, Place &front);
    void show_left(bool all);
    void check_standstill(Place &front, Worker &, std::unique_lock<std::mutex> &);
    void abandon_failed();
    void admit();
    void wake();

    LaunchShared &launch_;
    const uint64_t resident_;
    uint64_t random_;
    uint64_t admitted_ = 0, spinning_ = 0;
    uint64_t same_ = 0, patience_ = 0;  // turns since a block was last admitted or over; how many before a look
    bool may_pause_ = false;
    Pause pause_ = Pause::none;
    unsigned looks_ = 0;  // in a row that found nothing out
    unsigned timed_ = 0;  // pauses in a row in which nothing but clocks moved
    std::map<uint64_t, Seen> seen_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::atomic<uint64_t> events_{0};
    unsigned idle_ = 0;
    std::deque<std::unique_ptr<Place>> queue_;  // the front has the turn
    std::deque<Place *> fresh_;                 // in the queue's order
    std::vector<std::unique_ptr<BlockContext>> free_;
    // Of blocks that are over: only the end of the launch shows their stores for certain.
    std::vector<std::unique_ptr<LateStores>> left_;
};

}  // namespace warpsim
