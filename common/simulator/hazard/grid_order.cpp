#include "hazard/grid_order.h"

#include <bit>
#include <utility>

namespace warpsim {

namespace {

// More events than this at once are rare; the oldest then count as known to all threads.
constexpr size_t kMostEvents = 64;

}  // namespace

void GridOrder::start(Clocks &clocks, uint64_t team) {
    clocks_ = &clocks;
    team_ = team;
    era_ = clocks.era();
    acquired_.clear();
    fenced_.clear();
    acquired_by_all_ = fenced_by_all_ = nullptr;
    seen_.clear();
    numbered_.assign(1, nullptr);
    numbers_.clear();
}

// The clocks have begun again: what happened before is ordered before everything in the team.
void GridOrder::new_era() {
    if (era_ == clocks_->era()) return;
    era_ = clocks_->era();
    fold(acquired_, acquired_by_all_, true);
    fold(fenced_, fenced_by_all_, true);
}

bool GridOrder::happened_before(const Event &event, unsigned agent, unsigned lane) const {
    if (event.agent == agent && (event.lanes >> lane & 1)) return true;
    for (uint32_t rest = event.lanes; rest; rest &= rest - 1)
        if (clocks_->ordered(agent, lane, event.agent, unsigned(std::countr_zero(rest)), event.stamp)) return true;
    return false;
}

void GridOrder::fold(std::vector<Event> &events, Knowledge &base, bool all) {
    const size_t before = events.size();
    std::erase_if(events, [&](const Event &event) {
        if (!all && !clocks_->known_to_all(event.agent, event.stamp)) return false;
        base = joined(base, event.what);
        return true;
    });
    if (events.size() != before && &events == &acquired_) numbers_.clear();
}

void GridOrder::add(std::vector<Event> &events, Knowledge &base, Event event) {
    if (events.size() == kMostEvents) {
        base = joined(base, events.front().what);
        events.erase(events.begin());
        if (&events == &acquired_) numbers_.clear();
    }
    events.push_back(std::move(event));
}

void GridOrder::learn(unsigned agent, uint32_t lanes, Knowledge what) {
    if (what) add(acquired_, acquired_by_all_, {agent, lanes, clocks_->stamp(agent), std::move(what)});
}

Knowledge GridOrder::all_done(unsigned agent, uint32_t lanes) {
    Clocks::Shared stamps;
    clocks_->release(agent, lanes, stamps);
    Knowledge own = std::make_shared<std::vector<Reach>>(1, Reach{team_, era_, std::move(stamps)});
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        own = joined(own, numbered_[known(agent, unsigned(std::countr_zero(rest)))]);
        if (!differs_by_thread()) break;
    }
    return own;
}

void GridOrder::fence(unsigned agent, uint32_t lanes) {
    new_era();
    Knowledge seen;
    for (uint32_t rest = seen_.empty() ? 0 : lanes; rest; rest &= rest - 1) {
        const auto found = seen_.find(agent * kLanes + unsigned(std::countr_zero(rest)));
        if (found == seen_.end()) continue;
        seen = joined(seen, found->second);
        seen_.erase(found);
    }
    learn(agent, lanes, std::move(seen));
    const uint32_t stamp = clocks_->stamp(agent);
    add(fenced_, fenced_by_all_, {agent, lanes, stamp, all_done(agent, lanes)});
}

void GridOrder::access(unsigned agent, unsigned lane, uint64_t address, bool reads, bool writes, bool acquire,
                       bool release, ReleasedAt &places) {
    new_era();
    if (reads) {
        if (const auto found = places.find(address); found != places.end()) {
            if (acquire) {
                learn(agent, 1u << lane, found->second);
            } else {
                Knowledge &seen = seen_[agent * kLanes + lane];
                seen = joined(seen, found->second);
            }
        }
    }
    if (!writes) return;
    Knowledge released = fenced_by_all_;
    if (release) {
        released = all_done(agent, 1u << lane);
    } else {
        for (const Event &event : fenced_)
            if (happened_before(event, agent, lane)) released = joined(released, event.what);
    }
    if (!released) return;
    Knowledge &place = places[address];
    place = joined(place, released);
}

void GridOrder::meet(unsigned agent, uint32_t lanes) {
    if (seen_.empty()) return;
    new_era();
    Knowledge seen;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const auto found = seen_.find(agent * kLanes + unsigned(std::countr_zero(rest)));
        if (found == seen_.end()) continue;
        seen = joined(seen, found->second);
        seen_.erase(found);
    }
    learn(agent, lanes, std::move(seen));
}

void GridOrder::settle() {
    if (acquired_.empty() && fenced_.empty()) return;
    new_era();
    fold(acquired_, acquired_by_all_, false);
    fold(fenced_, fenced_by_all_, false);
}

uint32_t GridOrder::known(unsigned agent, unsigned lane) {
    if (acquired_.empty() && !acquired_by_all_) return 0;
    new_era();
    uint64_t key = 0;
    for (size_t i = 0; i < acquired_.size(); ++i) key |= uint64_t(happened_before(acquired_[i], agent, lane)) << i;
    const auto [number, is_new] = numbers_.try_emplace(key, uint32_t(numbered_.size()));
    if (is_new) {
        Knowledge sum = acquired_by_all_;
        for (uint64_t rest = key; rest; rest &= rest - 1)
            sum = joined(sum, acquired_[size_t(std::countr_zero(rest))].what);
        numbered_.push_back(std::move(sum));
    }
    return number->second;
}

}  // namespace warpsim
