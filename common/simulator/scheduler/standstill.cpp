#include "scheduler/standstill.h"

#include <algorithm>
#include <bit>
#include <set>

#include "machine/cluster.h"
#include "machine/core_ops.h"
#include "memory/global_memory.h"

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

Verdict Standstill::add_now(BlockContext &first) {
    BlockContext *const leader = &first;
    for (BlockContext *block : team_of(leader)) block->clock_stands_at = block->now + block->clock_lead;
    const Verdict verdict = add(first);
    for (BlockContext *block : team_of(leader)) block->clock_stands_at = 0;
    return verdict;
}

Verdict Standstill::add_later(BlockContext &first) {
    BlockContext *const leader = &first;
    for (BlockContext *block : team_of(leader)) block->clock_lead += kLongTime;
    return add_now(first);
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

namespace {

constexpr uint64_t kMostFollowed = 1 << 16;           // instructions of a fragment
constexpr uint64_t kMostState = 4ull << 20;           // bytes of a fragment's state
constexpr uint64_t kMostChanged = sizeof Seen::held;  // bytes that an op may read or change for a lane
constexpr unsigned kMostPolled = 16;                  // places that a fragment polls, of which reports may tell

enum class Effect : uint8_t { none, reads, writes, any };

// What an op may do to others. Local memory is the lanes' own, and part of their state.
Effect effect_of(const Op &op) {
    switch (op.cls) {
        case OpClass::load_global:
        case OpClass::load_shared:
        case OpClass::load_generic:
            return Effect::reads;
        case OpClass::store_global:
        case OpClass::store_shared:
        case OpClass::store_generic:
        case OpClass::atomic:
            return op.fn == exec_remote ? Effect::any : Effect::writes;
        case OpClass::barrier:
            return op.flow == Flow::straight || op.flow == Flow::yield ? Effect::any : Effect::none;
        case OpClass::mbarrier:
            return op.flow == Flow::mbarrier_wait ? Effect::none : Effect::any;
        case OpClass::control:
            return op.flow == Flow::exit || op.flow == Flow::yield || op.flow == Flow::ordered ? Effect::any
                                                                                               : Effect::none;
        case OpClass::other:
            return op.fn == exec_nothing ? Effect::none : Effect::any;
        case OpClass::stmatrix:
        case OpClass::warpgroup:
        case OpClass::async_copy:
        case OpClass::bulk_copy:
        case OpClass::tensor_copy:
        case OpClass::surface:
            return Effect::any;
        default:
            return Effect::none;
    }
}

MemorySpace space_accessed(const Op &op) {
    switch (op.cls) {
        case OpClass::load_shared:
        case OpClass::store_shared:
            return MemorySpace::shared;
        case OpClass::load_global:
        case OpClass::store_global:
            return MemorySpace::global;
        case OpClass::atomic:
            return space_of(op);
        default:
            return MemorySpace::generic;
    }
}

// Calls visit(bytes, count) for each piece of a fragment's state, until that returns false.
template <class Visit>
bool each_piece(const WarpContext &w, const Fragment &f, Visit visit) {
    if (!visit(&w.carry, sizeof w.carry)) return false;
    for (const Frame *frame = f.frame; frame; frame = frame->parent) {
        const bool more = visit(&frame->function, sizeof frame->function) &&
                          visit(&frame->return_pc, sizeof frame->return_pc) &&
                          visit(frame->regs, frame->function->frame_bytes);
        if (!more) return false;
    }
    return !w.local || visit(w.local, w.local_bytes * kLanes);
}

void save_state(const WarpContext &w, const Fragment &f, std::vector<std::byte> &state) {
    state.clear();
    each_piece(w, f, [&](const void *from, size_t count) {
        const auto *bytes = static_cast<const std::byte *>(from);
        state.insert(state.end(), bytes, bytes + count);
        return true;
    });
}

bool is_state(const WarpContext &w, const Fragment &f, const std::vector<std::byte> &state) {
    size_t at = 0;
    const bool equal = each_piece(w, f, [&](const void *from, size_t count) {
        const bool same = count <= state.size() - at && std::memcmp(state.data() + at, from, count) == 0;
        at += count;
        return same;
    });
    return equal && at == state.size();
}

uint64_t state_bytes(const WarpContext &w, const Fragment &f) {
    uint64_t sum = 0;
    each_piece(w, f, [&](const void *, size_t count) { return sum += count, true; });
    return sum;
}

}  // namespace

Watch::Look::Look(Watch &watch, const WarpContext &w, const Op &op, uint32_t lanes) : watch_(watch) {
    const Effect effect = lanes ? effect_of(op) : Effect::none;
    const bool exits = lanes && op.flow == Flow::ret && !w.frame->parent;
    if (lanes && op.fn == exec_read_clock && !w.owner->clock_stands_at) {
        watch.reads_clock_ = watch.reads_clock_ || !watch.changed_;
        watch.changed_ = true;
    }
    if (lanes && op.flow == Flow::mbarrier_wait) watch.note_wait(w, op, lanes);
    const bool is_held_back = op.cls == OpClass::atomic && w.block->pending;
    if (effect == Effect::none && !exits) return;
    if (effect == Effect::any || exits || is_held_back) {
        watch.changed_ = true;
        return;
    }
    if (op.fn == exec_remote) return;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    const MemorySpace space = space_accessed(op);
    bool first = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const uint64_t window = space == MemorySpace::generic ? address[lane] & kWindowMask : 0;
        if (window && window != kSharedWindow) continue;
        const bool shared = space == MemorySpace::shared || window == kSharedWindow;
        const uint64_t at = address[lane] - window;
        const std::byte *host = nullptr;
        uint64_t there = 0;
        if (shared) {
            host = w.block->shared + at;
            there = at < w.block->shared_bytes ? w.block->shared_bytes - at : 0;
        } else if (const AllocationView *view = w.block->global->find(at)) {
            // Another thread of the host's may write what it sees, too.
            if (view->adopted || view->kind == MemoryKind::pinned || view->kind == MemoryKind::managed)
                watch.changed_ = true;
            host = view->at(at);
            there = view->bytes - std::min(view->bytes, at - view->base);
        }
        if (!there) watch.changed_ = true;  // it fails
        if (!there || watch.changed_) return;
        const bool strong = op.cls == OpClass::atomic || (op.extra & kStrong);
        if (first && (effect == Effect::reads || op.cls == OpClass::atomic))
            watch.note({op.index, lane, at, shared, strong});
        first = false;
        Seen bytes{host, unsigned(std::min(there, kMostChanged)), {}};
        std::memcpy(bytes.held.data(), host, bytes.count);
        if (!shared && (effect == Effect::reads || op.cls == OpClass::atomic)) watch.seen_.emplace(at, bytes);
        if (effect != Effect::reads) before_.push_back(bytes);
    }
}

Watch::Look::~Look() {
    for (const Seen &bytes : before_)
        if (!bytes.is_same()) watch_.changed_ = true;
}

void Watch::note(Polled polled) {
    std::vector<Polled> &list = current_->polled;
    const auto same = [&](const Polled &p) { return p.op == polled.op; };
    list.erase(std::remove_if(list.begin(), list.end(), same), list.end());
    if (list.size() == kMostPolled) list.erase(list.begin());
    list.push_back(polled);
}

void Watch::note_wait(const WarpContext &w, const Op &op, uint32_t lanes) {
    Fragment asking;
    asking.pc = op.index;
    asking.mask = lanes;
    asking.frame = w.frame;
    current_->phase = mbarrier_wait_text(*w.owner, w, asking);
    current_->asked = op.index;
}

bool Watch::comes_to(const WarpContext &w, const Fragment &f, uint32_t pc) {
    Trail &t = *current_;
    if (changed_ || f.mask != t.mask) return true;
    ++t.steps;
    if (t.pc == pc && is_state(w, f, t.state)) {
        if (t.repeated) return stopped_ = true;  // and it has not come to a wait since
        t.repeated = true;
        t.since = t.saved;
    }
    if (t.steps >= t.next) {
        t.next *= 2;
        t.pc = pc;
        save_state(w, f, t.state);
        t.saved = round;
        t.polled.clear();
    }
    return false;
}

Trail &Watch::trail_of(WarpContext &w, uint32_t mask) {
    for (Trail &t : trails_)
        if (t.warp == &w && t.mask == mask) return t;
    trails_.emplace_back();
    trails_.back().warp = &w;
    trails_.back().mask = mask;
    return trails_.back();
}

bool Watch::follow(WarpContext &w, uint32_t fragment) {
    const uint32_t mask = w.fragments[fragment].mask;
    if (state_bytes(w, w.fragments[fragment]) > kMostState) return false;
    current_ = &trail_of(w, mask);
    Trail &t = *current_;
    t.ran = round;
    t.repeated = stopped_ = false;
    const uint64_t begin = w.owner->now;
    const auto find = [&] {
        return std::find_if(w.fragments.begin(), w.fragments.begin() + w.count,
                            [&](const Fragment &f) { return f.mask == mask; });
    };
    bool followed = true;
    for (bool again = true; again;) {
        for (uint32_t i = 0; i < w.count; ++i) w.fragments[i].yielded = w.fragments[i].mask != mask;
        w.last_poll = {};
        const uint64_t before = w.owner->now;
        w.wants_turn = watch_warp(w, kMostFollowed, *this) == Progress::turn;
        w.worker->now += w.owner->now - before;
        check_budgets(*w.worker, *w.owner);
        changed_ = changed_ || w.wants_turn;  // what it would do with its turn is not known
        const auto f = find();
        const bool ready = f != w.fragments.begin() + w.count && f->wait == Wait::nothing;
        again = ready && !stopped_ && !changed_ && w.owner->now - begin < kMostFollowed;
        followed = !ready || stopped_;
    }
    for (uint32_t i = 0; i < w.count; ++i) w.fragments[i].yielded = false;
    return followed && !changed_;
}

}  // namespace warpsim
