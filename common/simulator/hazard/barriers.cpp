// Barriers in the shadow: whom they order, and arrivals that may come before the phase that they are for.
#include <bit>
#include <utility>

#include "core/names.h"
#include "core/program.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

void SharedShadow::barrier(const std::vector<uint32_t> &lanes_by_warp, bool counted) {
    if (!impl_->bound) return;
    impl_->clocks.all->barrier(impl_->clocks.rank, lanes_by_warp.data(), counted);
    impl_->renumber_if_needed();
}

void SharedShadow::barrier_reached(Warp &warp, const Op &op, uint32_t lanes, unsigned number, uint32_t threads) {
    if (!impl_->bound) return;
    Impl::ReachedBarriers &of_warp = impl_->reached[warp.id];
    of_warp.last[of_warp.count++ % of_warp.last.size()] = {op.index, impl_->clocks.stamp(warp.id), lanes, number,
                                                           threads};
}

void SharedShadow::barrier_meet(Warp &warp, const Op &op, uint32_t lanes, unsigned number) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    Impl::BarrierPhases &b = m.barriers[number];
    const unsigned lane = unsigned(std::countr_zero(lanes));
    for (const Impl::Arrival &before : b.complete) {
        if (m.ordered(warp, lane, m.clocks.agent(before.warp), before.lane, before.stamp)) continue;
        if (warp.block->hazards->repeats(op, HazardKind::divergent_barrier, before.op)) break;
        const Program &program = *warp.block->program;
        const std::string name = "barrier " + std::to_string(number);
        m.report(warp, op, HazardKind::divergent_barrier, lane, 0,
                 "warp " + std::to_string(warp.id) + " arrives at " + name +
                     " for its next phase, and nothing orders " + "that behind warp " + std::to_string(before.warp) +
                     "'s arrival in the phase before, " + program.debug[before.op].text + " (" +
                     where(program, before.op) +
                     "): where it comes first, it counts in that phase, which is complete without warp " +
                     std::to_string(before.warp) + " then. It must wait for that phase, or for somebody who has");
        break;
    }
    b.open.push_back({warp.id, lane, op.index, m.clocks.stamp(warp.id)});
}

void SharedShadow::barrier_arrive(Warp &warp, uint32_t lanes, unsigned number) {
    if (!impl_->bound) impl_->bind(warp);
    impl_->clocks.all->release(warp.agent, lanes, impl_->barriers[number].released);
    impl_->renumber_if_needed();
}

void SharedShadow::barrier_complete(unsigned number, const std::vector<uint32_t> &waiters) {
    Impl::BarrierPhases &b = impl_->barriers[number];
    const Clocks::Shared arrived = std::exchange(b.released, nullptr);
    for (unsigned w = 0; arrived && w < waiters.size(); ++w)
        if (waiters[w]) impl_->clocks.all->acquire(impl_->clocks.base + w, waiters[w], arrived);
    b.complete.swap(b.open);
    b.open.clear();
}

}  // namespace warpsim
