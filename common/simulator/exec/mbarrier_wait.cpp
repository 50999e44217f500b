// Waits for phases of mbarriers. A wait lets arrive what completes to its mbarrier; where the phase stays open, lanes
// of try_wait are put aside until something changes an mbarrier, those of test_wait when they have asked often enough.
#include <bit>

#include "core/names.h"
#include "core/text.h"
#include "exec/cluster.h"
#include "exec/context.h"
#include "exec/mbarrier.h"
#include "exec/standstill.h"

namespace warpsim {
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
