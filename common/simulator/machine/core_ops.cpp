#include "machine/core_ops.h"

#include "core/specials.h"
#include "machine/context.h"
#include "machine/tracking.h"

namespace warpsim {

void exec_not_predicate(Warp &w, const Op &op) {
    uint32_t &p = w.predicate(op.dst);
    p = (p & ~w.exec) | (~w.predicate(op.a) & w.exec);
}

void exec_copy_low_bytes(Warp &w, const Op &op) {
    const std::byte *from = w.regs + op.a;
    std::byte *to = w.regs + op.dst;
    const size_t step = size_t(op.imm), bytes = op.extra;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (w.exec >> lane & 1) std::memcpy(to + lane * bytes, from + lane * step, bytes);
    }
}

template <class T>
void exec_local_address(Warp &w, const Op &op) {
    const uint32_t *base = w.lanes<uint32_t>(op.a);
    const T offset = T(op.imm);
    write_lanes<T>(w, op.dst, [=](unsigned i) { return T(base[i] + offset); });
}
template void exec_local_address<uint32_t>(Warp &, const Op &);
template void exec_local_address<uint64_t>(Warp &, const Op &);

void exec_read_clock(Warp &w, const Op &op) {
    // One warp instruction of the block is one tick and one nanosecond: monotonic, and the same in every run.
    const BlockContext &block = *context_of(w).owner;
    const uint64_t now = block.clock_stands_at ? block.clock_stands_at : block.now + block.clock_lead;
    switch (Special(op.imm)) {
        case Special::clock64:
        case Special::globaltimer:
            write_lanes<uint64_t>(w, op.dst, [=](unsigned) { return now; });
            break;
        case Special::clock_hi:
        case Special::globaltimer_hi:
            write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return uint32_t(now >> 32); });
            break;
        default:
            write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return uint32_t(now); });
            break;
    }
}

namespace {

std::byte *argument(Warp &w, const Op &op, unsigned lane) {
    const uint32_t base = op.b == kNoSlot ? 0 : w.lanes<uint32_t>(op.b)[lane];
    return w.local + lane * w.local_bytes + base + uint64_t(op.imm);
}

}  // namespace

void exec_store_argument(Warp &w, const Op &op) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (w.exec >> lane & 1) std::memcpy(argument(w, op, lane), w.regs + op.a + lane * op.extra, op.extra);
    }
    if (!tracks_local(w)) return;
    uint64_t host[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) host[lane] = reinterpret_cast<uint64_t>(argument(w, op, lane));
    note_local_store(w, op, &op.a, {op.extra, op.extra, 1}, host, w.exec);
}

void exec_load_argument(Warp &w, const Op &op) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (w.exec >> lane & 1) std::memcpy(w.regs + op.dst + lane * op.extra, argument(w, op, lane), op.extra);
    }
    if (!tracks_local(w)) return;
    uint64_t host[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) host[lane] = reinterpret_cast<uint64_t>(argument(w, op, lane));
    note_local_load(w, op, &op.dst, {op.extra, op.extra, 1}, host, w.exec);
    end_of_load(w);
}

void exec_nothing(Warp &, const Op &) {}

// The launches before in the stream, which this one may have overtaken, are over, and all that they wrote is there.
void exec_wait_for_launches(Warp &w, const Op &) {
    if (w.block->global_shadow) w.block->global_shadow->order().wait_for_launches(w.agent, w.exec);
}

void exec_let_dependents_start(Warp &, const Op &) {}

}  // namespace warpsim
