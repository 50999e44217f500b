// The exact tests behind the shadow's fast ones, and what they say.
#include <cstring>
#include <string_view>

#include "core/names.h"
#include "core/op_formats.h"
#include "core/program.h"
#include "hazard/shared_shadow_impl.h"

namespace warpsim {

namespace {

const char *verb(const Op &op, bool reads, bool writes) {
    if (op.cls == OpClass::async_copy) return "cp.async";
    if (op.cls == OpClass::bulk_copy) return reads ? "bulk copy's read" : "bulk copy's write";
    if (op.cls == OpClass::tensor_copy) return reads ? "TMA copy's read" : "TMA copy's write";
    if (op.cls == OpClass::ldmatrix) return "ldmatrix";
    if (op.cls == OpClass::tensor) return "wgmma's read";
    return reads && writes ? "atomic update" : writes ? "write" : "read";
}

bool is_plain_load(const Op &op) {
    return (op.cls == OpClass::load_shared || op.cls == OpClass::load_generic) && !(op.extra & kStrong);
}

}  // namespace

std::string SharedShadow::Impl::agent_text(unsigned agent, unsigned lane) const {
    const unsigned each = clocks.all->warps_of_block(), warp = agent % each;
    const std::string block = " of the cluster's block " + std::to_string(agent / each);
    if (clocks.all->is_proxy(agent))
        return "a copy into block " + std::to_string(agent - clocks.all->proxy(0)) + " of the cluster";
    return "thread " + std::to_string(warp * kLanes + lane) + " (warp " + std::to_string(warp) + ", lane " +
           std::to_string(lane) + ")" + (clocks.all->blocks() > 1 ? block : "");
}

void SharedShadow::Impl::check_read(Instruction &i, unsigned lane, uint32_t granule) {
    const uint32_t c = cell[granule];
    if (c == kPending) return report_pending(i, lane, granule);
    if (c == kMbarrierCell) return report_mbarrier(i, lane, granule);
    if (c <= unwritten_cell()) {
        note_early_read(i, lane, granule);
    } else if (c < kFirstMark && !long_ordered(i.warp, c)) {
        const unsigned by = clocks.agent(agent_warp(c)), by_lane = agent_lane(c);
        if (!ordered(i.warp, lane, by, by_lane, c >> kStampShift)) {
            report_race(i, lane, granule, {by, by_lane, maker[granule], c >> kStampShift, "wrote"});
        }
    }
    if (!foreign.empty()) check_foreign(i, lane, granule);
    if (strong_used && !i.strong) check_table(i, lane, granule, strong_writes, "updated");
}

void SharedShadow::Impl::check_write(Instruction &i, unsigned lane, uint32_t granule) {
    const uint32_t c = cell[granule];
    if (c == kPending) return report_pending(i, lane, granule);
    if (c == kMbarrierCell) return report_mbarrier(i, lane, granule);
    if (c < kFirstMark && !long_ordered(i.warp, c)) {
        const unsigned by = clocks.agent(agent_warp(c)), by_lane = agent_lane(c);
        if (!ordered(i.warp, lane, by, by_lane, c >> kStampShift) && !same_value(i, lane, by_lane, granule)) {
            report_race(i, lane, granule, {by, by_lane, maker[granule], c >> kStampShift, "wrote"});
        }
    } else if (c == unwritten_cell() && settle_early_read(i, lane, granule)) {
        return;
    }
    if (!reads_in_flight.empty()) check_reads_in_flight(i, lane, granule);
    if (!foreign.empty()) check_foreign(i, lane, granule);
    check_table(i, lane, granule, reads, "may still be reading");
    if (strong_used && !i.strong) {
        check_table(i, lane, granule, strong_writes, "updated");
        check_table(i, lane, granule, strong_reads, "may still be reading");
    }
}

// A volatile read of what another lane of the warp wrote by a volatile store that this lane executed, too: as in
// reductions of old, which count on lanes that go in step. Where the lane waits for a flag, it reads it in a loop.
void SharedShadow::Impl::check_lockstep(Instruction &i, unsigned lane, uint32_t granule) {
    const uint32_t c = strong_writes.row(i.warp.id)[granule], stamp = c >> kStampShift;
    if (stamp < clocks.first_stamp()) return;
    const unsigned by = c & 31;
    const bool several = by != (c >> 5 & 31);  // a flag that all may set, such as this lane
    if (several || by == lane || ordered(i.warp, lane, i.warp.agent, by, stamp)) return;
    if (waited_for.count(uint64_t(granule) << 32 | (i.warp.id * kLanes + lane))) return;
    const uint32_t op = strong_writes.op(i.warp.id, granule);
    const auto together = stored_together.find({i.warp.id, op});
    if (together != stored_together.end() && (together->second >> lane & 1))
        report_race(i, lane, granule, {i.warp.agent, by, op, stamp, "wrote"});
}

void SharedShadow::Impl::check_table(Instruction &i, unsigned lane, uint32_t granule, const AccessTable &table,
                                     const char *did) {
    for (unsigned v = 0; v < warps; ++v) {
        const unsigned by = clocks.agent(v);
        const uint32_t below = clocks.all->ordered_below(i.warp.agent, by);
        if (table.last(v) < below) continue;
        const uint32_t c = table.row(v)[granule], stamp = c >> kStampShift;
        if (stamp < below) continue;
        const unsigned low = c >> 5 & 31, high = c & 31;
        for (unsigned l : {low, high}) {
            if (ordered(i.warp, lane, by, l, stamp)) continue;
            report_race(i, lane, granule, {by, l, table.op(v, granule), stamp, did});
            break;
        }
    }
}

void SharedShadow::Impl::note_early_read(Instruction &i, unsigned lane, uint32_t granule) {
    unwritten_read = true;
    cell[granule] = unwritten_cell();
    early.emplace(granule, EarlyRead{&i.warp, &i.op, lane, i.address[lane], clocks.all->stamp(i.warp.agent), i.strong});
}

// The first write of a granule that has been read before it. True: it was reported as a race.
bool SharedShadow::Impl::settle_early_read(Instruction &i, unsigned lane, uint32_t granule) {
    const auto found = early.find(granule);
    if (found == early.end()) return false;
    const EarlyRead read = found->second;
    if (read.strong && i.strong && i.reads) return false;  // one more atomic update: still nothing has set a value
    early.erase(found);
    if (!(i.strong && i.reads)) cell[granule] = initialised_cell();
    if ((read.strong && i.strong) || ordered(i.warp, lane, read.warp->agent, read.lane, read.stamp)) return false;
    if (read.op->cls == OpClass::tensor && wgmma_reads_over(i.warp, lane, granule << shift)) return false;
    raced.insert(granule);
    // Told from the reader's side: what it should have waited for is the write.
    const Instruction reader{*read.warp, *read.op, nullptr, 0, nullptr, 0, read.strong, true, false};
    report_race(reader, read.lane, granule,
                {i.warp.agent, lane, i.op.index, clocks.all->stamp(i.warp.agent), "writes"});
    return true;
}

bool SharedShadow::Impl::same_value(const Instruction &i, unsigned lane, unsigned other_lane, uint32_t granule) const {
    if (!i.values || i.strong) return false;
    const StoredValues &v = *i.values;
    const unsigned size = 1u << shift;
    auto stored = [&](unsigned l) -> const std::byte * {
        const uint32_t offset = (granule << shift) - i.address[l];
        if (offset >= v.components * v.bytes) return nullptr;
        return v.slot[offset / v.bytes] + l * v.stride + offset % v.bytes;
    };
    const std::byte *mine = stored(lane);
    const std::byte *there = (i.done >> other_lane & 1) ? stored(other_lane) : nullptr;
    // The other write was made by this very instruction only if that lane's store covers the granule.
    const bool now =
        there && !is_foreign(i.warp) && maker[granule] == i.op.index && agent_warp(cell[granule]) == i.warp.id;
    if (!now) there = i.warp.block->shared + (size_t(granule) << shift);
    return mine && std::memcmp(mine, there, size) == 0;
}

void SharedShadow::Impl::report_race(const Instruction &i, unsigned lane, uint32_t granule, const Other &other) {
    if (i.warp.block->hazards->repeats(i.op, HazardKind::shared_race, other.op)) return;
    const Program &program = *i.warp.block->program;
    const std::string here = where(program, i.op.index), there = where(program, other.op);
    const OpClass other_class = program.ops[other.op].cls;
    if (clocks.all->is_proxy(other.agent) && std::string_view(other.did) == "wrote") {
        uint32_t mbarrier = 0;
        for (const auto &[address, live] : mbarriers)
            if (live.channel == other.lane) mbarrier = address;
        return report(i.warp, i.op, HazardKind::shared_race, lane, granule << shift,
                      std::string(verb(i.op, i.reads, i.writes)) + " at " + here + " by " +
                          agent_text(i.warp.agent, lane) + " of shared memory that the " + copy_noun(other_class) +
                          " at " + there + " filled: nothing orders the two. Others have waited for " +
                          waited_text(i.warp, lane, mbarrier, program) +
                          "; it must wait, too, or meet one that has at a barrier");
    }
    std::string text = std::string(verb(i.op, i.reads, i.writes)) + " at " + here + " by " +
                       agent_text(i.warp.agent, lane) + " of shared memory that " +
                       agent_text(other.agent, other.lane) + " ";
    const bool copies = other_class == OpClass::bulk_copy || other_class == OpClass::tensor_copy;
    if (copies && std::string_view(other.did) == "writes") {
        text += std::string("fills by the ") + copy_noun(other_class) + " at " + there +
                ": nothing orders the two. It must wait for the copy's phase of " + target_text(i, lane, other);
    } else if (other_class == OpClass::async_copy) {
        text += "filled by the cp.async at " + there + ": its wait_group speaks for the copying thread only, " +
                filled_order_text(i, lane, other);
    } else {
        text += std::string(other.did) + " at " + there + ": nothing orders the two. " + order_text(i, lane, other);
        if (i.op.extra & program.ops[other.op].extra & kLockstep)
            text += ". volatile makes the compiler keep both accesses; it makes no lane wait for another";
        const Op &theirs = program.ops[other.op];
        if ((i.op.cls == OpClass::atomic && is_plain_load(theirs)) ||
            (theirs.cls == OpClass::atomic && is_plain_load(i.op)))
            text +=
                ". A read that only decides whether to update the place, as at the start of a loop around "
                "atomicCAS, needs no order if it is volatile or atomic";
    }
    report(i.warp, i.op, HazardKind::shared_race, lane, granule << shift, std::move(text));
}

void SharedShadow::Impl::report(Warp &warp, const Op &op, HazardKind kind, unsigned lane, uint32_t address,
                                std::string text) {
    cut_short = true;  // stays so if the report ends the block
    report_hazard(warp, op, kind, int(lane), address, std::move(text));
    cut_short = false;
}

void SharedShadow::Impl::report_pending(const Instruction &i, unsigned lane, uint32_t granule) {
    if (i.warp.block->hazards->repeats(i.op, HazardKind::async_pending, maker[granule])) return;
    const Program &program = *i.warp.block->program;
    if (copier[granule] & kBulk) {
        const Transfer &t = writes_in_flight.at(copier[granule]);
        if (t.op == i.op.index && (t.agent != i.warp.agent || t.lane != lane))
            return report(i.warp, i.op, HazardKind::async_pending, lane, granule << shift,
                          std::string("the ") + copy_noun(i.op.cls) + " at " + where(program, t.op) + " is issued by " +
                              agent_text(t.agent, t.lane) + " and by " + agent_text(i.warp.agent, lane) +
                              ", to the same place: each thread that executes it issues a copy of its own. One thread "
                              "must, behind `if (threadIdx.x == 0)` or elect.sync");
        return report(i.warp, i.op, HazardKind::async_pending, lane, granule << shift,
                      std::string(verb(i.op, i.reads, i.writes)) + " at " + where(program, i.op.index) +
                          " of bytes that the " + copy_noun(program.ops[t.op].cls) + " at " + where(program, t.op) +
                          " may still be writing: nobody has waited for the phase that it completes of " +
                          waited_text(i.warp, lane, t.mbarrier, program));
    }
    const unsigned by = copier[granule] / kLanes, by_lane = copier[granule] % kLanes;
    const bool own = clocks.agent(by) == i.warp.agent && by_lane == lane;
    const std::string what = verb(i.op, i.reads, i.writes);
    report(i.warp, i.op, HazardKind::async_pending, lane, granule << shift,
           what + " at " + where(program, i.op.index) + " of bytes that cp.async at " + where(program, maker[granule]) +
               " may still be writing: " +
               i.warp.block->hazards->wait_text(
                   Grouped::cp_async, by, by_lane, granule << shift,
                   agent_text(clocks.agent(by), by_lane) + (own ? ", the same thread," : ""), "this " + what));
}

}  // namespace warpsim
