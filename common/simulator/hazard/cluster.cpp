// Clusters in the shadow. The blocks of a cluster share their clocks; each block's cells are about its own memory. What
// threads of other blocks do there stands beside the cells, by granule: they come seldom. A cell that one of them has
// written has a mark, so that the fast tests fail there.
#include <algorithm>
#include <bit>

#include "core/names.h"
#include "core/program.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

void SharedShadow::Impl::add_foreign(uint32_t granule, const Foreign &access) {
    std::vector<Foreign> &all = foreign[granule];
    if (access.writes) cell[granule] = kForeignCell;
    for (Foreign &f : all) {
        if (f.agent != access.agent || f.lane != access.lane || f.strong != access.strong || f.writes != access.writes)
            continue;
        f = access;
        return;
    }
    all.push_back(access);
}

void SharedShadow::Impl::forget_foreign(uint32_t granule) {
    foreign.erase(granule);
    if (cell[granule] == kForeignCell) cell[granule] = initialised_cell();
}

// What all threads of the cluster know races with nothing any more.
void SharedShadow::Impl::prune_foreign() {
    std::vector<uint32_t> over;
    for (const auto &[granule, all] : foreign) {
        const bool known = std::all_of(all.begin(), all.end(),
                                       [&](const Foreign &f) { return clocks.all->known_to_all(f.agent, f.stamp); });
        if (known) over.push_back(granule);
    }
    for (uint32_t granule : over) forget_foreign(granule);
}

// An access against what came from outside of the block. A plain write that is ordered behind it takes its place.
void SharedShadow::Impl::check_foreign(Instruction &i, unsigned lane, uint32_t granule) {
    const auto found = foreign.find(granule);
    if (found == foreign.end()) return;
    for (const Foreign f : std::vector<Foreign>(found->second)) {
        if (!(i.writes || f.writes) || (i.strong && f.strong)) continue;
        if (ordered(i.warp, lane, f.agent, f.lane, f.stamp)) continue;
        if (f.writes && i.writes && !f.strong && same_value(i, lane, f.lane, granule)) continue;
        report_race(i, lane, granule,
                    {f.agent, f.lane, f.op, f.stamp,
                     !f.writes  ? "may still be reading"
                     : f.strong ? "updated"
                                : "wrote"});
        break;
    }
    if (i.writes && !i.strong) forget_foreign(granule);
}

// One instruction of another block's threads.
void SharedShadow::Impl::foreign_access(Instruction &i, uint32_t exec) {
    const uint32_t stamp = clocks.all->stamp(i.warp.agent), count = std::max(i.bytes >> shift, 1u);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        for (uint32_t g = i.address[lane] >> shift, end = g + count; g < end; ++g) {
            if (i.strong && i.reads && i.writes && cell[g] < unwritten_cell()) note_early_read(i, lane, g);
            if (i.writes) {
                check_write(i, lane, g);
            } else {
                check_read(i, lane, g);
            }
            if (cell[g] == kPending || cell[g] == kMbarrierCell) continue;  // reported
            const Foreign access{i.warp.agent, lane, i.op.index, stamp, i.strong, i.writes};
            if (i.writes && i.reads && cell[g] <= unwritten_cell()) {
                // An update of what nobody wrote gives it no value.
                foreign[g].push_back(access);
            } else {
                add_foreign(g, access);
            }
        }
        i.done |= 1u << lane;
    }
}

void SharedShadow::cluster_arrive(Warp &warp, uint32_t lanes, Clocks::Shared &arriving, bool relaxed) {
    if (relaxed) {
        impl_->release_fenced(warp, lanes, arriving);
    } else {
        impl_->clocks.all->release(warp.agent, lanes, arriving);
    }
    impl_->renumber_if_needed();
}

void SharedShadow::cluster_completed(Clocks::Shared &arriving, Clocks::Shared &completed) {
    completed = impl_->clocks.all->starts();
    Clocks::join(completed, arriving);
    arriving = nullptr;
    for (Impl *mate : impl_->mates)
        if (!mate->foreign.empty()) mate->prune_foreign();
}

void SharedShadow::cluster_wait(Warp &warp, uint32_t lanes, const Clocks::Shared &completed) {
    impl_->clocks.all->acquire(warp.agent, lanes, completed);
}

void SharedShadow::visit(Warp &warp, const Op &op, uint32_t lanes, bool ends_later) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    const Program &program = *warp.block->program;
    const std::string rank = std::to_string(m.clocks.rank);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (!ends_later) m.visits[{warp.agent, lane}] = {op.index, m.clocks.all->stamp(warp.agent)};
        if (m.clocks.all->knows_start(warp.agent, lane, m.clocks.rank)) continue;
        m.report(warp, op, HazardKind::cluster, lane, 0,
                 program.debug[op.index].text + " at " + where(program, op.index) + " by " +
                     m.agent_text(warp.agent, lane) + " uses the shared memory of block " + rank +
                     ", which may not have started by then: this thread has waited at no cluster barrier "
                     "(barrier.cluster.arrive and .wait, cluster.sync()) and for nothing else that shows it");
        return;
    }
}

void SharedShadow::end_visits(Warp &warp, uint32_t lanes) {
    Impl &m = *impl_;
    std::erase_if(m.visits, [&](const auto &visit) {
        const auto &[agent, lane] = visit.first;
        for (uint32_t rest = lanes; rest; rest &= rest - 1)
            if (m.ordered(warp, unsigned(std::countr_zero(rest)), agent, lane, visit.second.stamp)) return true;
        return false;
    });
}

bool SharedShadow::visit_left(Visit &left) const {
    const Impl &m = *impl_;
    if (m.visits.empty()) return false;
    const auto &[who, visit] = *m.visits.begin();
    left = {who.first, who.second, visit.op, m.agent_text(who.first, who.second)};
    return true;
}

// A read by the proxy: have the threads of other blocks that wrote fenced since?
void SharedShadow::Impl::check_foreign_proxy(Instruction &i, unsigned lane, uint32_t granule) {
    const auto found = foreign.find(granule);
    if (found == foreign.end()) return;
    for (const Foreign f : std::vector<Foreign>(found->second)) {
        if (!f.writes || clocks.all->is_proxy(f.agent)) continue;
        const Impl &of = *mates[f.agent / warps];
        const unsigned thread = f.agent % warps * kLanes + f.lane;
        if (thread < of.proxy_fenced.size() && of.proxy_fenced[thread][0] >= f.stamp) continue;
        return report_proxy(i, lane, granule, agent_text(f.agent, f.lane), f.op, false);
    }
}

uint32_t SharedShadow::bulk_update_complete(uint32_t mbarrier) {
    Impl &m = *impl_;
    const auto found = m.mbarriers.find(mbarrier);
    if (found == m.mbarriers.end()) return 0;
    const uint32_t stamp = m.clocks.all->proxy_release(m.clocks.rank, found->second.channel, found->second.arriving);
    m.renumber_if_needed();
    return stamp;
}

void SharedShadow::bulk_read_complete(uint32_t transfer, const SharedShadow &to, uint32_t mbarrier, uint32_t stamp) {
    Impl &m = *impl_;
    const Impl &other = *to.impl_;
    const auto found = m.reads_in_flight.find(transfer);
    const auto live = other.mbarriers.find(mbarrier);
    if (found == m.reads_in_flight.end()) return;
    const Impl::Transfer t = found->second;
    m.reads_in_flight.erase(found);
    if (live == other.mbarriers.end() || !stamp) return;
    const unsigned proxy = m.clocks.all->proxy(other.clocks.rank), channel = live->second.channel;
    if (other.clocks.rank != m.clocks.rank) m.visits[{proxy, channel}] = {t.op, stamp};
    for (uint32_t g = t.first; g < t.end; ++g)
        if (t.has(g)) m.foreign[g].push_back({proxy, channel, t.op, stamp, false, false});
}

}  // namespace warpsim
