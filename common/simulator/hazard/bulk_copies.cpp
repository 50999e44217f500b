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

namespace {

constexpr uint32_t kRun = 64;  // granules that are looked at together

}  // namespace

uint32_t SharedShadow::Impl::writable_until(const Warp &warp, unsigned lane, uint32_t first, uint32_t end) const {
    if (strong_used || !early.empty() || !foreign.empty() || is_foreign(warp)) return first;
    for (const auto &[number, t] : reads_in_flight)
        if (t.first < end && t.end > first) return first;
    // Warps of whose reads the thread does not know all, and the first cell of each that it need not know.
    uint32_t readers = 0, limits[kLanes] = {};
    for (unsigned v = 0; v < warps; ++v) {
        const uint32_t known = clocks.all->known_of_all(warp.agent, lane, clocks.base + v);
        limits[v] = (known + 1) << kStampShift;
        readers |= uint32_t(reads.last(v) > known) << v;
    }
    // A copy's granules have few last writers: those found to be ordered are remembered.
    const uint32_t limit = clocks.ordered_below(warp.id) << kStampShift, own = lane * 33;
    uint32_t good = 0, other = 0;
    for (uint32_t g = first; g < end; g += kRun) {
        const uint32_t count = std::min(kRun, end - g), *c = cell.data() + g;
        for (unsigned tries = 0;; ++tries) {
            uint32_t bad = 0;
            for (uint32_t i = 0; i < count; ++i) bad |= (c[i] >= limit) & (c[i] != good) & (c[i] != other);
            if (!bad) break;
            const uint32_t found =
                *std::find_if(c, c + count, [&](uint32_t x) { return x >= limit && x != good && x != other; });
            if (tries == 2 || found >= kFirstMark) return g;
            const unsigned by = clocks.agent(agent_warp(found));
            if (!ordered(warp, lane, by, agent_lane(found), found >> kStampShift)) return g;
            other = good;
            good = found;
        }
        for (uint32_t rest = readers; rest; rest &= rest - 1) {
            const unsigned v = unsigned(std::countr_zero(rest));
            const uint32_t *row = reads.row(v) + g, limit_v = limits[v], mine = v == warp.id ? own : kWhoMask;
            uint32_t bad = 0;
            for (uint32_t i = 0; i < count; ++i) bad |= (row[i] >= limit_v) & ((row[i] & kWhoMask) != mine);
            if (bad) return g;
        }
    }
    return end;
}

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
    m.writes_in_flight[number] = {op.index, first, end, warp.agent, lane, mbarrier, {}};
    for (uint32_t g = first; g < end;) {
        const uint32_t good = m.writable_until(warp, lane, g, end);
        std::fill(m.cell.begin() + g, m.cell.begin() + good, kPending);
        std::fill(m.maker.begin() + g, m.maker.begin() + good, op.index);
        std::fill(m.copier.begin() + g, m.copier.begin() + good, number);
        m.pending += good - g;
        const uint32_t next = std::min(good + kRun, end);
        for (g = good; g < next; ++g) {
            m.check_write(i, lane, g);
            if (m.cell[g] == kMbarrierCell) continue;  // reported
            m.pending += m.cell[g] != kPending;
            m.cell[g] = kPending;
            m.maker[g] = op.index;
            m.copier[g] = number;
        }
    }
    stored_.define(address, bytes);
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
        const uint32_t written = stamp << kStampShift | kProxy << 5 | b.channel;
        uint32_t *const cells = m.cell.data();
        const uint32_t *const copiers = m.copier.data();
        uint32_t count = 0;
        for (uint32_t g = t.first; g < t.end; ++g) {
            const bool mine = (cells[g] == kPending) & (copiers[g] == transfer);
            cells[g] = mine ? written : cells[g];
            count += mine;
        }
        m.pending -= count;
    }
    m.writes_in_flight.erase(found);
    m.renumber_if_needed();
    return stamp;
}

bool SharedShadow::brought_by_copies(const SharedTile &tile) const {
    const Impl &m = *impl_;
    const unsigned step = kChunkBytes >> m.shift;
    return std::all_of(tile.chunks.begin(), tile.chunks.end(), [&](uint32_t chunk) {
        const uint32_t *const cells = m.cell.data() + (chunk >> m.shift);
        return std::all_of(cells, cells + step, [&](uint32_t cell) {
            return cell > m.initialised_cell() && cell < kFirstMark && agent_warp(cell) == kProxy;
        });
    });
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
    if (!data) m.fence_inits(warp, lanes);
    for (auto &[address, mbarrier] : m.mbarriers)
        mbarrier.fenced = mbarrier.fenced || (mbarrier.warp == warp.id && (lanes >> mbarrier.lane & 1));
    for (uint32_t rest = data ? lanes : 0; rest; rest &= rest - 1) {
        auto &fences = m.proxy_fenced[warp.id * kLanes + unsigned(std::countr_zero(rest))];
        std::copy_backward(fences.begin(), fences.end() - 1, fences.end());
        fences[0] = m.clocks.stamp(warp.id);
    }
    if (data) m.fences_known = false;
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
        const std::string who = agent_text(t.agent, t.lane) + (own ? ", the same one," : "");
        const bool to_peer = program.debug[t.op].text.find(".shared::cluster.shared::cta") != std::string::npos;
        report(i.warp, i.op, HazardKind::async_pending, lane, granule << shift,
               "write at " + where(program, i.op.index) + " of shared memory that the " +
                   copy_noun(program.ops[t.op].cls) + " at " + where(program, t.op) + " may still be reading: " +
                   (to_peer ? who + " has issued it, and nothing shows that the block that it goes to has waited for "
                                    "it: neither an arrival at an mbarrier of this block nor a cluster barrier"
                            : i.warp.block->hazards->wait_text(Grouped::bulk_store, t.agent - clocks.base, t.lane,
                                                               number, who, "this write")));
        return;
    }
}

}  // namespace warpsim
