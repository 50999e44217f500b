// Block barriers: bar.sync, bar.arrive, bar.red and their barrier.* forms, numbers 0 to 15.
//
// As on Volta and later each thread arrives for itself, and threads that have exited hold nobody up. A thread count is
// a number of whole warps: a warp whose threads have all arrived counts in full even where the block's size or exits
// leave it fewer.
#include "core/names.h"
#include "core/op_formats.h"
#include "machine/context.h"
#include "scheduler/standstill.h"

namespace warpsim {

namespace {

using std::to_string;

std::string op_text(const Program &program, uint32_t op) {
    return program.debug[op].text + " (" + where(program, op) + ")";
}

void open_barrier(Barrier &b, size_t warps, uint32_t expected) {
    b.arrived.assign(warps, 0);
    b.waiting.assign(warps, 0);
    b.first_op.assign(warps, kNoSlot);
    b.expected = expected;
    b.again = 0;
    b.active = true;
    b.value_all = true;
    b.value_any = false;
    b.value_count = 0;
}

uint32_t threads_arrived(const BlockContext &block, const Barrier &b) {
    uint32_t sum = b.again;
    for (uint32_t i = 0; i < block.warps; ++i) {
        const uint32_t arrived = b.arrived[i];
        sum += arrived && !(block.contexts[i]->alive & ~arrived) ? kLanes : uint32_t(__builtin_popcount(arrived));
    }
    return sum;
}

bool is_complete(const BlockContext &block, const Barrier &b) {
    if (b.expected) return threads_arrived(block, b) >= b.expected;
    for (uint32_t i = 0; i < block.warps; ++i) {
        if (block.contexts[i]->alive & ~b.arrived[i]) return false;
    }
    return true;
}

void write_reduction(WarpContext &w, const Fragment &f, const Op &op, const Barrier &b) {
    std::byte *const regs = w.regs;
    const uint32_t exec = w.exec;
    w.regs = f.frame->regs;
    w.exec = f.mask;
    switch (unpack<BarrierForm>(op.extra).kind) {
        case BarrierKind::red_popc:
            write_lanes<uint32_t>(w, op.dst, [&](unsigned) { return b.value_count; });
            break;
        case BarrierKind::red_and:
            write_predicate(w, op.dst, [&](unsigned) { return b.value_all; });
            break;
        case BarrierKind::red_or:
            write_predicate(w, op.dst, [&](unsigned) { return b.value_any; });
            break;
        default:
            break;
    }
    w.regs = regs;
    w.exec = exec;
}

void complete(BlockContext &block, unsigned number) {
    Barrier &b = block.barriers[number];
    b.active = false;
    if (block.trace) block.trace->barrier_complete(number);
    if (block.shadow) {
        GridOrder &order = block.global_shadow->order();
        for (uint32_t i = 0; i < block.warps; ++i) order.meet(block.contexts[i]->agent, b.waiting[i]);
        block.shadow->barrier(b.waiting, b.expected != 0);
        block.shadow->barrier_complete(number, b.waiting);
        order.settle();
    }
    for (uint32_t i = 0; i < block.warps; ++i) {
        if (!b.waiting[i]) continue;
        WarpContext &w = *block.contexts[i];
        for (uint32_t k = 0; k < w.count; ++k) {
            Fragment &f = w.fragments[k];
            if (f.wait != Wait::barrier || f.barrier != number) continue;
            write_reduction(w, f, block.program->ops[f.pc], b);
            f.wait = Wait::nothing;
            ++f.pc;
        }
    }
}

// The block's barrier after this arrival's checks.
Barrier &join(WarpContext &w, const Op &op, uint32_t lanes, uint32_t number, BarrierForm form) {
    BlockContext &block = *w.owner;
    const Program &program = *block.program;
    const int lane = __builtin_ctz(lanes);
    const uint32_t count = op.b == kNoSlot ? 0 : w.lanes<uint32_t>(op.b)[lane];
    if (number >= block.barriers.size()) {
        report_hazard(w, op, HazardKind::illegal_instruction, lane, 0,
                      "barrier " + to_string(number) + " does not exist: a block has 16, 0 to 15");
        throw LaunchAborted{};
    }
    if (op.b != kNoSlot && (count == 0 || count % kLanes != 0)) {
        report_hazard(w, op, HazardKind::illegal_instruction, lane, 0,
                      "a barrier for " + to_string(count) + " threads: the count must be a multiple of 32");
        throw LaunchAborted{};
    }
    Barrier &b = block.barriers[number];
    if (!b.active) open_barrier(b, block.warps, count);
    uint32_t &first = b.first_op[w.id];
    const auto other = [&] {
        for (uint32_t i = 0; i < block.warps; ++i) {
            if (b.first_op[i] != kNoSlot) return b.first_op[i];
        }
        return op.index;
    };
    if (count != b.expected) {
        report_hazard(w, op, HazardKind::divergent_barrier, lane, 0,
                      "barrier " + to_string(number) + " is met for " + (count ? to_string(count) : "all") +
                          " threads here and for " + (b.expected ? to_string(b.expected) : "all") + " at " +
                          op_text(program, other()));
        b.expected = count;
    }
    if (const uint32_t again = b.arrived[w.id] & lanes) {
        report_hazard(w, op, HazardKind::divergent_barrier, __builtin_ctz(again), 0,
                      lanes_text(again) + " of warp " + to_string(w.id) + " arrive at barrier " + to_string(number) +
                          " a second time before it is complete, first at " + op_text(program, first) +
                          ": both arrivals count, so that it is complete without " +
                          to_string(__builtin_popcount(again)) + " of the threads that it should wait for");
        b.again += uint32_t(__builtin_popcount(again));
    } else if (first != kNoSlot && first != op.index && form.aligned && form.kind != BarrierKind::arrive) {
        report_hazard(w, op, HazardKind::divergent_barrier, lane, 0,
                      "lanes of one warp meet barrier " + to_string(number) + " at different places, others at " +
                          op_text(program, first));
    }
    if (first == kNoSlot) first = op.index;
    if (block.shadow) block.shadow->barrier_reached(w, op, lanes, number, count);
    if (block.shadow && count) block.shadow->barrier_meet(w, op, lanes, number);
    return b;
}

}  // namespace

void arrive_at_barrier(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    Frame *const frame = f.frame;
    const uint32_t *numbers = w.lanes<uint32_t>(op.a);
    const uint32_t number = numbers[__builtin_ctz(lanes)];
    uint32_t group = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if ((lanes >> lane & 1) && numbers[lane] == number) group |= 1u << lane;
    }
    const BarrierForm form = unpack<BarrierForm>(op.extra);
    Barrier &b = join(w, op, group, number, form);
    if (form.kind == BarrierKind::arrive) {
        if (w.owner->shadow) w.owner->shadow->barrier_arrive(w, group, number);
    } else {
        b.waiting[w.id] |= group;
    }
    b.arrived[w.id] |= group;
    if (op.c != kNoSlot) {
        const uint32_t values = w.predicate(op.c) & group;
        b.value_count += uint32_t(__builtin_popcount(values));
        b.value_all = b.value_all && values == group;
        b.value_any = b.value_any || values != 0;
    }
    // Lanes that name another barrier meet it in their turn; lanes outside of the guard go on.
    const uint32_t elsewhere = lanes & ~group, rest = f.mask & ~lanes, pc = f.pc;
    if (elsewhere) add_fragment(w, pc, elsewhere, frame);
    if (rest) add_fragment(w, pc + 1, rest, frame);
    f.mask = group;
    if (form.kind == BarrierKind::arrive) {
        f.pc = pc + 1;
    } else {
        f.wait = Wait::barrier;
        f.barrier = uint8_t(number);
    }
    if (w.trace) w.trace->barrier(w, op, number, form.kind != BarrierKind::arrive);
    if (is_complete(*w.owner, b)) complete(*w.owner, number);
}

void complete_barriers(BlockContext &block) {
    for (unsigned number = 0; number < block.barriers.size(); ++number) {
        Barrier &b = block.barriers[number];
        if (b.active && is_complete(block, b)) complete(block, number);
    }
}

std::string lanes_text(uint32_t lanes) {
    if (lanes == kAllLanes) return "all lanes";
    std::string text = lanes & (lanes - 1) ? "lanes " : "lane ";
    bool first = true;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        unsigned end = lane;
        while (end + 1 < kLanes && (lanes >> (end + 1) & 1)) ++end;
        text += (first ? "" : ",") + to_string(lane) + (end > lane ? "-" + to_string(end) : "");
        first = false;
        lane = end;
    }
    return text;
}

std::string barrier_wait_text(const BlockContext &block, const Fragment &f) {
    const Barrier &b = block.barriers[f.barrier];
    uint32_t arrived = 0;
    for (uint32_t lanes : b.arrived) arrived += uint32_t(__builtin_popcount(lanes));
    return "barrier " + to_string(f.barrier) + ", where " +
           to_string(b.expected ? threads_arrived(block, b) : arrived) + " of " +
           to_string(b.expected ? b.expected : block.alive) + " threads have arrived" +
           (b.expected > block.warps * kLanes ? " (the block has only " + to_string(block.threads) + ")" : "");
}

}  // namespace warpsim
