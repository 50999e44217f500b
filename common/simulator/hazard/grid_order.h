// What orders blocks of one launch: fences together with strong accesses (atomic, volatile, relaxed), accesses with
// .acquire or .release of their own, of device or system scope. After the memory model of the PTX manual ("Memory
// Consistency Model"): a release pattern is a fence followed by a strong write, an acquire pattern a strong read
// followed by a fence, and what is ordered is cumulative.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hazard/clocks.h"
#include "hazard/knowledge.h"

namespace warpsim {

// What was released at each address of a launch. It is never forgotten there, though in the model a later relaxed write
// by another thread ends it: that makes no alarm of a right program. Used by the block that has the turn only.
using ReleasedAt = std::unordered_map<uint64_t, Knowledge>;

// Of one team: which thread knows what of other teams. Events are kept with the stamp at which they happened; the
// team's own clocks tell which threads are ordered after them.
class GridOrder {
  public:
    void start(Clocks &, uint64_t team);
    // A fence of device scope or, if `system`, of system scope by these lanes of a warp.
    void fence(unsigned agent, uint32_t lanes, bool system);
    // A strong access by a lane in its block's turn, of device scope or wider; acquire, release: by the instruction.
    struct Strong {
        uint64_t address = 0;
        bool reads = false, writes = false, acquire = false, release = false;
        bool system = false;  // of system scope
    };
    // device: what was released at device scope or a wider one; system: what was at system scope, by other devices,
    // too; null: there are none.
    void access(unsigned agent, unsigned lane, const Strong &, ReleasedAt &device, ReleasedAt *system);
    // Lanes wait for the launches before this one in its stream (griddepcontrol.wait).
    void wait_for_launches(unsigned agent, uint32_t lanes);
    // Has a thread done so before what this one does now?
    bool has_waited(unsigned agent, unsigned lane) const;
    // Lanes meet at a barrier of their block: what they have seen at flags counts as acquired. In the model that takes
    // a fence; threads of a block that wait for one of them behind __syncthreads() is how most people write it, and
    // every device does what they mean. Before the clocks join the lanes.
    void meet(unsigned agent, uint32_t lanes);
    // What all threads of the team know by now needs no events. After the clocks have joined the lanes.
    void settle();

    bool differs_by_thread() const { return !acquired_.empty(); }
    // A number for what the thread knows of other teams now; 0: nothing.
    uint32_t known(unsigned agent, unsigned lane);
    const Knowledge &knowledge(uint32_t number) const { return numbered_[number]; }
    // Where there are more numbers than `many`: keep(number), to be called for those still in use, gives a new one.
    template <class EachUsed>
    void forget_unused(size_t many, EachUsed each_used) {
        if (numbered_.size() <= many) return;
        std::vector<Knowledge> old(1);
        old.swap(numbered_);
        numbers_.clear();
        std::unordered_map<uint32_t, uint32_t> again{{0, 0}};
        each_used([&](uint32_t number) {
            const auto [found, is_new] = again.try_emplace(number, uint32_t(numbered_.size()));
            if (is_new) numbered_.push_back(old[number]);
            return found->second;
        });
    }

  private:
    // Lanes of a warp learnt something, or fenced what they knew and did, at the stamp.
    struct Event {
        unsigned agent;
        uint32_t lanes, stamp;
        Knowledge what;
    };
    bool happened_before(const Event &, unsigned agent, unsigned lane) const;
    // What the team itself released may come back through another one: its clocks learn that.
    void learn(unsigned agent, uint32_t lanes, Knowledge);
    void add(std::vector<Event> &, Knowledge &base, Event);
    void fold(std::vector<Event> &, Knowledge &base, bool all);
    void new_era();
    Knowledge all_done(unsigned agent, uint32_t lanes);  // what the lanes know and did so far

    Clocks *clocks_ = nullptr;
    uint64_t team_ = 0;
    uint32_t era_ = 0;
    // What one scope's strong accesses and fences have led to, on their way to the pattern that they are part of.
    struct Scope {
        std::vector<Event> fenced;                     // that not all threads know of
        Knowledge fenced_by_all;                       // what all threads have of the others
        std::unordered_map<unsigned, Knowledge> seen;  // by thread: read at flags, and not fenced yet
    };
    void collect_seen(Scope &, unsigned agent, uint32_t lanes, Knowledge &);
    void note_fence(Scope &, const Event &);
    void read_at(Scope &, unsigned agent, unsigned lane, const Strong &, const ReleasedAt &);
    void write_at(const Scope &, unsigned agent, unsigned lane, const Strong &, ReleasedAt &);

    std::vector<Event> acquired_;  // that not all threads know of
    Knowledge acquired_by_all_;
    Scope device_, system_;
    std::vector<Event> waited_;  // for the launches before
    bool waited_by_all_ = false;
    std::vector<Knowledge> numbered_;
    std::unordered_map<uint64_t, uint32_t> numbers_;  // by acquired_ events, a bit each
};

}  // namespace warpsim
