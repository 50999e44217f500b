// What a thread has done about the group of something in flight, for messages of hazards.
#include "core/names.h"
#include "core/text.h"
#include "exec/context.h"

namespace warpsim {

namespace {

// The group that something belongs to, and what its thread has committed and waited for.
struct GroupState {
    uint64_t group = 0, committed = 0;  // how many were committed before it, and so far
    const Op *wait = nullptr;           // the thread's last one since; null: none
    uint64_t wait_committed = 0;        // at that wait
};

// As PTX has it: "`cp.async.wait_group 2` at kernel.cu:41".
std::string op_text(const Program &program, const Op &op) {
    const std::string &text = program.debug[op.index].text;
    const bool counts = text.find("wait_group") != std::string::npos;
    return "`" + text + (counts ? " " + std::to_string(op.imm) : "") + "` at " + where(program, op.index);
}

// 1: "newest", 2: "second newest".
std::string newest(uint64_t rank) {
    static constexpr const char *kNames[] = {"", "", "second ", "third ", "fourth ", "fifth "};
    return (rank < std::size(kNames) ? kNames[rank] : std::to_string(rank) + "th ") + "newest";
}

std::string newest_groups(uint64_t count) {
    static constexpr const char *kNames[] = {"no", "one", "two", "three", "four", "five"};
    const std::string number = count < std::size(kNames) ? kNames[count] : std::to_string(count);
    return "the newest " + (count == 1 ? std::string("group") : number + " groups");
}

// family: "cp.async", with .commit_group and .wait_group.
std::string text_of(const Program &program, const GroupState &state, const std::string &family, const std::string &who,
                    const std::string &needs) {
    const std::string commit = family + ".commit_group", wait = family + ".wait_group";
    if (state.committed <= state.group) {
        if (!state.wait) return who + " has executed neither a " + commit + " nor a " + wait + " since";
        return op_text(program, *state.wait) + " waits for committed groups, and " + who + " has executed no " +
               commit + " in between";
    }
    if (!state.wait)
        return who + " has executed no " + wait + " since; " + needs + " needs the " +
               newest(state.committed - state.group) + " of its groups";
    if (state.wait_committed <= state.group)
        return op_text(program, *state.wait) + " comes before the " + commit + " of " + who;
    return op_text(program, *state.wait) + " leaves " + newest_groups(uint64_t(state.wait->imm)) + " of " + who +
           " in flight, and " + needs + " needs the " + newest(state.wait_committed - state.group);
}

// An arrival behind copies by cp.async stands for the groups of what its lanes issued before.
const MbarrierArrival *arrival_behind(const Completions &all, unsigned warp, unsigned lane, uint64_t number) {
    for (const MbarrierArrival &arrival : all.arrivals)
        if (arrival.op->cls == OpClass::mbarrier && arrival.warp->id == warp && (arrival.lanes >> lane & 1) &&
            arrival.number > number)
            return &arrival;
    return nullptr;
}

std::string copy_text(BlockContext &block, unsigned warp, unsigned lane, uint32_t address, const std::string &who,
                      const std::string &needs) {
    const AsyncGroups &groups = block.arriving.groups[warp];
    const AsyncCopy *copy = nullptr;
    for (const AsyncCopy &one : groups.copies)
        if ((one.lanes >> lane & 1) && address + 3 >= one.to[lane] && address < one.to[lane] + one.bytes) copy = &one;
    if (!copy) return who + " has not waited for it";
    if (const MbarrierArrival *arrival = arrival_behind(block.arriving, warp, lane, copy->number))
        return "it completes to the mbarrier at shared " + hex(arrival->mbarrier) + " by the " +
               block.program->debug[arrival->op->index].text + " at " + where(*block.program, arrival->op->index) +
               " of " + who + ", and nobody has waited for that phase";
    GroupState state{copy->group[lane], groups.committed[lane]};
    if (groups.wait && (groups.wait_lanes >> lane & 1) && groups.wait_issued > copy->number) {
        state.wait = groups.wait;
        state.wait_committed = groups.wait_committed[lane];
    }
    return text_of(*block.program, state, "cp.async", who, needs);
}

std::string store_text(BlockContext &block, unsigned warp, unsigned lane, uint32_t transfer, const std::string &who,
                       const std::string &needs) {
    const Completions &all = block.arriving;
    for (const BulkStore &store : all.stores) {
        if (store.transfer != transfer || store.warp->id != warp || store.lane != lane) continue;
        const uint32_t thread = warp * kLanes + lane;
        GroupState state{store.group, all.bulk_groups[thread]};
        if (const auto found = all.bulk_waits.find(thread); found != all.bulk_waits.end()) {
            uint64_t latest = store.number;
            for (const GroupWait &wait : found->second) {
                if (!wait.op || wait.issued <= latest) continue;
                latest = wait.issued;
                state.wait = wait.op;
                state.wait_committed = wait.committed;
            }
        }
        if (store.waited && state.wait)
            return op_text(*block.program, *state.wait) + " of " + who +
                   " waits for its source alone, not for its "
                   "writes";
        return text_of(*block.program, state, "cp.async.bulk", who, needs);
    }
    return who + " has not waited for it";
}

std::string wgmma_text(BlockContext &block, unsigned warp_number, uint32_t reads, const std::string &who,
                       const std::string &needs) {
    if (!block.arriving.wgmma.used) return who + " has not waited for it";
    const WgmmaWarp &warp = block.arriving.wgmma.warps[warp_number];
    for (const WgmmaInFlight &one : warp.in_flight) {
        if (one.reads != reads) continue;
        GroupState state{one.group, warp.committed};
        if (warp.wait && warp.wait_reads >= reads) {
            state.wait = warp.wait;
            state.wait_committed = warp.wait_committed;
        }
        return text_of(*block.program, state, "wgmma", who, needs);
    }
    return who + " has not waited for it";
}

}  // namespace

std::string BlockContext::wait_text(Grouped kind, unsigned warp, unsigned lane, uint32_t which, const std::string &who,
                                    const std::string &needs) {
    switch (kind) {
        case Grouped::cp_async:
            return copy_text(*this, warp, lane, which, who, needs);
        case Grouped::bulk_store:
            return store_text(*this, warp, lane, which, who, needs);
        case Grouped::wgmma:
            return wgmma_text(*this, warp, which, who, needs);
    }
    return "";
}

uint32_t BlockContext::last_copy_wait(unsigned warp, unsigned lane) {
    const AsyncGroups &groups = arriving.groups[warp];
    return groups.wait && (groups.wait_lanes >> lane & 1) ? groups.wait->index : kNoSlot;
}

}  // namespace warpsim
