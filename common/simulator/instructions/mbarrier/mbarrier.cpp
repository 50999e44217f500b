// mbarriers, and waits for their phases. A wait lets arrive what completes to its mbarrier; where the phase stays open,
// lanes of try_wait are put aside until something changes an mbarrier, those of test_wait when they have asked often
// enough.
#include "instructions/mbarrier/mbarrier.h"

#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/text.h"
#include "machine/addresses.h"
#include "machine/cluster.h"
#include "machine/context.h"
#include "scheduler/standstill.h"

namespace warpsim {

namespace {

using std::to_string;

constexpr int64_t kMostBytes = (1 << 20) - 1;
constexpr unsigned kBytes = 8;
// A kernel that never waits must not eat the host's memory: beyond so many the oldest arrive, as they might on a GPU.
constexpr size_t kMostInFlight = 256;

std::string counted(uint64_t count, const char *what) {
    std::string digits = to_string(count);
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits + " " + what + (count == 1 ? "" : "s");
}

void report(Warp &w, const Op &op, unsigned lane, uint32_t address, std::string text) {
    report_hazard(w, op, HazardKind::mbarrier, int(lane), address, std::move(text));
}

// Waits for this mbarrier look again.
void wake(Block &block) {
    for (const auto &context : static_cast<BlockContext &>(block).contexts) {
        for (uint32_t i = 0; i < context->count; ++i) {
            Fragment &f = context->fragments[i];
            if (f.wait == Wait::mbarrier) f.wait = Wait::nothing;
        }
    }
}

void arrive(Warp &w, const Op &op, unsigned lane, uint32_t address, Mbarrier &m, uint32_t count) {
    if (m.pending < count) let_arrive(*w.block, address, m.phase);  // bytes of the phase that nobody has waited for
    if (m.pending < count) {
        const uint32_t pending = m.pending;
        report(w, op, lane, address,
               "thread " + to_string(w.id * kLanes + lane) + " arrives at " + where(*w.block->program, op.index) + " " +
                   counted(count, "time") + " at " + mbarrier_text(*w.block, address) + ", whose phase " +
                   to_string(m.phase) + " waits for " + counted(pending, "arrival") +
                   (pending ? "" : ", only for bytes") + ": it was initialised for " + to_string(m.expected) +
                   " in each phase");
        count = pending;
    }
    m.pending -= count;
}

// What a copy from another block's memory brings is undefined where it was there.
void pass_undefined(Block &block, const MbarrierArrival &arrival, uint32_t bytes, unsigned lane) {
    const SharedShadow &from = *arrival.source->shadow;
    if (!from.undefined()) return;
    const uint32_t first = from.first_undefined(arrival.source_at, bytes);
    if (first == arrival.source_at + bytes) return;
    const uint32_t origin =
        block.definedness->origin(Definedness::Source::shared, *arrival.warp, *arrival.op, lane, first);
    block.shadow->copy_undefined(from, arrival.source_at, arrival.to, bytes, origin);
}

void initialise(Warp &w, const Op &op, unsigned lane, uint32_t address, uint32_t count) {
    Completions &c = *w.block->completions;
    const auto found = c.mbarriers.find(address);
    const std::string here = where(*w.block->program, op.index);
    if (found != c.mbarriers.end()) {
        report(w, op, lane, address,
               "mbarrier.init at " + here + " of " + mbarrier_text(*w.block, address) +
                   " again: a live mbarrier must be ended by mbarrier.inval first");
    }
    if (count == 0 || count > kMostArrivals) {
        report(w, op, lane, address,
               "mbarrier.init at " + here + " for " + to_string(count) + " arrivals: 1 to 1,048,575 are possible");
        count = 1;
    }
    if (w.block->shadow) w.block->shadow->mbarrier_init(w, op, lane, address);
    std::memset(w.block->shared + address, 0, kBytes);
    Mbarrier m;
    m.expected = m.pending = count;
    m.initialised = op.index;
    m.number = c.inits++;
    if (w.trace) w.trace->mbarrier_init(m.number, address, op.index, count);
    c.mbarriers[address] = m;
    ++c.changes;
}

}  // namespace

void changed_mbarrier(Block &block, uint32_t address, Mbarrier &m) {
    ++block.completions->changes;
    if (m.pending == 0 && m.bytes == 0) {
        ++m.phase;
        m.pending = m.expected;
        if (block.shadow) block.shadow->mbarrier_completed(address);
        wake(block);
        return;
    }
    for (const MbarrierArrival &arrival : block.completions->arrivals)
        if (arrival.mbarrier == address) return wake(block);
}

std::string mbarrier_text(const Block &block, uint32_t address) {
    const auto found = block.completions->mbarriers.find(address);
    std::string text = "the mbarrier at shared " + hex(address);
    if (found != block.completions->mbarriers.end())
        text += " (initialised at " + where(*block.program, found->second.initialised) + ")";
    return text;
}

std::string mbarrier_lacks(const Mbarrier &m) {
    std::string text = m.pending ? counted(m.pending, "arrival") : "";
    if (m.bytes > 0) text += (text.empty() ? "" : " and ") + counted(uint64_t(m.bytes), "byte");
    if (m.bytes < 0)
        text += (text.empty() ? "" : " and ") + std::string("the announcement of ") +
                counted(uint64_t(-m.bytes), "byte") + " that have come";
    return text + " outstanding";
}

uint32_t mbarrier_addresses(Warp &w, const Op &op, uint32_t *address, uint32_t exec) {
    uint64_t wide[kLanes];
    lane_addresses(w, op, wide);
    if (op.extra & kMbarrierGeneric) {
        for (unsigned i = 0; i < kLanes; ++i)
            if ((wide[i] & kWindowMask) == kSharedWindow) wide[i] -= kSharedWindow;
    }
    return check_shared(w, op, Intent::atomic, wide, address, kBytes, exec);
}

Mbarrier *find_mbarrier(Warp &w, const Op &op, unsigned lane, uint32_t address, bool by_proxy) {
    Completions &c = *w.block->completions;
    const auto found = c.mbarriers.find(address);
    if (found == c.mbarriers.end()) {
        const Program &program = *w.block->program;
        report(w, op, lane, address,
               program.debug[op.index].text + " at " + where(program, op.index) + " uses the mbarrier at shared " +
                   hex(address) + ", which no mbarrier.init has initialised");
        return nullptr;
    }
    if (w.block->shadow) w.block->shadow->mbarrier_use(w, op, 1u << lane, address, by_proxy);
    return &found->second;
}

void change_mbarrier_bytes(Warp &w, const Op &op, unsigned lane, uint32_t address, Mbarrier &m, int64_t by) {
    if (m.bytes + by > kMostBytes || m.bytes + by < -kMostBytes) {
        report(w, op, lane, address,
               "the bytes outstanding of " + mbarrier_text(*w.block, address) + " become " + to_string(m.bytes + by) +
                   " at " + where(*w.block->program, op.index) + ": 1,048,575 are possible");
        return;
    }
    m.bytes += by;
}

void let_arrive(Block &block, uint32_t address, uint64_t phase) {
    Completions &c = *block.completions;
    for (size_t k = 0; k < c.arrivals.size();) {
        const auto m = c.mbarriers.find(address);
        if (m == c.mbarriers.end() || m->second.phase != phase) return;
        if (c.arrivals[k].mbarrier != address) {
            ++k;
            continue;
        }
        const MbarrierArrival arrival = std::move(c.arrivals[k]);
        c.arrivals.erase(c.arrivals.begin() + std::ptrdiff_t(k));
        const unsigned lane = unsigned(std::countr_zero(arrival.lanes));
        if (!arrival.data.empty() || arrival.bytes) {
            const size_t bytes = arrival.bytes ? arrival.bytes : arrival.data.size();
            const std::byte *data = arrival.data.data();
            if (arrival.source) data = arrival.source->shared + arrival.source_at;
            const bool writes = data && !arrival.reduced;
            uint32_t stamp = 0;
            if (writes) std::memmove(block.shared + arrival.to, data, bytes);
            if (block.shadow && writes) stamp = block.shadow->bulk_write_complete(arrival.transfer);
            if (block.shadow && arrival.source) pass_undefined(block, arrival, uint32_t(bytes), lane);
            if (block.shadow && arrival.reduced) stamp = block.shadow->bulk_update_complete(address);
            if (block.shadow && arrival.source)
                arrival.source->shadow->bulk_read_complete(arrival.source_transfer, *block.shadow, address, stamp);
            if (block.shadow && arrival.knowledge) block.shadow->mbarrier_arrive_later(address, arrival.knowledge);
            change_mbarrier_bytes(*arrival.warp, *arrival.op, lane, address, m->second, -int64_t(bytes));
        } else {
            std::array<uint64_t, kLanes> before;
            before.fill(arrival.number);
            deliver_copies(*arrival.warp, *arrival.op, before, true, arrival.lanes, arrival.stamp);
            if (block.shadow) block.shadow->mbarrier_arrive_later(address, arrival.knowledge);
            const uint32_t count = uint32_t(std::popcount(arrival.lanes));
            m->second.pending -= std::min(m->second.pending, count);
        }
        changed_mbarrier(block, address, m->second);
    }
}

void limit_arrivals(Block &block) {
    Completions &c = *block.completions;
    if (c.arrivals.size() < kMostInFlight) return;
    const uint32_t address = c.arrivals.front().mbarrier;
    const auto m = c.mbarriers.find(address);
    if (m == c.mbarriers.end()) {
        c.arrivals.erase(c.arrivals.begin());
    } else {
        let_arrive(block, address, m->second.phase);
    }
}

void exec_mbarrier(Warp &w, const Op &op) {
    uint32_t address[kLanes];
    const uint32_t exec = mbarrier_addresses(w, op, address, w.exec);
    const MbarrierForm form = mbarrier_form(op.extra);
    const uint32_t *operand = op.b == kNoSlot ? nullptr : w.lanes<uint32_t>(op.b);
    Completions &c = *w.block->completions;
    // Lanes that arrive at the same mbarrier release together, before the first of them arrives.
    const bool arrives = form == MbarrierForm::arrive || form == MbarrierForm::drop;
    for (uint32_t rest = arrives && w.block->shadow ? exec : 0; rest;) {
        const uint32_t at = address[std::countr_zero(rest)];
        uint32_t same = 0;
        for (unsigned i = 0; i < kLanes; ++i) same |= uint32_t(address[i] == at) << i;
        same &= rest;
        rest &= ~same;
        if (!c.mbarriers.count(at)) continue;
        w.block->shadow->mbarrier_use(w, op, same, at, false);
        w.block->shadow->mbarrier_arrive(w, same, at, (op.extra & kMbarrierRelaxed) != 0);
    }
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const uint32_t at = address[lane];
        if (form == MbarrierForm::init) {
            initialise(w, op, lane, at, operand[lane]);
            continue;
        }
        Mbarrier *m = find_mbarrier(w, op, lane, at, false);
        if (!m) continue;
        switch (form) {
            case MbarrierForm::inval:
                if (w.block->shadow) w.block->shadow->mbarrier_inval(w, lane, at);
                c.mbarriers.erase(at);
                ++c.changes;
                break;
            case MbarrierForm::expect:
            case MbarrierForm::complete:
                if (w.trace)
                    w.trace->mbarrier(w, op, TraceEvent::Kind::arrive_phase, m->number, int64_t(m->phase), 0,
                                      form == MbarrierForm::expect ? operand[lane] : 0);
                change_mbarrier_bytes(w, op, lane, at, *m,
                                      form == MbarrierForm::expect ? int64_t(operand[lane]) : -int64_t(operand[lane]));
                changed_mbarrier(*w.block, at, *m);
                break;
            default: {
                const uint64_t phase = m->phase;
                const uint64_t state = phase << kStateCountBits | m->pending;
                const bool expects = op.extra & kMbarrierExpects;
                const uint32_t count = expects || !operand ? 1 : operand[lane];
                if (expects) change_mbarrier_bytes(w, op, lane, at, *m, int64_t(operand[lane]));
                if (form == MbarrierForm::drop) m->expected -= std::min(m->expected, count);
                arrive(w, op, lane, at, *m, count);
                if (w.trace)
                    w.trace->mbarrier(w, op, TraceEvent::Kind::arrive_phase, m->number, int64_t(m->phase), count,
                                      expects ? operand[lane] : 0);
                if (op.dst != kNoSlot)
                    w.lanes<uint64_t>(op.dst)[lane] =
                        m->phase == phase ? state : m->phase << kStateCountBits | (m->pending + count);
                if ((op.extra & kMbarrierNoComplete) && m->pending == 0 && m->bytes == 0) {
                    report(w, op, lane, at,
                           "an arrival with .noComplete at " + where(*w.block->program, op.index) +
                               " completes phase " + to_string(m->phase) + " of " + mbarrier_text(*w.block, at));
                }
                changed_mbarrier(*w.block, at, *m);
            }
        }
    }
}

void exec_mbarrier_copies_arrive(Warp &w, const Op &op) {
    uint32_t address[kLanes];
    const uint32_t exec = mbarrier_addresses(w, op, address, w.exec);
    Completions &c = *w.block->completions;
    for (uint32_t left = exec; left;) {
        const uint32_t at = address[std::countr_zero(left)];
        uint32_t same = 0;
        for (unsigned i = 0; i < kLanes; ++i) same |= uint32_t(address[i] == at) << i;
        same &= left;
        left &= ~same;
        Mbarrier *m = find_mbarrier(w, op, unsigned(std::countr_zero(same)), at, false);
        if (!m) continue;
        if (w.trace)
            w.trace->mbarrier(w, op, TraceEvent::Kind::arrive_copies, m->number, int64_t(m->phase),
                              uint32_t(std::popcount(same)), 0);
        if (!(op.extra & kMbarrierNoIncrement)) m->pending += uint32_t(std::popcount(same));
        limit_arrivals(*w.block);
        MbarrierArrival arrival;
        arrival.warp = &w;
        arrival.op = &op;
        arrival.lanes = same;
        arrival.mbarrier = at;
        arrival.number = c.issued++;
        if (w.block->shadow) arrival.knowledge = w.block->shadow->snapshot(w, same, arrival.stamp);
        c.arrivals.push_back(std::move(arrival));
        changed_mbarrier(*w.block, at, *m);
    }
}

void exec_mbarrier_pending_count(Warp &w, const Op &op) {
    const uint64_t *state = w.lanes<uint64_t>(op.a);
    write_lanes<uint32_t>(w, op.dst, [&](unsigned i) { return uint32_t(state[i] & kMostArrivals); });
}

namespace {

constexpr uint32_t kMostPolls = 32;  // of test_wait, before it waits, too

uint64_t wanted_phase(const Warp &w, const Op &op, unsigned lane, const Mbarrier &m) {
    if (!(op.extra & kMbarrierParity)) return w.lanes<uint64_t>(op.b)[lane] >> kStateCountBits;
    // The phase of that parity that is open, or the one just before it, which is complete.
    return (w.lanes<uint32_t>(op.b)[lane] & 1) == (m.phase & 1) ? m.phase : m.phase - 1;
}

// Lanes of the group that share an mbarrier and a phase; those whose phase is complete.
uint32_t test(Warp &w, const Op &op, const uint32_t *address, uint32_t exec) {
    uint32_t done = w.exec & ~exec;  // what is wrong with the others has been reported
    for (uint32_t left = exec; left;) {
        const unsigned first = unsigned(std::countr_zero(left));
        const uint32_t at = address[first];
        Mbarrier *m = find_mbarrier(w, op, first, at, false);
        if (!m) {
            done |= 1u << first;
            left &= left - 1;
            continue;
        }
        const uint64_t wanted = wanted_phase(w, op, first, *m);
        uint32_t group = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            group |= uint32_t(address[lane] == at && wanted_phase(w, op, lane, *m) == wanted) << lane;
        }
        left &= ~group;
        if (w.block->shadow) w.block->shadow->mbarrier_use(w, op, group, at, false);
        if (wanted == m->phase) let_arrive(*w.block, at, wanted);
        if (wanted == m->phase) continue;
        done |= group;
        if (w.trace) w.trace->mbarrier(w, op, TraceEvent::Kind::wait, m->number, int64_t(wanted), 0, 0);
        if (w.block->shadow)
            w.block->shadow->mbarrier_acquire(w, op, group, at, wanted, (op.extra & kMbarrierRelaxed) != 0);
    }
    return done;
}

}  // namespace

bool wait_for_mbarrier(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    w.exec = lanes;
    uint32_t address[kLanes];
    const uint32_t exec = mbarrier_addresses(w, op, address, lanes);
    const uint32_t done = test(w, op, address, exec);
    const bool suspends = (op.extra & kMbarrierMaySuspend) || ++f.polls >= kMostPolls;
    if (!done && suspends && !f.in_vain) {
        --w.stats[op.index].issued;  // it comes again
        if (const uint32_t rest = f.mask & ~lanes) add_fragment(w, f.pc + 1, rest, f.frame);
        f.mask = lanes;
        f.wait = Wait::mbarrier;
        f.waited = true;
        return false;
    }
    if (op.extra & kMbarrierUnchecked) [[unlikely]] {
        report_hazard(w, op, HazardKind::mbarrier, std::countr_zero(lanes), 0,
                      instruction_at(*w.block->program, op.index) +
                          ": nothing looks at its result. It waits for a limited time at most, or not at all, and says "
                          "false where the phase is still open then: ask again until it says true");
    }
    OpStats &stats = w.stats[op.index];
    ++stats.waits;
    stats.waited += f.waited || !done;
    if (done) f.polls = 0;
    f.in_vain = f.waited = false;
    uint32_t &p = w.predicate(op.dst);
    p = (p & ~lanes) | done;
    return true;
}

bool end_waits_in_vain(BlockContext &first) {
    BlockContext *const leader = &first;
    uint64_t changes = 0;
    for (BlockContext *block : team_of(leader)) changes += block->arriving.changes;
    if (first.vain_changes != changes) {
        first.vain_changes = changes;
        first.vain_rounds = 0;
    }
    ++first.vain_rounds;
    return release_waits_in_vain(first);
}

bool release_waits_in_vain(BlockContext &first) {
    BlockContext *const leader = &first;
    bool any = false;
    for (BlockContext *block : team_of(leader)) {
        for (const auto &context : block->contexts) {
            for (uint32_t i = 0; i < context->count; ++i) {
                Fragment &f = context->fragments[i];
                if (f.wait != Wait::mbarrier) continue;
                f.wait = Wait::nothing;
                f.in_vain = any = true;
            }
        }
    }
    return any;
}

std::string mbarrier_wait_text(const BlockContext &block, const WarpContext &w, const Fragment &f) {
    const Op &op = block.program->ops[f.pc];
    Warp warp = w;
    warp.regs = f.frame->regs;
    warp.exec = f.mask;
    uint32_t address[kLanes];
    mbarrier_addresses(warp, op, address, f.mask);
    const unsigned lane = unsigned(std::countr_zero(f.mask));
    const auto found = block.arriving.mbarriers.find(address[lane]);
    if (found == block.arriving.mbarriers.end()) return "an mbarrier that is none";
    const Mbarrier &m = found->second;
    return "phase " + std::to_string(wanted_phase(warp, op, lane, m)) + " of the mbarrier at shared " +
           hex(address[lane]) + ": " + mbarrier_lacks(m) + ", initialised at " + where(*block.program, m.initialised);
}

}  // namespace warpsim
