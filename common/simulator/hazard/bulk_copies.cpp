// Bulk copies in the shadow. The asynchronous proxy carries them out on behalf of a thread. What it writes is pending
// until the mbarrier's phase is complete, and then a write by the proxy in that mbarrier's channel. What it reads
// nobody may write until the thread has waited for the bulk group, and then it was a read by that thread. Before it
// reads what a thread wrote, that thread must have fenced and the issuing thread must be ordered behind the fence.
#include <algorithm>
#include <bit>

#include "core/names.h"
#include "core/program.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

uint32_t SharedShadow::bulk_write_issue(Warp &warp, const Op &op, unsigned lane, uint32_t address, uint32_t bytes,
                                        uint32_t mbarrier) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    if (m.copier.size() < m.granules) m.copier.resize(m.granules);
    uint32_t addresses[kLanes] = {};
    addresses[lane] = address;
    Impl::Instruction i{warp, op, addresses, bytes, nullptr, 0, false, false, true};
    if (!m.wgmma_reads.empty()) m.check_wgmma_reads(i, 1u << lane, bytes);
    const uint32_t number = Impl::kBulk | m.transfers++;
    const uint32_t first = address >> m.shift, end = (address + bytes) >> m.shift;
    uint32_t checked = first;
    for (uint32_t g = first; g < end; ++g) {
        // Most granules are ordered; where 16 are not known to be, the exact test looks at one.
        if (g == checked) {
            const bool ordered = end - g >= 16 && !m.is_foreign(warp) && m.writable_lane(warp.id, g, lane, 4);
            if (!ordered) m.check_write(i, lane, g);
            checked = g + (ordered ? 16 : 1);
        }
        if (m.cell[g] == kMbarrierCell) continue;  // reported
        m.pending += m.cell[g] != kPending;
        m.cell[g] = kPending;
        m.maker[g] = op.index;
        m.copier[g] = number;
    }
    stored_.define(address, bytes);
    m.writes_in_flight[number] = {op.index, first, end, warp.agent, lane, mbarrier, {}};
    return number;
}

uint32_t SharedShadow::bulk_write_complete(uint32_t transfer) {
    Impl &m = *impl_;
    uint32_t stamp = 0;
    const auto found = m.writes_in_flight.find(transfer);
    const Impl::Transfer &t = found->second;
    const auto mbarrier = m.mbarriers.find(t.mbarrier);
    if (mbarrier != m.mbarriers.end()) {
        Impl::LiveMbarrier &b = mbarrier->second;
        stamp = m.clocks.all->proxy_release(m.clocks.rank, b.channel, b.arriving);
        for (uint32_t g = t.first; g < t.end; ++g) {
            if (m.cell[g] != kPending || m.copier[g] != transfer) continue;
            m.cell[g] = stamp << kStampShift | kProxy << 5 | b.channel;
            --m.pending;
        }
    }
    m.writes_in_flight.erase(found);
    m.renumber_if_needed();
    return stamp;
}

uint32_t SharedShadow::bulk_read_issue(Warp &warp, const Op &op, unsigned lane, uint32_t address, uint32_t bytes) {
    const SharedStretch stretch{address, bytes};
    return bulk_read_issue(warp, op, lane, std::span(&stretch, 1));
}

uint32_t SharedShadow::bulk_read_issue(Warp &warp, const Op &op, unsigned lane,
                                       std::span<const SharedStretch> stretches) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    const uint32_t number = Impl::kBulk | m.transfers++;
    Impl::Transfer transfer{op.index, ~0u, 0, warp.agent, lane, 0, {}};
    for (const SharedStretch &stretch : stretches) {
        uint32_t addresses[kLanes] = {};
        addresses[lane] = stretch.address;
        Impl::Instruction i{warp, op, addresses, stretch.bytes, nullptr, 0, false, true, false};
        const uint32_t first = stretch.address >> m.shift;
        const uint32_t end = (stretch.address + stretch.bytes + (1u << m.shift) - 1) >> m.shift;
        for (uint32_t g = first; g < end; ++g) {
            m.check_read(i, lane, g);
            m.check_proxy(i, lane, g);
        }
        transfer.first = std::min(transfer.first, first);
        transfer.end = std::max(transfer.end, end);
        if (stretches.size() > 1) transfer.parts.push_back({first, end});
    }
    m.reads_in_flight[number] = std::move(transfer);
    return number;
}

void SharedShadow::bulk_read_complete(Warp &warp, unsigned lane, uint32_t transfer) {
    Impl &m = *impl_;
    const auto found = m.reads_in_flight.find(transfer);
    AccessTable::Writer writer(m.reads, warp.id, m.clocks.stamp(warp.id), found->second.op);
    const Impl::Transfer &t = found->second;
    for (uint32_t g = t.first; g < t.end; ++g)
        if (t.has(g)) writer.same<0>(g, lane, lane);
    m.reads_in_flight.erase(found);
}

void SharedShadow::proxy_fence(Warp &warp, uint32_t lanes, bool data) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    if (m.proxy_fenced.empty()) m.proxy_fenced.assign(m.warps * kLanes, {});
    for (auto &[address, mbarrier] : m.mbarriers)
        mbarrier.fenced = mbarrier.fenced || (mbarrier.warp == warp.id && (lanes >> mbarrier.lane & 1));
    for (uint32_t rest = data ? lanes : 0; rest; rest &= rest - 1) {
        auto &fences = m.proxy_fenced[warp.id * kLanes + unsigned(std::countr_zero(rest))];
        std::copy_backward(fences.begin(), fences.end() - 1, fences.end());
        fences[0] = m.clocks.stamp(warp.id);
    }
    m.clocks.all->fence(warp.agent, lanes);
    m.renumber_if_needed();
}

// A read by the proxy: has the thread that wrote last fenced since?
void SharedShadow::Impl::check_proxy(Instruction &i, unsigned lane, uint32_t granule) {
    const uint32_t c = cell[granule];
    if (c == kForeignCell) return check_foreign_proxy(i, lane, granule);
    if (c <= initialised_cell() || c >= kFirstMark || agent_warp(c) == kProxy) return;
    const unsigned thread = agent_warp(c) * kLanes + agent_lane(c);
    bool fenced = false;
    if (thread < proxy_fenced.size()) {
        const uint32_t written = c >> kStampShift;
        for (uint32_t stamp : proxy_fenced[thread]) {
            fenced = fenced || stamp >= written;
            if (stamp >= written && ordered(i.warp, lane, clocks.agent(agent_warp(c)), agent_lane(c), stamp)) return;
        }
        if (proxy_fenced[thread].back() >= written) return;  // there may have been others before those that are known
    }
    report_proxy(i, lane, granule, "thread " + std::to_string(thread), maker[granule], fenced);
}

void SharedShadow::Impl::report_proxy(Instruction &i, unsigned lane, uint32_t granule, const std::string &who,
                                      uint32_t by, bool fenced_late) {
    if (i.warp.block->hazards->repeats(i.op, HazardKind::proxy_fence, by)) return;
    const Program &program = *i.warp.block->program;
    const std::string there = where(program, by);
    const bool copies = i.op.cls != OpClass::tensor;
    report(i.warp, i.op, HazardKind::proxy_fence, lane, granule << shift,
           std::string("the ") + (copies ? copy_noun(i.op.cls) : "wgmma") + " at " + where(program, i.op.index) +
               " reads shared memory that " + who + " wrote at " + there +
               (fenced_late ? " with a fence.proxy.async behind it that comes too late, behind the barrier"
                            : " without a fence.proxy.async behind it") +
               ": the asynchronous proxy, which carries out " + (copies ? "bulk copies" : "wgmma") +
               ", need not see what threads wrote. Each thread that writes must execute fence.proxy.async after it, "
               "before the barrier that the " +
               (copies ? "copying thread waits" : "warpgroup waits") + " at");
}

void SharedShadow::Impl::check_reads_in_flight(Instruction &i, unsigned lane, uint32_t granule) {
    for (const auto &[number, t] : reads_in_flight) {
        if (!t.has(granule)) continue;
        if (i.warp.block->hazards->repeats(i.op, HazardKind::async_pending, t.op)) return;
        const Program &program = *i.warp.block->program;
        const bool own = t.agent == i.warp.agent && t.lane == lane;
        const bool to_peer = program.debug[t.op].text.find(".shared::cluster.shared::cta") != std::string::npos;
        report(i.warp, i.op, HazardKind::async_pending, lane, granule << shift,
               "write at " + where(program, i.op.index) + " of shared memory that the " +
                   copy_noun(program.ops[t.op].cls) + " at " + where(program, t.op) +
                   " may still be reading: " + agent_text(t.agent, t.lane) + (own ? ", the same one," : "") +
                   (to_peer ? " has issued it. The block that it goes to must say that it has waited for it: an "
                              "arrival at an mbarrier of this block, or a cluster barrier, is missing"
                            : " has issued it and has not waited for its group by cp.async.bulk.wait_group.read"));
        return;
    }
}

}  // namespace warpsim
