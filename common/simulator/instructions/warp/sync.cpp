// Warp-synchronous instructions: each lane waits until all lanes that its membermask names have arrived at an
// instruction of the same form and mask, wherever the compiler laid their code.
#include <algorithm>

#include "core/text.h"
#include "instructions/warp/warp.h"
#include "machine/context.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

bool is_warp_barrier(const Op &op) {
    return op.fn == exec_warp_barrier;
}

uint32_t mask_of(const Op &op, const std::byte *regs, unsigned lane) {
    return op.member == kNoSlot ? kAllLanes : reinterpret_cast<const uint32_t *>(regs + op.member)[lane];
}

// Ops without a membermask are the whole warp's, and all of its lanes must execute the very same instruction.
bool same_form(const Op &a, const Op &b) {
    if (&a == &b) return true;
    return a.member != kNoSlot && b.member != kNoSlot && a.fn == b.fn && a.extra == b.extra;
}

void count_order(WarpContext &w, const Op &op) {
    OrderCount &order = w.worker->order;
    if (op.cls == OpClass::tensor) {
        const Completions &c = w.owner->arriving;
        order.tensor_during_copies += !c.groups[w.id].copies.empty() || !c.arrivals.empty();
        w.ldmatrix_in_a_row = 0;
    } else if (op.cls == OpClass::ldmatrix) {
        order.ldmatrix_in_a_row = std::max(order.ldmatrix_in_a_row, ++w.ldmatrix_in_a_row);
    }
}

void run(WarpContext &w, const Op &op, uint32_t lanes, uint32_t members, const std::byte *values) {
    w.sync.members = members;
    w.sync.values = values;
    w.exec = lanes;
    count_order(w, op);
    if (w.undefined || w.sync.undefined) [[unlikely]]
        pass_undefined_sync(w, op);
    op.fn(w, op);
    w.sync.values = nullptr;
}

// What the fragment brings, or (of the same shape) what is undefined in it.
void gather(const Fragment &f, const Op &op, const std::byte *from, std::byte *buffer) {
    const unsigned bytes = op.member == kNoSlot ? 0 : op.extra & kBringsMask;
    if (!bytes) return;
    from += op.a;
    if (bytes == unsigned(Brings::predicate)) {
        uint32_t have, here;
        std::memcpy(&have, buffer, sizeof have);
        std::memcpy(&here, from, sizeof here);
        have = (have & ~f.mask) | (here & f.mask);
        std::memcpy(buffer, &have, sizeof have);
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (f.mask >> lane & 1) std::memcpy(buffer + lane * bytes, from + lane * bytes, bytes);
    }
}

// Reports lanes that are named but have exited. Lanes that the launch does not have are not waited for by votes and
// reductions; what a shuffle reads there is undefined (undefine_shuffled).
void check_exited(WarpContext &w, const Op &op, uint32_t lanes, uint32_t missing) {
    const uint32_t exited = op.member == kNoSlot ? missing : missing & w.exist;
    if (!exited || is_warp_barrier(op)) return;
    const int lane = __builtin_ctz(lanes);
    report_hazard(w, op, HazardKind::missing_lanes, lane, 0,
                  w.block->program->debug[op.index].text + " needs lanes " + lanes_hex(exited) +
                      " of its warp, which have exited or do not exist");
}

// Runs the group that fragment `first` waits for, if it is complete.
bool try_group(WarpContext &w, uint32_t first) {
    const Program &program = *w.block->program;
    const Fragment &leader = w.fragments[first];
    const Op &op = program.ops[leader.pc];
    const uint32_t members = mask_of(op, leader.frame->regs, unsigned(__builtin_ctz(leader.mask)));
    uint32_t arrived = 0;
    std::array<uint32_t, kLanes + 1> group;
    unsigned size = 0;
    for (uint32_t i = 0; i < w.count; ++i) {
        const Fragment &f = w.fragments[i];
        if (f.wait != Wait::warp_sync) continue;
        const Op &other = program.ops[f.pc];
        if (!same_form(op, other) || mask_of(other, f.frame->regs, unsigned(__builtin_ctz(f.mask))) != members)
            continue;
        arrived |= f.mask;
        group[size++] = i;
    }
    if (members & ~arrived & w.alive) return false;
    Frame *const frame = w.frame;
    const uint32_t exec = w.exec;
    use_frame(w, *leader.frame);
    check_exited(w, op, leader.mask, members & ~arrived);
    alignas(64) std::byte values[kLanes * 8] = {};
    alignas(64) std::byte undefined[kLanes * 8] = {};
    uint32_t origins[kLanes] = {};
    for (unsigned i = 0; size > 1 && i < size; ++i) {
        const Fragment &f = w.fragments[group[i]];
        const Op &own = program.ops[f.pc];
        gather(f, own, f.frame->regs, values);
        if (!f.frame->tracked || own.a == kNoSlot) continue;
        gather(f, own, f.frame->shadow->bits(), undefined);
        for (unsigned lane = 0; lane < kLanes; ++lane)
            if (f.mask >> lane & 1) origins[lane] = f.frame->shadow->origins(own.a)[lane];
        w.sync.undefined = undefined;
        w.sync.origins = origins;
    }
    for (unsigned i = 0; i < size; ++i) {
        Fragment &f = w.fragments[group[i]];
        use_frame(w, *f.frame);
        run(w, program.ops[f.pc], f.mask, arrived, size > 1 ? values : nullptr);
    }
    for (unsigned i = 0; i < size; ++i) {
        Fragment &f = w.fragments[group[i]];
        f.wait = Wait::nothing;
        ++f.pc;
    }
    if (is_warp_barrier(op) && w.block->shadow) w.block->shadow->warp_barrier(w.id, arrived);
    w.sync.undefined = nullptr;
    w.sync.origins = nullptr;
    use_frame(w, *frame);
    w.exec = exec;
    return true;
}

// The usual case: the membermask of each lane names exactly the lanes that are here.
bool names_exactly(const Warp &w, const Op &op, uint32_t lanes) {
    if (op.member == kNoSlot) return lanes == kAllLanes;
    const uint32_t *masks = w.lanes<uint32_t>(op.member);
    uint32_t different = 0;
    if (lanes == kAllLanes) {
        for (unsigned lane = 0; lane < kLanes; ++lane) different |= ~masks[lane];
    } else {
        for (unsigned lane = 0; lane < kLanes; ++lane) different |= (masks[lane] ^ lanes) & (0u - (lanes >> lane & 1));
    }
    return !different;
}

}  // namespace

void complete_warp_syncs(WarpContext &w) {
    for (uint32_t i = 0; i < w.count; ++i) {
        if (w.fragments[i].wait == Wait::warp_sync) try_group(w, i);
    }
}

bool arrive_at_warp_sync(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    if (w.undefined && op.member != kNoSlot) [[unlikely]]
        operand_matters(w, op, {op.member, 4}, lanes, Use::lanes);
    if (names_exactly(w, op, lanes)) {
        run(w, op, lanes, lanes, nullptr);
        if (is_warp_barrier(op) && w.block->shadow) w.block->shadow->warp_barrier(w.id, lanes);
        return true;
    }
    uint32_t masks[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) masks[lane] = mask_of(op, w.regs, lane);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!(lanes >> lane & 1) || (masks[lane] >> lane & 1)) continue;
        report_hazard(w, op, HazardKind::missing_lanes, int(lane), 0,
                      w.block->program->debug[op.index].text + " with membermask " + lanes_hex(masks[lane]) +
                          ", which does not name the executing lane " + std::to_string(lane));
        masks[lane] |= 1u << lane;
    }
    // Lanes with the same mask belong together, such as the tiles of a tiled partition.
    struct Group {
        uint32_t members, lanes;
    };
    std::array<Group, kLanes> groups;
    unsigned count = 0;
    bool complete = true;
    for (uint32_t left = lanes; left;) {
        Group &group = groups[count++];
        group = {masks[__builtin_ctz(left)], 0};
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((left >> lane & 1) && masks[lane] == group.members) group.lanes |= 1u << lane;
        }
        left &= ~group.lanes;
        complete = complete && group.members == group.lanes;
    }
    if (complete) {
        for (unsigned i = 0; i < count; ++i) {
            run(w, op, groups[i].lanes, groups[i].lanes, nullptr);
            if (is_warp_barrier(op) && w.block->shadow) w.block->shadow->warp_barrier(w.id, groups[i].lanes);
        }
        return true;
    }
    // Somebody is missing: a fragment for each group waits at the op, the lanes outside of its guard go on.
    Frame *const frame = f.frame;
    const uint32_t pc = f.pc, rest = f.mask & ~lanes;
    f.mask = 0;
    for (unsigned i = 0; i < count; ++i) {
        Fragment &waiting = f.mask ? add_fragment(w, pc, groups[i].lanes, frame) : f;
        waiting.mask = groups[i].lanes;
        waiting.wait = Wait::warp_sync;
    }
    if (rest) add_fragment(w, pc + 1, rest, frame);
    complete_warp_syncs(w);
    return false;
}

}  // namespace warpsim
