#include "hazard/shared_shadow.h"

#include <algorithm>
#include <bit>

#include "hazard/shared_shadow_impl.h"

// The rules. Two accesses of one granule by different threads, at least one of them a write, must be ordered by a chain
// of barriers, __syncwarp, or releases and acquires (clocks.cpp); else they race, in whatever order they happened to
// run here. Running in lockstep orders nothing, nor do shuffles and votes.
//  - Atomic and volatile accesses do not race with one another. They order other accesses only together with fences (a
//    fence before a write releases, a fence after a read acquires) or by .acquire and .release of their own; see
//    synchronize_at in the header for locks without fences.
//  - Threads that write the same value do not race: `if (hit) found = true` by many threads is everyday code.
//  - cp.async is a write at its issue against all that was before; from then until its thread has waited for it, every
//  access of
//    its bytes is an error; after that it is an ordinary write of that thread at the time of the wait.
//  - A read of bytes that nobody has written yet is a race if a write follows that is not ordered after it, which is
//    reported when the write comes. Else it brings an undefined value; definedness/ sees whether that matters.
//  - The system's bytes at the start are not looked at: only the toolkit's own code is allowed there, and it counts on
//    what the devices do, for example on shuffles that order (cooperative_groups' tiles of several warps).
// Several reads of a granule by one warp at one stamp are kept as an interval of lanes whose two ends are checked: a
// race with a reader in the middle alone can be missed, a false alarm cannot come of it.

namespace warpsim {

SharedShadow::SharedShadow(uint32_t shared_bytes, unsigned granule, unsigned warps)
    : impl_(std::make_unique<Impl>(unwritten_read_)) {
    reset(shared_bytes, granule, warps);
}

SharedShadow::~SharedShadow() = default;

void SharedShadow::reset(uint32_t shared_bytes, unsigned granule, unsigned warps) {
    stored_.reset(shared_bytes);
    unwritten_read_ = false;
    impl_->reset(shared_bytes, granule, warps);
}

void SharedShadow::unite(const std::vector<SharedShadow *> &blocks) {
    Impl &first = *blocks[0]->impl_;
    first.own_clocks.start(unsigned(blocks.size()), first.warps);
    std::vector<Impl *> mates;
    for (SharedShadow *shadow : blocks) mates.push_back(shadow->impl_.get());
    for (unsigned rank = 0; rank < blocks.size(); ++rank) {
        mates[rank]->clocks = {&first.own_clocks, rank, rank * first.warps};
        mates[rank]->mates = mates;
    }
    first.renumber_if_needed();
}

void SharedShadow::exempt(uint32_t bytes) {
    impl_->exempt_bytes = bytes;
    std::fill_n(impl_->cell.begin(), bytes >> impl_->shift, impl_->initialised_cell());
}

void SharedShadow::Impl::reset(uint32_t shared_bytes, unsigned granule, unsigned warps_now) {
    shift = std::countr_zero(granule);
    granules = (shared_bytes + granule - 1) >> shift;
    warps = warps_now;
    if (cell.size() < granules) {
        cell.resize(granules);
        maker.resize(granules);
    }
    if (pending || marked) std::fill(cell.begin(), cell.end(), 0);
    pending = 0;
    marked = false;
    writes_in_flight.clear();
    reads_in_flight.clear();
    mbarriers.clear();
    inits_fenced.clear();
    stored_together.clear();
    waited_for.clear();
    proxy_fenced.clear();
    fences_known = false;
    barriers.fill({});
    reached.resize(warps);
    for (ReachedBarriers &of_warp : reached) of_warp.count = 0;
    transfers = channels = 0;
    wgmma_reads.clear();
    wgmma_first = wgmma_end = wgmma_issued = 0;
    early.clear();
    raced.clear();
    cut_short = false;
    foreign.clear();
    visits.clear();
    mates.assign(1, this);
    clocks = {&own_clocks, 0, 0};
    own_clocks.start(1, warps);
    reads.resize(warps, granules);
    strong_used = bound = false;
    renumber_if_needed();
}

void SharedShadow::Impl::bind(Warp &warp) {
    const uint32_t *n = warp.block->ntid;
    bind(n[0] * n[1] * n[2]);
}

void SharedShadow::Impl::bind(unsigned threads) {
    bound = true;
    clocks.all->set_threads(threads);
}

void SharedShadow::bind(unsigned threads) {
    impl_->bind(threads);
}

Clocks &SharedShadow::clocks() {
    return *impl_->clocks.all;
}

// Stamps are running out: all that happened so far counts as ordered.
void SharedShadow::Impl::renumber_if_needed() {
    if (!clocks.all->nearly_exhausted()) return;
    const uint32_t first = unwritten_cell();
    clocks.all->restart();
    for (Impl *mate : mates) mate->renumber(first);
}

void SharedShadow::Impl::renumber(uint32_t first) {
    for (const auto &[granule, accesses] : foreign)
        if (cell[granule] == kForeignCell) cell[granule] = initialised_cell();
    foreign.clear();
    visits.clear();
    for (auto &[address, mbarrier] : mbarriers) {
        mbarrier.stamp = mbarrier.init_fenced = 0;
        mbarrier.arriving = mbarrier.completed = nullptr;
    }
    inits_fenced.clear();
    fences_known = false;
    for (ReachedBarriers &of_warp : reached) of_warp.count = 0;
    for (BarrierPhases &b : barriers) {
        b.released = nullptr;
        b.complete.clear();  // all that is known so far is ordered
        for (Arrival &arrival : b.open) arrival.stamp = 0;
    }
    if (!proxy_fenced.empty())
        for (auto &fences : proxy_fenced) fences.fill(clocks.first_stamp());
    for (uint32_t &c : cell) {
        if (c >= kFirstMark) continue;
        c = c < first ? 0 : c == first ? unwritten_cell() : initialised_cell();
    }
    std::erase_if(wgmma_reads, [](const WgmmaRead &read) { return read.waited != 0; });
    reads.clear();
    strong_reads.clear();
    strong_writes.clear();
}

void SharedShadow::Impl::strong_access(Instruction &i, uint32_t exec, unsigned log) {
    if (!strong_used) {
        strong_used = true;
        strong_reads.resize(warps, granules);
        strong_writes.resize(warps, granules);
    }
    const unsigned warp = i.warp.id;
    const uint32_t stamp = clocks.stamp(warp);
    const bool access = i.reads != i.writes;  // no atomic operation, where the bit is another
    const bool lockstep = access && i.op.extra & kLockstep, waits = access && i.reads && !lockstep;
    if (lockstep && i.writes) stored_together[{warp, i.op.index}] = exec;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest);
        for (uint32_t g = i.address[lane] >> shift, end = g + (1u << log); g < end; ++g) {
            if (i.reads && i.writes && cell[g] < unwritten_cell()) note_early_read(i, lane, g);
            if (i.writes) {
                check_write(i, lane, g);
            } else {
                check_read(i, lane, g);
                if (lockstep) check_lockstep(i, lane, g);
                if (waits) waited_for.insert(uint64_t(g) << 32 | (warp * kLanes + lane));
            }
            if (i.reads) AccessTable::Writer(strong_reads, warp, stamp, i.op.index).same<0>(g, lane, lane);
            if (!i.writes) continue;
            AccessTable::Writer(strong_writes, warp, stamp, i.op.index).same<0>(g, lane, lane);
            if (!i.reads && cell[g] <= unwritten_cell()) cell[g] = initialised_cell();
        }
        i.done |= 1u << lane;
    }
}

void SharedShadow::async_issue(Warp &warp, const Op &op, const uint32_t *address, const uint32_t *bytes,
                               uint32_t exec) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    if (m.copier.size() < m.granules) m.copier.resize(m.granules);
    Impl::Instruction i{warp, op, address, 0, nullptr, 0, false, false, true};
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = std::countr_zero(rest);
        const uint32_t granule = address[lane] >> m.shift, count = std::max(bytes[lane] >> m.shift, 1u);
        if (!m.wgmma_reads.empty()) m.check_wgmma_reads(i, 1u << lane, bytes[lane]);
        if (!m.writable_lane(warp.id, granule, lane, std::countr_zero(count))) {
            for (unsigned k = 0; k < count; ++k) m.check_write(i, lane, granule + k);
        }
        for (unsigned k = 0; k < count; ++k) {
            if (m.cell[granule + k] == kMbarrierCell) continue;  // reported
            if (m.cell[granule + k] != kPending) ++m.pending;
            m.cell[granule + k] = kPending;
            m.maker[granule + k] = op.index;
            m.copier[granule + k] = warp.id * kLanes + lane;
        }
    }
}

void SharedShadow::async_complete(Warp &warp, const Op &, int lane, uint32_t address, uint32_t bytes, uint32_t stamp) {
    Impl &m = *impl_;
    if (m.pending == 0) return;
    const uint32_t granule = address >> m.shift, end = granule + std::max(bytes >> m.shift, 1u);
    const uint32_t me = warp.id * kLanes + unsigned(lane);
    const uint32_t now = m.clocks.stamp(warp.id), at = stamp ? std::min(stamp, now) : now;
    for (uint32_t g = granule; g < end; ++g) {
        if (m.cell[g] != kPending || m.copier[g] != me) continue;
        m.cell[g] = at << kStampShift | me;
        --m.pending;
    }
}

void SharedShadow::warp_barrier(unsigned warp, uint32_t lanes) {
    if (!impl_->bound) return;
    impl_->clocks.all->warp_barrier(impl_->clocks.base + warp, lanes);
    impl_->renumber_if_needed();
}

void SharedShadow::fence(Warp &warp, uint32_t lanes, bool cluster) {
    if (!impl_->bound) return;
    if (cluster) {
        impl_->clocks.all->cluster_fence(warp.agent, lanes);
    } else {
        impl_->clocks.all->fence(warp.agent, lanes);
    }
    impl_->renumber_if_needed();
}

void SharedShadow::exited(unsigned warp, uint32_t lanes) {
    impl_->clocks.all->exited(impl_->clocks.base + warp, lanes);
}

void SharedShadow::synchronize_at(Warp &warp, int lane, uint64_t generic_address, bool reads, bool writes, bool acquire,
                                  bool release) {
    if (!impl_->bound) return;
    impl_->clocks.all->synchronize_at(warp.agent, unsigned(lane), generic_address, reads, writes, acquire, release);
    impl_->renumber_if_needed();
}

void SharedShadow::undefined_bits(uint32_t address, unsigned bytes, uint8_t *bits) const {
    const Impl &m = *impl_;
    stored_.get(address, bytes, bits);
    for (unsigned i = 0; i < bytes; ++i)
        if (m.cell[(address + i) >> m.shift] <= m.unwritten_cell()) bits[i] = 0xff;
}

uint32_t SharedShadow::first_undefined(uint32_t address, uint32_t bytes) const {
    const Impl &m = *impl_;
    const uint32_t end = address + bytes;
    for (uint32_t at = address; at < end;) {
        if (m.cell[at >> m.shift] <= m.unwritten_cell()) return at;
        const uint32_t next = std::min(((at >> m.shift) + 1) << m.shift, end);
        for (uint8_t bits = 0; stored_.any() && at < next; ++at) {
            stored_.get(at, 1, &bits);
            if (bits) return at;
        }
        at = next;
    }
    return end;
}

void SharedShadow::copy_undefined(const SharedShadow &from, uint32_t at, uint32_t to, uint32_t bytes, uint32_t origin) {
    const uint32_t end = at + bytes;
    for (uint32_t next = at; (next = from.first_undefined(next, end - next)) < end; ++next) {
        uint8_t bits;
        from.undefined_bits(next, 1, &bits);
        const uint32_t stored = from.stored_.origin(next);
        stored_.set(to + next - at, 1, &bits, stored ? stored : origin);
    }
}

void SharedShadow::initialise(uint32_t address) {
    uint32_t &cell = impl_->cell[address >> impl_->shift];
    if (cell <= impl_->unwritten_cell()) cell = impl_->initialised_cell();
}

SharedShadow::EarlyReadState SharedShadow::early_read(uint32_t address) const {
    const uint32_t granule = address >> impl_->shift;
    if (impl_->raced.count(granule)) return EarlyReadState::raced;
    return impl_->early.count(granule) ? EarlyReadState::waiting : EarlyReadState::settled;
}

bool SharedShadow::cut_short() const {
    return impl_->cut_short;
}

}  // namespace warpsim
