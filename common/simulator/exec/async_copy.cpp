#include "exec/async_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/banks.h"
#include "exec/global_hazards.h"
#include "exec/memory.h"
#include "exec/memory_access.h"

namespace warpsim {
namespace {

constexpr std::byte kPoison{0xff};  // a NaN in every floating-point type

// A kernel that never waits must not eat the host's memory: beyond so many the oldest arrive, as they might on a GPU.
constexpr size_t kMostCopies = 1024;

AsyncGroups &groups_of(Warp &w) {
    return w.block->completions->groups_of(w.id);
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
    source.a = list[kCopyBase];
    source.imm = int64_t(list[kCopyOffsetLow] | uint64_t(list[kCopyOffsetHigh]) << 32);
    source.extra = op.extra & kSourceBase32 ? kBase32 : 0;
    lane_addresses(w, source, from);

    // How much each lane reads; the rest of its bytes become zero.
    uint32_t size[kLanes], reads = 0;
    const uint32_t ignored = list[kCopyIgnore] == kNoSlot ? 0 : w.predicate(list[kCopyIgnore]);
    for (unsigned i = 0; i < kLanes; ++i) {
        size[i] = list[kCopySize] == kNoSlot ? bytes : std::min(w.lanes<uint32_t>(list[kCopySize])[i], bytes);
        if (ignored >> i & 1) size[i] = 0;
        reads |= uint32_t(size[i] > 0) << i;
    }
    reads &= exec;
    if (reads) {
        // Sectors are those of whole pieces, as the hardware asks for them; bounds are those of what is really read.
        const GlobalCost cost = global_cost(from, bytes, reads);
        count_global(w.stats[op.index], cost, bytes, reads);
        if (w.accesses) [[unlikely]]
            w.accesses->global(op, from, bytes, reads, cost);
        uint32_t good = 0;
        for (uint32_t rest = reads; rest;) {  // lanes that read equally much together
            const uint32_t same = size[std::countr_zero(rest)];
            uint32_t lanes = 0;
            for (unsigned i = 0; i < kLanes; ++i) lanes |= uint32_t(size[i] == same) << i;
            lanes &= rest;
            rest &= ~lanes;
            uint64_t host[kLanes];
            std::memcpy(host, from, sizeof host);
            const uint32_t there =
                resolve_global(w, source, MemorySpace::global, Intent::read, host, same, lanes, bytes);
            if (GlobalShadow *shadow = w.block->global_shadow; shadow && there) {
                if (same == bytes) {
                    shadow->access(w, op, 0, from, bytes, there);
                } else {
                    for (uint32_t left = there; left; left &= left - 1) {
                        const unsigned lane = unsigned(std::countr_zero(left));
                        shadow->access_range(w, op, 0, lane, from[lane], same);
                    }
                }
            }
            good |= there;
            for (unsigned i = 0; i < kLanes; ++i) from[i] = (lanes >> i & 1) ? host[i] : from[i];
        }
        exec &= good | ~reads;
        if (!exec) return;
    }

    const SharedCost cost = shared_cost(to, bytes, exec);
    w.stats[op.index].shared_wavefronts += cost.wavefronts;
    w.stats[op.index].shared_ideal += cost.ideal;
    if (w.accesses) [[unlikely]]
        w.accesses->shared(op, to, bytes, exec, cost);
    if (w.block->shadow) {
        // The whole destination is written: zeros where the source has less.
        uint32_t sizes[kLanes];
        std::fill(sizes, sizes + kLanes, bytes);
        w.block->shadow->async_issue(w, op, to, sizes, exec);
        for (unsigned i = 0; i < kLanes; ++i)
            if (exec >> i & 1) w.block->shadow->stored().define(to[i], bytes);
    }
    AsyncGroups &groups = groups_of(w);
    if (groups.copies.size() == kMostCopies) {
        std::array<uint64_t, kLanes> before;
        before.fill(groups.copies.front().number + 1);
        deliver_copies(w, op, before, true, kAllLanes, 0);
    }
    AsyncCopy &copy = groups.copies.emplace_back();
    copy.lanes = exec;
    copy.bytes = bytes;
    copy.number = w.block->completions->issued++;
    copy.group = groups.committed;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        copy.to[lane] = to[lane];
        if (size[lane]) std::memcpy(copy.data[lane].data(), host_pointer(from[lane]), size[lane]);
        std::memset(w.block->shared + to[lane], int(kPoison), bytes);
    }
}

void exec_async_commit(Warp &w, const Op &) {
    AsyncGroups &groups = groups_of(w);
    for (unsigned i = 0; i < kLanes; ++i) groups.committed[i] += w.exec >> i & 1;
}

void exec_async_wait(Warp &w, const Op &op) {
    if (!w.block->completions->has_groups(w.id)) return;
    const std::array<uint64_t, kLanes> &committed = groups_of(w).committed;
    if (op.b) exec_async_commit(w, op);  // wait_all: what is not in a group yet counts, too
    if (AsyncGroups &groups = groups_of(w); !groups.copies.empty()) {
        groups.wait = &op;
        groups.wait_lanes = w.exec;
        groups.wait_issued = w.block->completions->issued;
        groups.wait_committed = groups.committed;
    }
    const uint64_t stay = op.b ? 0 : uint64_t(op.imm);
    std::array<uint64_t, kLanes> before;
    for (unsigned i = 0; i < kLanes; ++i) before[i] = committed[i] > stay ? committed[i] - stay : 0;
    deliver_copies(w, op, before, false, w.exec, 0);
}

}  // namespace warpsim
