// cp.async: copies from global to shared memory that arrive late. The source is read when the copy is issued; the bytes
// reach shared memory when the issuing thread waits for their group, and until then the destination holds poison.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/op_formats.h"
#include "core/warp.h"
#include "counters/accesses.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/addresses.h"
#include "machine/completions.h"
#include "machine/global_hazards.h"
#include "machine/lane_access.h"

namespace warpsim {

namespace {

constexpr std::byte kPoison{0xff};  // a NaN in every floating-point type

// A kernel that never waits must not eat the host's memory: beyond so many the oldest arrive, as they might on a GPU.
constexpr size_t kMostCopies = 1024;

AsyncGroups &groups_of(Warp &w) {
    return w.block->completions->groups_of(w.id);
}

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

// Waits until at most Op::imm groups are in flight, or (wait_all) for everything, committed or not.
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

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

void lower_cp_async(Lowering &l, const Instruction &in) {
    // cp.async.{ca,cg}.shared.global{hints} [to], [from], cp-size{, src-size | ignore-src}{, cache-policy}
    const int64_t bytes = in.operands[2].integer;
    const bool cg = in.has("cg");
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8))) {
        l.unsupported(in, "cp-size is 4, 8 or 16 for .ca and 16 for .cg");
    }
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]);
    uint32_t size = kNoSlot, ignore = kNoSlot;
    const bool policy = in.has("L2::cache_hint");
    if (policy ? in.operands.size() < 4 : in.operands.size() > 4)
        l.unsupported(in, "a cache policy is what .L2::cache_hint takes");
    if (policy) l.source(in.operands.back(), Type::b64);
    if (in.operands.size() > (policy ? 4u : 3u)) {
        const Operand &operand = in.operands[3];
        const bool predicate = operand.kind == Operand::Kind::reg && operand.type == Type::pred;
        (predicate ? ignore : size) = l.source(operand, predicate ? Type::pred : Type::b32);
    }
    const uint64_t offset = uint64_t(from.offset);
    const uint32_t list = l.list({from.slot, uint32_t(offset), uint32_t(offset >> 32), size, ignore});
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.b = uint32_t(bytes);
    op.list = list;
    op.list_count = kCopyListLength;
    op.extra = (to.slot_bytes == 4 ? kBase32 : 0) | (from.slot_bytes == 4 ? kSourceBase32 : 0);
}

void lower_wait_group(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    op.imm = in.operands.empty() ? 0 : in.operands[0].integer;
    op.b = in.has("wait_all");
}

constexpr InstructionRow kRows[] = {
    {"cp.async!.{ca,cg}.{shared,shared::cta,shared::cluster}.global{.L2::cache_hint}" PREFETCH_SIZE,
     "[a], [b], i{, c}{, e}", OpClass::async_copy, Flow::straight, exec_async_copy, lower_cp_async},
    {"cp.async.commit_group!", "", OpClass::async_copy, Flow::straight, exec_async_commit, lower_plain},
    {"cp.async.wait_group!", "i", OpClass::async_copy, Flow::straight, exec_async_wait, lower_wait_group},
    {"cp.async.wait_all!", "", OpClass::async_copy, Flow::straight, exec_async_wait, lower_wait_group},
};

}  // namespace

std::span<const InstructionRow> async_copy_rows() {
    return kRows;
}

}  // namespace warpsim
