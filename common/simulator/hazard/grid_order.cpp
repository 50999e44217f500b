#include "hazard/grid_order.h"

#include <algorithm>
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
    acquired_by_all_ = nullptr;
    device_ = {};
    system_ = {};
    waited_.clear();
    waited_by_all_ = false;
    numbered_.assign(1, nullptr);
    numbers_.clear();
}

// The clocks have begun again: what happened before is ordered before everything in the team.
void GridOrder::new_era() {
    if (era_ == clocks_->era()) return;
    era_ = clocks_->era();
    fold(acquired_, acquired_by_all_, true);
    fold(device_.fenced, device_.fenced_by_all, true);
    fold(system_.fenced, system_.fenced_by_all, true);
    waited_by_all_ = waited_by_all_ || !waited_.empty();
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
    if (!what) return;
    const Reach *own = reach_of(what, team_);
    if (own && own->era == era_ && !clocks_->know(agent, lanes, *own->stamps))
        clocks_->acquire(agent, lanes, own->stamps);
    add(acquired_, acquired_by_all_, {agent, lanes, clocks_->stamp(agent), std::move(what)});
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

// What lanes have read at flags, of which they take note now.
void GridOrder::collect_seen(Scope &scope, unsigned agent, uint32_t lanes, Knowledge &sum) {
    for (uint32_t rest = scope.seen.empty() ? 0 : lanes; rest; rest &= rest - 1) {
        const auto found = scope.seen.find(agent * kLanes + unsigned(std::countr_zero(rest)));
        if (found == scope.seen.end()) continue;
        sum = joined(sum, found->second);
        scope.seen.erase(found);
    }
}

void GridOrder::note_fence(Scope &scope, const Event &fence) {
    add(scope.fenced, scope.fenced_by_all, fence);
}

// A fence of system scope is one of device scope, too.
void GridOrder::fence(unsigned agent, uint32_t lanes, bool system) {
    new_era();
    Knowledge seen;
    collect_seen(device_, agent, lanes, seen);
    if (system) collect_seen(system_, agent, lanes, seen);
    learn(agent, lanes, std::move(seen));
    const uint32_t stamp = clocks_->stamp(agent);
    const Event event{agent, lanes, stamp, all_done(agent, lanes)};
    note_fence(device_, event);
    if (system) note_fence(system_, event);
}

void GridOrder::read_at(Scope &scope, unsigned agent, unsigned lane, const Strong &strong, const ReleasedAt &places) {
    const auto found = places.find(strong.address);
    if (found == places.end()) return;
    if (strong.acquire) {
        learn(agent, 1u << lane, found->second);
    } else {
        Knowledge &seen = scope.seen[agent * kLanes + lane];
        seen = joined(seen, found->second);
    }
}

void GridOrder::write_at(const Scope &scope, unsigned agent, unsigned lane, const Strong &strong, ReleasedAt &places) {
    Knowledge released = scope.fenced_by_all;
    if (strong.release) {
        released = all_done(agent, 1u << lane);
    } else {
        for (const Event &event : scope.fenced)
            if (happened_before(event, agent, lane)) released = joined(released, event.what);
    }
    if (!released) return;
    Knowledge &place = places[strong.address];
    place = joined(place, released);
}

void GridOrder::access(unsigned agent, unsigned lane, const Strong &strong, ReleasedAt &device, ReleasedAt *system) {
    new_era();
    if (strong.reads) read_at(device_, agent, lane, strong, device);
    if (strong.reads && strong.system && system) read_at(system_, agent, lane, strong, *system);
    if (strong.writes) write_at(device_, agent, lane, strong, device);
    if (strong.writes && strong.system && system) write_at(system_, agent, lane, strong, *system);
}

void GridOrder::meet(unsigned agent, uint32_t lanes) {
    if (device_.seen.empty() && system_.seen.empty()) return;
    new_era();
    Knowledge seen;
    collect_seen(device_, agent, lanes, seen);
    collect_seen(system_, agent, lanes, seen);
    learn(agent, lanes, std::move(seen));
}

void GridOrder::wait_for_launches(unsigned agent, uint32_t lanes) {
    if (waited_by_all_) return;
    new_era();
    Knowledge nothing;
    add(waited_, nothing, {agent, lanes, clocks_->stamp(agent), nullptr});
}

bool GridOrder::has_waited(unsigned agent, unsigned lane) const {
    return waited_by_all_ || std::any_of(waited_.begin(), waited_.end(),
                                         [&](const Event &event) { return happened_before(event, agent, lane); });
}

void GridOrder::settle() {
    if (!waited_by_all_)
        waited_by_all_ = std::any_of(waited_.begin(), waited_.end(),
                                     [&](const Event &e) { return clocks_->known_to_all(e.agent, e.stamp); });
    if (acquired_.empty() && device_.fenced.empty()) return;
    new_era();
    fold(acquired_, acquired_by_all_, false);
    fold(device_.fenced, device_.fenced_by_all, false);
    fold(system_.fenced, system_.fenced_by_all, false);
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
