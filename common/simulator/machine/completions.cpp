#include "machine/completions.h"

#include <bit>
#include <cstring>

#include "core/names.h"
#include "core/program.h"
#include "core/text.h"
#include "hazard/shared_shadow.h"
#include "machine/global_hazards.h"

namespace warpsim {

void Completions::start_block(unsigned warps) {
    if (groups.size() < warps) groups.resize(warps);
    for (AsyncGroups &of_warp : groups) {
        if (!of_warp.used) continue;
        of_warp.copies.clear();
        of_warp.committed.fill(0);
        of_warp.used = false;
        of_warp.wait = nullptr;
    }
    mbarriers.clear();
    arrivals.clear();
    stores.clear();
    bulk_groups.clear();
    bulk_waits.clear();
    changed_maps.clear();
    wgmma.used = false;
    issued = changes = 0;
    inits = 0;
}

namespace {

void deliver(Warp &w, const Op &op, AsyncCopy &copy, uint32_t lanes, uint32_t stamp) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        std::memcpy(w.block->shared + copy.to[lane], copy.data[lane].data(), copy.bytes);
        if (w.block->shadow) w.block->shadow->async_complete(w, op, int(lane), copy.to[lane], copy.bytes, stamp);
    }
    copy.lanes &= ~lanes;
}

}  // namespace

void deliver_copies(Warp &w, const Op &op, const std::array<uint64_t, kLanes> &before, bool by_number, uint32_t exec,
                    uint32_t stamp) {
    std::vector<AsyncCopy> &copies = w.block->completions->groups_of(w.id).copies;
    size_t kept = 0;
    for (size_t k = 0; k < copies.size(); ++k) {
        AsyncCopy &copy = copies[k];
        uint32_t ready = 0;
        for (unsigned i = 0; i < kLanes; ++i)
            ready |= uint32_t((by_number ? copy.number : copy.group[i]) < before[i]) << i;
        deliver(w, op, copy, ready & copy.lanes & exec, stamp);
        if (!copy.lanes) continue;
        if (kept != k) copies[kept] = copy;
        ++kept;
    }
    copies.resize(kept);
}

namespace {

// Any of addresses first to last.
bool writes_to(const BulkStore &store, uint64_t first, uint64_t last) {
    if (store.parts.empty()) return last >= store.to && first < store.to + store.bytes;
    for (const StorePart &part : store.parts)
        if (last >= part.to && first < part.to + part.bytes) return true;
    return false;
}

}  // namespace

void check_unfinished_stores(Warp &w, const Op &op, uint64_t first, uint64_t last) {
    if (!w.block->shadow) return;
    for (const BulkStore &store : w.block->completions->stores) {
        if (!writes_to(store, first, last)) continue;
        const Program &program = *w.block->program;
        const int lane = std::countr_zero(w.exec);
        const bool own = store.warp->id == w.id && store.lane == unsigned(lane);
        const std::string who =
            "thread " + std::to_string(store.warp->id * kLanes + store.lane) + (own ? ", the same one," : "");
        report_hazard(w, op, HazardKind::async_pending, lane, first,
                      "read at " + where(program, op.index) + " of global memory that the " + copy_noun(store.op->cls) +
                          " at " + where(program, store.op->index) + " may still be writing: " +
                          w.block->hazards->wait_text(Grouped::bulk_store, store.warp->id, store.lane, store.transfer,
                                                      who, "this read"));
        return;
    }
}

namespace {

std::string ended_while(const Block &block, const Op &op, const char *doing) {
    return std::string("the block has ended while the ") + copy_noun(op.cls) + " at " +
           where(*block.program, op.index) + " may still be " + doing +
           " its shared memory, which another block may have by then: ";
}

// Of loads: all that completes to an mbarrier and was asked for by the block itself. What blocks of a cluster ask for
// in another's memory is looked at when one of them exits.
const MbarrierArrival *load_left(const Block &block) {
    for (const MbarrierArrival &arrival : block.completions->arrivals) {
        const bool writes = arrival.bytes || !arrival.data.empty();
        if (writes && arrival.warp->block == &block) return &arrival;
    }
    return nullptr;
}

}  // namespace

void check_copies_left(Block &block) {
    if (!block.shadow) return;
    for (const BulkStore &store : block.completions->stores) {
        if (store.waited) continue;
        const std::string thread = "thread " + std::to_string(store.warp->id * kLanes + store.lane);
        report_hazard(*store.warp, *store.op, HazardKind::async_pending, int(store.lane), store.from,
                      ended_while(block, *store.op, "reading") +
                          block.hazards->wait_text(Grouped::bulk_store, store.warp->id, store.lane, store.transfer,
                                                   thread, "the block's end"));
        return;
    }
    if (const MbarrierArrival *load = load_left(block)) {
        report_hazard(*load->warp, *load->op, HazardKind::async_pending, std::countr_zero(load->lanes), load->to,
                      ended_while(block, *load->op, "writing") + "it completes to the mbarrier at shared " +
                          hex(load->mbarrier) + ", and nobody has waited for that phase");
    }
}

void read_source(BulkStore &store) {
    if (!store.data.empty()) return;
    const std::byte *from = store.warp->block->shared + store.from;
    store.data.assign(from, from + store.bytes);
}

namespace {

// Other blocks may count on the writes once the thread has waited for them. So they are accesses of the issue, which
// comes after all that was before it, and of the wait, or of the block's end where no wait was for more than the
// source.
void note_written(const BulkStore &store) {
    const Block &block = *store.warp->block;
    if (!block.global_shadow || !block.program->communicates) return;
    const unsigned flags = copy_flags(store.written ? Intent::atomic : Intent::write);
    const auto note = [&](uint64_t to, uint32_t bytes) {
        block.global_shadow->access_range(*store.warp, *store.op, flags, store.lane, to, bytes);
    };
    if (store.host) note(store.to, store.bytes);
    for (const StorePart &part : store.parts) note(part.to, part.bytes);
}

}  // namespace

void write_destination(BulkStore &store) {
    note_written(store);
    if (store.written) return;
    if (store.host) std::memcpy(store.host, store.data.data(), store.bytes);
    for (const StorePart &part : store.parts) std::memcpy(part.host, store.data.data() + part.at, part.bytes);
}

void finish_stores(Block &block) {
    for (BulkStore &store : block.completions->stores) {
        read_source(store);
        write_destination(store);
    }
    block.completions->stores.clear();
}

}  // namespace warpsim
