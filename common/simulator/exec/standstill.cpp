#include "exec/standstill.h"

#include <algorithm>
#include <set>

#include "exec/cluster.h"

namespace warpsim {

namespace {

constexpr unsigned kMostRounds = 64;  // of a block's warps: more than the waits that end in vain

const Fragment *fragment_of(const Trail &t) {
    for (uint32_t i = 0; i < t.warp->count; ++i)
        if (t.warp->fragments[i].mask == t.mask) return &t.warp->fragments[i];
    return nullptr;
}

const Trail *trail_of(const std::vector<Trail> &trails, const WarpContext &w, const Fragment &f) {
    for (const Trail &t : trails)
        if (t.warp == &w && t.mask == f.mask) return &t;
    return nullptr;
}

// Whether each fragment has come back to a state of its, but for those that do nothing but wait while the others did.
bool is_settled(const std::vector<Trail> &trails, const std::vector<WarpContext *> &warps) {
    uint64_t begin = ~0ull;
    for (const Trail &t : trails)
        if (t.repeated) begin = std::min(begin, t.since);
    const auto settled = [&](const WarpContext &w, const Fragment &f) {
        const Trail *const own = trail_of(trails, w, f);
        if (own && own->repeated) return true;
        if (f.wait == Wait::nothing) return false;
        // Lanes that asked for a phase in vain will ask again.
        return std::none_of(trails.begin(), trails.end(), [&](const Trail &t) {
            return t.warp == &w && (t.mask & f.mask) && (t.ran >= begin || f.wait == Wait::mbarrier);
        });
    };
    for (const WarpContext *const w : warps)
        for (uint32_t i = 0; i < w->count; ++i)
            if (!settled(*w, w->fragments[i])) return false;
    return true;
}

// A round of the team's warps: each fragment that is ready, also those that come of it. False: something goes on, or
// nothing can be said.
bool follow_all(Watch &watch, const std::vector<WarpContext *> &warps, bool &ran) {
    for (WarpContext *const w : warps) {
        std::set<uint32_t> followed;  // by their lanes
        for (uint32_t i = 0; i < w->count;) {
            const Fragment &f = w->fragments[i];
            if (f.wait != Wait::nothing || !followed.insert(f.mask).second) {
                ++i;
                continue;
            }
            ran = true;
            if (!watch.follow(*w, i)) return false;
            i = 0;
        }
    }
    return true;
}

uint64_t mbarrier_changes(const Team &team) {
    uint64_t sum = 0;
    for (const BlockContext *block : team) sum += block->arriving.changes;
    return sum;
}

// Ticks: a quarter of an hour. Half of 2^32 is in it, so that a difference of 32 bits shows a long time, too.
constexpr uint64_t kLongTime = (200ull << 32) + (1ull << 31);

}  // namespace

Verdict Standstill::add_later(BlockContext &first) {
    BlockContext *const leader = &first;
    for (BlockContext *block : team_of(leader)) {
        block->clock_lead += kLongTime;
        block->clock_stands_at = block->now + block->clock_lead;
    }
    const Verdict verdict = add(first);
    for (BlockContext *block : team_of(leader)) block->clock_stands_at = 0;
    return verdict;
}

Verdict Standstill::add(BlockContext &first) {
    if (is_over(first)) return Verdict::goes_on;
    BlockContext *const leader = &first;
    const Team team = team_of(leader);
    std::vector<WarpContext *> warps;
    for (BlockContext *block : team)
        for (const auto &w : block->contexts) warps.push_back(w.get());
    const uint64_t changes = mbarrier_changes(team);
    Watch watch;
    for (; watch.round < kMostRounds; ++watch.round) {
        bool ran = false;
        const bool followed = follow_all(watch, warps, ran);
        if (watch.reads_clock()) return Verdict::reads_clock;
        if (watch.changed() || is_over(first) || mbarrier_changes(team) != changes) return Verdict::goes_on;
        if (!followed) return Verdict::uncertain;
        const bool settled = is_settled(watch.trails(), warps);
        // Waits for mbarriers end in vain: who asks in a loop must come back to where it was, too.
        const bool released = !(settled && watch.round >= kVainRounds) && release_waits_in_vain(first);
        if (released || (!settled && ran)) continue;
        if (!settled) break;
        for (Trail &t : watch.trails()) {
            const Fragment *f = fragment_of(t);
            if (f && f->wait == Wait::nothing) trails_.push_back(std::move(t));
        }
        seen_.insert(watch.seen().begin(), watch.seen().end());
        return Verdict::still;
    }
    return Verdict::uncertain;
}

}  // namespace warpsim
