#include "coalescing.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace compiler {
namespace {

using machine::Block, machine::Function, machine::Operation;

constexpr uint32_t no_variable = ~uint32_t{0};

// Places in a block are numbered: operation i reads at 4 i, writes at 4 i + 1, and assembly reads still at 4 i + 2.
struct Event {
    uint32_t block, time;
    bool is_use;
    uint32_t copied = no_variable;  // whose value the write copies
};

class Coalescing {
  public:
    explicit Coalescing(const Function &function)
        : function_(function), words_((function.variables.size() + 63) / 64), events_(function.variables.size()) {}

    std::vector<uint32_t> run() {
        find_events();
        find_live();
        const size_t count = function_.variables.size();
        parent_.resize(count);
        std::iota(parent_.begin(), parent_.end(), 0);
        members_.resize(count);
        for (uint32_t i = 0; i < count; ++i) members_[i] = {i};
        for (const Kind kind : {Kind::tied, Kind::of_next_turn, Kind::plain})
            for (uint32_t b = 0; b < function_.blocks.size(); ++b)
                for (const Operation &one : function_.blocks[b].operations)
                    if (one.is_copy && kind_of(one, b) == kind) try_to_join(one.defined[0], one.used[0]);
        std::vector<uint32_t> found(count);
        for (uint32_t i = 0; i < count; ++i) found[i] = root(i);
        return found;
    }

  private:
    // In the order in which copies go away. What a loop's next turn begins with comes before what is needed after the
    // loop, so that a new value is written to the register of the one before: wgmma may still be reading that, and this
    // is to be seen.
    enum class Kind { tied, of_next_turn, plain };

    Kind kind_of(const Operation &one, uint32_t block) const {
        if (one.is_tied) return Kind::tied;
        for (const uint32_t next : function_.blocks[block].successors)
            if (next <= block && has(live_in_[next], one.defined[0])) return Kind::of_next_turn;
        return Kind::plain;
    }

    using Set = std::vector<uint64_t>;

    static bool has(const Set &set, uint32_t one) { return set[one / 64] >> one % 64 & 1; }
    static void put(Set &set, uint32_t one) { set[one / 64] |= uint64_t{1} << one % 64; }

    void find_events() {
        for (uint32_t b = 0; b < function_.blocks.size(); ++b) {
            const auto &operations = function_.blocks[b].operations;
            for (uint32_t i = 0; i < operations.size(); ++i) {
                const Operation &one = operations[i];
                for (const uint32_t variable : one.used) {
                    events_[variable].push_back({b, 4 * i, true});
                    const bool in_place = std::count(one.defined.begin(), one.defined.end(), variable);
                    if (one.reads_late && !in_place) events_[variable].push_back({b, 4 * i + 2, true});
                }
                const uint32_t copied = one.is_copy ? one.used[0] : no_variable;
                for (const uint32_t variable : one.defined) events_[variable].push_back({b, 4 * i + 1, false, copied});
            }
        }
        for (auto &all : events_)
            std::sort(all.begin(), all.end(), [](const Event &a, const Event &b) {
                return std::tie(a.block, a.time) < std::tie(b.block, b.time);
            });
    }

    void find_live() {
        const size_t count = function_.blocks.size();
        std::vector<Set> reads(count, Set(words_)), writes(count, Set(words_));
        live_in_.assign(count, Set(words_));
        live_out_.assign(count, Set(words_));
        for (uint32_t variable = 0; variable < events_.size(); ++variable)
            for (size_t i = 0; i < events_[variable].size(); ++i) {
                const Event &one = events_[variable][i];
                const bool first = i == 0 || events_[variable][i - 1].block != one.block;
                if (first && one.is_use) put(reads[one.block], variable);
                if (!one.is_use) put(writes[one.block], variable);
            }
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t b = count; b-- > 0;) {
                Set &out = live_out_[b];
                for (const uint32_t next : function_.blocks[b].successors)
                    for (size_t w = 0; w < words_; ++w) out[w] |= live_in_[next][w];
                for (size_t w = 0; w < words_; ++w) {
                    const uint64_t in = reads[b][w] | (out[w] & ~writes[b][w]);
                    if (in != live_in_[b][w]) live_in_[b][w] = in, changed = true;
                }
            }
        }
    }

    uint32_t root(uint32_t one) {
        while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
        return one;
    }

    // Is the value that the variable has after this place read later?
    bool is_live_after(uint32_t variable, uint32_t block, uint32_t time) const {
        const auto &all = events_[variable];
        const auto next = std::upper_bound(all.begin(), all.end(), std::pair(block, time),
                                           [](const std::pair<uint32_t, uint32_t> &place, const Event &event) {
                                               return place < std::pair(event.block, event.time);
                                           });
        if (next != all.end() && next->block == block) return next->is_use;
        return has(live_out_[block], variable);
    }

    // Does writing `writer` destroy a value of `other` that is still needed, or do both at once? A copy of `other` does
    // not: both have the same value then.
    bool destroys(uint32_t writer, uint32_t other) const {
        for (const Event &event : events_[writer]) {
            if (event.is_use || event.copied == other) continue;
            if (is_live_after(other, event.block, event.time)) return true;
            for (const Event &own : events_[other])
                if (!own.is_use && own.block == event.block && own.time == event.time) return true;
        }
        return false;
    }

    void try_to_join(uint32_t a, uint32_t b) {
        a = root(a), b = root(b);
        if (a == b || function_.variables[a] != function_.variables[b]) return;
        for (const uint32_t one : members_[a])
            for (const uint32_t other : members_[b])
                if (destroys(one, other) || destroys(other, one)) return;
        if (members_[a].size() < members_[b].size()) std::swap(a, b);
        members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
        members_[b].clear();
        parent_[b] = a;
    }

    const Function &function_;
    const size_t words_;
    std::vector<std::vector<Event>> events_;  // by variable, in order
    std::vector<Set> live_in_, live_out_;     // by block
    std::vector<uint32_t> parent_;
    std::vector<std::vector<uint32_t>> members_;
};

}  // namespace

std::vector<uint32_t> coalesce(const machine::Function &function) {
    return Coalescing(function).run();
}

}  // namespace compiler
