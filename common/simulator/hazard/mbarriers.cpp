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
    place->second = {warp.id, lane, op.index, m.clocks.stamp(warp.id), channel, false, nullptr, nullptr, {}};
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
        m.report(
            warp, op, HazardKind::mbarrier, lane, address,
            text + ": nothing orders the two. " +
                (m.is_foreign(warp) ? "A cluster barrier (barrier.cluster.arrive and .wait) is missing between them"
                                    : "A __syncthreads() is missing between them"));
        return;
    }
    if (!by_proxy || b.fenced || (!m.is_foreign(warp) && m.synchronised_since_init(warp, lanes, b))) return;
    m.report(
        warp, op, HazardKind::proxy_fence, unsigned(std::countr_zero(lanes)), address,
        text +
            ": the asynchronous proxy, which carries out bulk copies, need not see that. Behind the init a "
            "fence is missing, fence.mbarrier_init or fence.proxy.async, by the thread that made it, or a barrier of "
            "the block");
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

void SharedShadow::mbarrier_arrive(Warp &warp, uint32_t lanes, uint32_t address) {
    impl_->clocks.all->release(warp.agent, lanes, impl_->mbarriers.at(address).arriving);
    impl_->renumber_if_needed();
}

void SharedShadow::mbarrier_completed(uint32_t address) {
    Impl::LiveMbarrier &b = impl_->mbarriers.at(address);
    Clocks::join(b.completed, b.arriving);
    b.arriving = nullptr;
}

void SharedShadow::mbarrier_acquire(Warp &warp, const Op &op, uint32_t lanes, uint32_t address, uint64_t phase) {
    Impl::LiveMbarrier &b = impl_->mbarriers.at(address);
    impl_->clocks.all->acquire(warp.agent, lanes, b.completed);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        b.waits[warp.id * kLanes + unsigned(std::countr_zero(rest))] = {op.index, phase};
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
    const uint64_t phase = wait->second.second;
    return text + "; the thread's wait at " + where(program, wait->second.first) +
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
