#include "exec/async_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/banks.h"
#include "exec/memory.h"
#include "exec/memory_access.h"

namespace warpsim {
namespace {

constexpr std::byte kPoison{0xff};  // a NaN in every floating-point type

AsyncGroups &groups_of(Warp &w) {
    if (!w.async) w.async = std::make_shared<AsyncGroups>();
    return *w.async;
}

void deliver(Warp &w, const Op &op, unsigned lane, std::vector<AsyncCopy> &copies) {
    for (const AsyncCopy &copy : copies) {
        std::memcpy(w.block->shared + copy.to, copy.data.data(), copy.bytes);
        if (w.block->shadow) w.block->shadow->async_complete(w, op, int(lane), copy.to, copy.bytes);
    }
    copies.clear();
}

}  // namespace

void exec_async_copy(Warp &w, const Op &op) {
    const unsigned bytes = op.b;
    const uint32_t *list = w.block->program->operand_list.data() + op.list;
    alignas(64) uint64_t wide[kLanes], from[kLanes];
    alignas(64) uint32_t to[kLanes];
    lane_addresses(w, op, wide);
    uint32_t exec = check_shared(w, op, Intent::write, wide, to, bytes, w.exec);
    if (!exec) return;

    Op source = op;  // the other address of the instruction
    source.a = list[0];
    source.imm = int64_t(list[1] | uint64_t(list[2]) << 32);
    source.extra = op.extra & kSourceBase32 ? kBase32 : 0;
    lane_addresses(w, source, from);

    // How much each lane reads; the rest of its bytes become zero.
    uint32_t size[kLanes], reads = 0;
    const uint32_t ignored = list[4] == kNoSlot ? 0 : w.predicate(list[4]);
    for (unsigned i = 0; i < kLanes; ++i) {
        size[i] = list[3] == kNoSlot ? bytes : std::min(w.lanes<uint32_t>(list[3])[i], bytes);
        if (ignored >> i & 1) size[i] = 0;
        reads |= uint32_t(size[i] > 0) << i;
    }
    reads &= exec;
    if (reads) {
        // Sectors are those of whole pieces, as the hardware asks for them; bounds are those of what is really read.
        count_global(w.stats[op.index], global_cost(from, bytes, reads), bytes, reads);
        uint32_t whole = 0;
        for (unsigned i = 0; i < kLanes; ++i) whole |= uint32_t(size[i] == bytes) << i;
        uint32_t good = 0;
        if (whole & reads) {
            uint64_t host[kLanes];
            std::memcpy(host, from, sizeof host);
            good |= resolve_global(w, source, MemorySpace::global, Intent::read, host, bytes, whole & reads);
            for (uint32_t rest = whole & reads; rest; rest &= rest - 1) {
                const unsigned lane = unsigned(std::countr_zero(rest));
                from[lane] = host[lane];
            }
        }
        for (uint32_t rest = reads & ~whole; rest; rest &= rest - 1) {  // fewer bytes: one by one
            const unsigned lane = unsigned(std::countr_zero(rest));
            bool inside = true;
            uint64_t first = 0;
            for (uint32_t b = 0; b < size[lane] && inside; ++b) {
                uint64_t host[kLanes];
                std::fill(host, host + kLanes, from[lane] + b);
                inside = resolve_global(w, source, MemorySpace::global, Intent::read, host, 1, 1u << lane) != 0;
                if (b == 0) first = host[lane];
            }
            from[lane] = first;
            good |= uint32_t(inside) << lane;
        }
        exec &= good | ~reads;
        if (!exec) return;
    }

    const SharedCost cost = shared_cost(to, bytes, exec);
    w.stats[op.index].shared_wavefronts += cost.wavefronts;
    w.stats[op.index].shared_ideal += cost.ideal;
    if (w.block->shadow) {
        uint32_t sizes[kLanes];
        std::fill(sizes, sizes + kLanes, bytes);
        w.block->shadow->async_issue(w, op, to, sizes, exec);
    }
    AsyncGroups &groups = groups_of(w);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        AsyncCopy copy{to[lane], bytes, {}};
        if (size[lane]) std::memcpy(copy.data.data(), host_pointer(from[lane]), size[lane]);
        groups.lanes[lane].open.push_back(copy);
        std::memset(w.block->shared + to[lane], int(kPoison), bytes);
    }
}

void exec_async_commit(Warp &w, const Op &) {
    AsyncGroups &groups = groups_of(w);
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        AsyncGroups::Lane &lane = groups.lanes[unsigned(std::countr_zero(rest))];
        lane.groups.push_back(std::move(lane.open));
        lane.open.clear();
    }
}

void exec_async_wait(Warp &w, const Op &op) {
    if (!w.async) return;
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const unsigned index = unsigned(std::countr_zero(rest));
        AsyncGroups::Lane &lane = w.async->lanes[index];
        const size_t keep = op.b ? 0 : std::min<uint64_t>(uint64_t(op.imm), lane.groups.size());
        const size_t done = lane.groups.size() - keep;
        for (size_t i = 0; i < done; ++i) deliver(w, op, index, lane.groups[i]);
        lane.groups.erase(lane.groups.begin(), lane.groups.begin() + std::ptrdiff_t(done));
        if (op.b) deliver(w, op, index, lane.open);
    }
}

}  // namespace warpsim
