// mbarriers in the shadow: their bytes, whom an init, an arrival and a wait order, and what is said of their misuse.
#include <bit>

#include "core/names.h"
#include "core/program.h"
#include "core/text.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

namespace {

constexpr uint32_t kBytes = 8;

}  // namespace

void SharedShadow::mbarrier_init(Warp &warp, const Op &op, unsigned lane, uint32_t address) {
    Impl &m = *impl_;
    if (!m.bound) m.bind(warp);
    uint32_t addresses[kLanes] = {};
    addresses[lane] = address;
    Impl::Instruction i{warp, op, addresses, kBytes, nullptr, 0, false, false, true};
    for (uint32_t g = address >> m.shift; g < (address + kBytes) >> m.shift; ++g) {
        if (m.cell[g] != kMbarrierCell) m.check_write(i, lane, g);
        m.cell[g] = kMbarrierCell;
        m.maker[g] = op.index;
    }
    stored_.define(address, kBytes);
    m.marked = true;
    const auto [place, is_new] = m.mbarriers.try_emplace(address);
    const unsigned channel = is_new ? m.channels++ % kLanes : place->second.channel;
    place->second = {warp.id, lane, op.index, m.clocks.stamp(warp.id), channel, false, 0, nullptr, nullptr, {}};
}

void SharedShadow::mbarrier_inval(Warp &warp, unsigned lane, uint32_t address) {
    Impl &m = *impl_;
    for (uint32_t g = address >> m.shift; g < (address + kBytes) >> m.shift; ++g)
        m.cell[g] = m.clocks.stamp(warp.id) << kStampShift | warp.id << 5 | lane;
    m.mbarriers.erase(address);
}

void SharedShadow::mbarrier_use(Warp &warp, const Op &op, uint32_t lanes, uint32_t address, bool by_proxy) {
    Impl &m = *impl_;
    const auto found = m.mbarriers.find(address);
    if (found == m.mbarriers.end()) return;
    const Impl::LiveMbarrier &b = found->second;
    const Program &program = *warp.block->program;
    const std::string text = program.debug[op.index].text + " at " + where(program, op.index) +
                             " uses the mbarrier at shared " + hex(address) + ", which thread " +
                             std::to_string(b.warp * kLanes + b.lane) + " initialised at " + where(program, b.op);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (m.ordered(warp, lane, m.clocks.agent(b.warp), b.lane, b.stamp)) continue;
        if (b.init_fenced && m.ordered(warp, lane, m.clocks.agent(kProxy), b.channel, b.init_fenced)) continue;
        const Impl::Instruction use{warp, op, nullptr, kBytes, nullptr, 0, false, true, true};
        m.report(warp, op, HazardKind::mbarrier, lane, address,
                 text + ": nothing orders the two. " +
                     m.order_text(use, lane, {m.clocks.agent(b.warp), b.lane, b.op, b.stamp, "initialised"}));
        return;
    }
    if (!by_proxy || b.fenced || (!m.is_foreign(warp) && m.synchronised_since_init(warp, lanes, b))) return;
    m.report(warp, op, HazardKind::proxy_fence, unsigned(std::countr_zero(lanes)), address,
             text + ": the asynchronous proxy, which carries out bulk copies, need not see that. Thread " +
                 std::to_string(b.warp * kLanes + b.lane) +
                 " has executed neither fence.mbarrier_init nor fence.proxy.async since, and passed no barrier");
}

// Within a block a barrier behind the init is enough, as cuda::barrier has it: init, __syncthreads(), memcpy_async.
// Other threads were ordered behind the init by some such barrier; the thread that made it has passed one if it knows
// what another lane of its warp did as late.
bool SharedShadow::Impl::synchronised_since_init(const Warp &warp, uint32_t lanes, const LiveMbarrier &b) const {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (warp.id != b.warp || lane != b.lane) continue;
        bool passed = false;
        for (unsigned other = 0; other < kLanes && !passed; ++other)
            passed = other != lane && ordered(warp, lane, warp.agent, other, b.stamp);
        if (!passed) return false;
    }
    return true;
}

// fence.mbarrier_init speaks for the thread's inits alone. What it releases is an event in each mbarrier's own channel,
// which nobody knows of but those whom an arrival behind the fence hands it on to.
void SharedShadow::Impl::fence_inits(const Warp &warp, uint32_t lanes) {
    for (auto &[address, mbarrier] : mbarriers) {
        if (mbarrier.warp != warp.id || !(lanes >> mbarrier.lane & 1)) continue;
        if (mbarrier.init_fenced) continue;
        Clocks::Shared &released = inits_fenced[mbarrier.warp * kLanes + mbarrier.lane];
        mbarrier.init_fenced = clocks.all->proxy_release(clocks.rank, mbarrier.channel, released);
    }
}

void SharedShadow::Impl::release_fenced(const Warp &warp, uint32_t lanes, Clocks::Shared &place) {
    clocks.all->release_fenced(warp.agent, lanes, place);
    if (is_foreign(warp) || inits_fenced.empty()) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const auto inits = inits_fenced.find(warp.id * kLanes + unsigned(std::countr_zero(rest)));
        if (inits != inits_fenced.end()) Clocks::join(place, inits->second);
    }
}

void SharedShadow::mbarrier_arrive(Warp &warp, uint32_t lanes, uint32_t address, bool relaxed) {
    Clocks::Shared &arriving = impl_->mbarriers.at(address).arriving;
    if (relaxed) {
        impl_->release_fenced(warp, lanes, arriving);
    } else {
        impl_->clocks.all->release(warp.agent, lanes, arriving);
    }
    impl_->renumber_if_needed();
}

void SharedShadow::mbarrier_completed(uint32_t address) {
    Impl::LiveMbarrier &b = impl_->mbarriers.at(address);
    Clocks::join(b.completed, b.arriving);
    b.arriving = nullptr;
}

void SharedShadow::mbarrier_acquire(Warp &warp, const Op &op, uint32_t lanes, uint32_t address, uint64_t phase,
                                    bool relaxed) {
    Impl::LiveMbarrier &b = impl_->mbarriers.at(address);
    if (relaxed) {
        impl_->clocks.all->see(warp.agent, lanes, b.completed);
        return;
    }
    impl_->clocks.all->acquire(warp.agent, lanes, b.completed);
    const uint32_t stamp = impl_->clocks.all->stamp(warp.agent);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        b.waits[warp.id * kLanes + unsigned(std::countr_zero(rest))] = {op.index, stamp, phase};
}

Clocks::Shared SharedShadow::snapshot(Warp &warp, uint32_t lanes, uint32_t &stamp) {
    if (!impl_->bound) impl_->bind(warp);
    Clocks::Shared knowledge;
    stamp = impl_->clocks.all->stamp(warp.agent);
    impl_->clocks.all->release(warp.agent, lanes, knowledge);
    impl_->renumber_if_needed();
    return knowledge;
}

void SharedShadow::mbarrier_arrive_later(uint32_t address, const Clocks::Shared &knowledge) {
    Clocks::join(impl_->mbarriers.at(address).arriving, knowledge);
}

// What a thread last waited for at an mbarrier, for messages.
std::string SharedShadow::Impl::waited_text(const Warp &warp, unsigned lane, uint32_t mbarrier,
                                            const Program &program) const {
    const auto found = mbarriers.find(mbarrier);
    const std::string name = "the mbarrier at shared " + hex(mbarrier);
    if (found == mbarriers.end()) return name;
    const LiveMbarrier &b = found->second;
    const std::string text = name + " (initialised at " + where(program, b.op) + ")";
    const auto wait = b.waits.find(warp.id * kLanes + lane);
    if (is_foreign(warp) || wait == b.waits.end()) return text + ", for which this thread has not waited";
    const uint64_t phase = wait->second.phase;
    return text + "; the thread's wait at " + where(program, wait->second.op) +
           (phase + 1 == 0 ? " was for the parity of the phase before the first, which counts as complete"
                           : " was for phase " + std::to_string(phase) + " and the copy belongs to a later one");
}

void SharedShadow::Impl::report_mbarrier(const Instruction &i, unsigned lane, uint32_t granule) {
    if (i.warp.block->hazards->repeats(i.op, HazardKind::mbarrier, maker[granule])) return;
    const Program &program = *i.warp.block->program;
    report(i.warp, i.op, HazardKind::mbarrier, lane, granule << shift,
           program.debug[i.op.index].text + " at " + where(program, i.op.index) + " by thread " +
               std::to_string(i.warp.id * kLanes + lane) + (i.writes ? " writes" : " reads") + " shared memory at " +
               hex(granule << shift) + ", where the mbarrier is that " + where(program, maker[granule]) +
               " initialised: only mbarrier instructions may touch it until mbarrier.inval");
}

}  // namespace warpsim
