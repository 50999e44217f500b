// What is said about two accesses that nothing orders: which barriers and waits there are, and what would order them.
#include <cctype>
#include <string_view>

#include "core/names.h"
#include "core/program.h"
#include "core/text.h"
#include "hazard/paths.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

namespace {

// "write" of "wrote".
const char *noun(std::string_view did) {
    if (did == "may still be reading") return "read";
    if (did == "updated") return "update";
    return did == "initialised" ? "init" : "write";
}

}  // namespace

// Between which of the two is the barrier missing? In program order one comes before the other within a stretch without
// barriers: a thread that came from the other's op to this one on such a stretch says this one is second. True: it is
// first.
bool SharedShadow::Impl::comes_first(const Instruction &i, const Other &other) const {
    if (executed(i.warp.agent, other.op, clocks.all->stamp(i.warp.agent))) return false;
    return executed(other.agent, i.op.index, other.stamp);
}

// Has the warp executed that op at that stamp, as far as the shadow still remembers?
bool SharedShadow::Impl::executed(unsigned agent, uint32_t op, uint32_t stamp) const {
    const unsigned warp = agent - clocks.base;
    if (warp >= warps) return false;
    for (uint32_t g = 0; g < granules; ++g) {
        const uint32_t c = cell[g];
        if (c < kFirstMark && c >> kStampShift == stamp && agent_warp(c) == warp && maker[g] == op) return true;
        if (c == kPending && copier[g] / kLanes == warp && !(copier[g] & kBulk) && maker[g] == op) return true;
        if (reads.row(warp)[g] >> kStampShift == stamp && reads.op(warp, g) == op) return true;
    }
    return false;
}

// "thread 5 comes to the `__syncthreads()` at kernel.cu:52 after its write, but thread 40 passes none with it before
// its read"; empty where the other thread has come to no barrier since. (Had both passed it, it would order them.)
std::string SharedShadow::Impl::passed_text(const Instruction &i, unsigned lane, const Other &other) const {
    const unsigned warp = other.agent - clocks.base;
    if (warp >= warps || is_foreign(i.warp)) return "";
    const ReachedBarriers &of_warp = reached[warp];
    const uint32_t kept = uint32_t(of_warp.last.size());
    for (uint32_t k = of_warp.count > kept ? of_warp.count - kept : 0; k < of_warp.count; ++k) {
        const ReachedBarrier &b = of_warp.last[k % kept];
        if (b.stamp < other.stamp || !(b.lanes >> other.lane & 1)) continue;
        const Program &program = *i.warp.block->program;
        const std::string &text = program.debug[b.op].text;
        const bool all = !b.number && !b.threads && text.find(".sync") != std::string::npos;
        const std::string of = " of barrier " + std::to_string(b.number) +
                               (b.threads ? " for " + std::to_string(b.threads) + " threads" : "");
        const bool init = std::string_view(other.did) == "initialised";
        return agent_text(other.agent, other.lane) + " comes to the `" + (all ? "__syncthreads()`" : text + "`" + of) +
               " at " + where(program, b.op) + " after its " + noun(other.did) + ", but " +
               agent_text(i.warp.agent, lane) + " passes none with it before its " +
               (init       ? "use"
                : i.writes ? "write"
                           : "read");
    }
    return "";
}

// " The last mbarrier that thread 7 waited for is ..."; empty where it waited for none.
std::string SharedShadow::Impl::last_wait_text(const Warp &warp, unsigned lane, const Program &program) const {
    if (is_foreign(warp)) return "";
    uint32_t stamp = 0;
    std::string text;
    for (const auto &[address, live] : mbarriers) {
        const auto wait = live.waits.find(warp.id * kLanes + lane);
        if (wait == live.waits.end() || wait->second.stamp < stamp) continue;
        stamp = wait->second.stamp;
        text =
            ". The last mbarrier that " + agent_text(warp.agent, lane) + " waited for is the one at shared " +
            hex(address) + " (initialised at " + where(program, live.op) + "), at " + where(program, wait->second.op) +
            (wait->second.phase + 1 == 0 ? ", with the parity of the phase before the first, which counts as complete"
                                         : ", for phase " + std::to_string(wait->second.phase));
    }
    return text;
}

std::string SharedShadow::Impl::order_text(const Instruction &i, unsigned lane, const Other &other) const {
    const Program &program = *i.warp.block->program;
    const std::string here = where(program, i.op.index), there = where(program, other.op);
    const bool same_warp = other.agent == i.warp.agent;
    const bool forth = leads_freely(program, other.op, i.op.index, same_warp);
    const bool back = leads_freely(program, i.op.index, other.op, same_warp);
    const bool mine_first = back && (!forth || comes_first(i, other));
    const uint32_t first = mine_first ? i.op.index : other.op, second = mine_first ? other.op : i.op.index;
    const bool meets_itself = first == second || (here == there && back);
    std::string between = "between " + (mine_first ? here : there) + " and " +
                          (second < first ? "the next pass at " : "") + (mine_first ? there : here);
    if (here == there) between = "between the two accesses at " + here;
    if (meets_itself) between = "between one pass and the next, or the threads should not meet at this address";
    std::string text;
    if (same_warp) text = "Lanes of a warp do not wait for each other by themselves: ";
    const std::string passed = mine_first ? "" : passed_text(i, lane, other);
    if (clocks.all->blocks() > 1 && (is_foreign(i.warp) || other.agent - clocks.base >= warps)) {
        text += "no cluster barrier (barrier.cluster.arrive and .wait) and no arrival at an mbarrier orders them " +
                (meets_itself ? "between one pass and the next" : between);
        if (!same_warp) text[0] = 'N';
    } else if (first == second && !forth) {
        text = same_warp
                   ? "Lanes of a warp do not wait for each other by themselves, and these must not meet at this address"
                   : "The two threads must not meet at this address";
    } else if (!passed.empty()) {
        text += passed + ". Both must pass one " + (meets_itself ? "between one pass and the next" : between);
        if (!same_warp) text[0] = char(std::toupper(text[0]));
    } else if (forth || back) {
        text += (same_warp ? "a __syncwarp() or " : "A ") + std::string("__syncthreads() is missing ") + between;
    } else {
        text += (same_warp ? "no __syncwarp() and no barrier" : "No barrier") + std::string(" that both pass stands ") +
                between + last_wait_text(i.warp, lane, program);
    }
    if (meets_itself && !i.reads && std::string_view(other.did) == "wrote")
        text +=
            ": they store different values, and which one stays is chance, which does no harm only where nobody reads "
            "it";
    return text;
}

// Of what a thread's cp.async has filled and that thread has waited for.
std::string SharedShadow::Impl::filled_order_text(const Instruction &i, unsigned lane, const Other &other) const {
    const Program &program = *i.warp.block->program;
    const std::string here = where(program, i.op.index);
    const unsigned warp = other.agent - clocks.base;
    const uint32_t wait = warp < warps ? i.warp.block->hazards->last_copy_wait(warp, other.lane) : kNoSlot;
    if (wait == kNoSlot) return "so a __syncthreads() is missing between that wait and " + here;
    const std::string passed = passed_text(i, lane, other);
    const std::string between = "between the wait at " + where(program, wait) + " and " + here;
    if (!passed.empty()) return "and " + passed + ". Both must pass one " + between;
    if (leads_freely(program, wait, i.op.index, false)) return "so a __syncthreads() is missing " + between;
    return "and no barrier that both pass stands " + between + last_wait_text(i.warp, lane, program);
}

// "the mbarrier ...": what a bulk copy of the other side, in flight, completes to, and what this thread waited for of
// it.
std::string SharedShadow::Impl::target_text(const Instruction &i, unsigned lane, const Other &other) const {
    for (const auto &[number, t] : writes_in_flight)
        if (t.op == other.op && t.agent == other.agent && t.lane == other.lane)
            return waited_text(i.warp, lane, t.mbarrier, *i.warp.block->program);
    return "the mbarrier that the copy completes to";
}

}  // namespace warpsim
