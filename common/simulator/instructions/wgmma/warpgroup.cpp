#include "instructions/wgmma/wgmma.h"
#include "machine/core_ops.h"

#include <algorithm>
#include <string>

#include "core/names.h"
#include "core/op_formats.h"
#include "instructions/warp/warp.h"
#include "machine/context.h"
#include "machine/tracking.h"
#include "scheduler/standstill.h"

namespace warpsim {
namespace {

using std::to_string;

std::string text_of(const Program &program, const Op &op) {
    return program.debug[op.index].text + " at " + where(program, op.index);
}

// Lanes of the warp that wait at the op.
uint32_t lanes_at(const WarpContext &w, const Op &op) {
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < w.count; ++i) {
        const Fragment &f = w.fragments[i];
        if (f.wait == Wait::warpgroup && f.pc == op.index) lanes |= f.mask;
    }
    return lanes;
}

unsigned first_warp(const Warp &w) {
    return w.id / kWarpgroupWarps * kWarpgroupWarps;
}

// Reports a warpgroup that can never be whole. False: so it is.
bool is_whole(WarpContext &w, const Op &op, uint32_t lanes) {
    BlockContext &block = *w.owner;
    const unsigned first = first_warp(w);
    const std::string needs = text_of(*block.program, op) + " needs all 128 threads of its warpgroup, warps " +
                              to_string(first) + " to " + to_string(first + 3) + ": ";
    const int lane = __builtin_ctz(lanes);
    for (unsigned i = first; i < first + kWarpgroupWarps; ++i) {
        const uint32_t exist = i < block.warps ? block.contexts[i]->exist : 0;
        const uint32_t alive = i < block.warps ? block.contexts[i]->alive : 0;
        if (alive == kAllLanes) continue;
        report_hazard(w, op, HazardKind::missing_lanes, lane, 0,
                      exist == kAllLanes
                          ? needs + lanes_text(~alive) + " of warp " + to_string(i) + " have exited"
                          : needs + "the block has " + to_string(block.threads) +
                                " threads, and a warpgroup is four whole warps, the first of them a multiple of 4");
        return false;
    }
    return true;
}

// Where a whole warp of the warpgroup waits at another op.
void check_same(WarpContext &w, const Op &op) {
    BlockContext &block = *w.owner;
    if (lanes_at(w, op) != kAllLanes) return;
    for (unsigned i = first_warp(w); i < first_warp(w) + kWarpgroupWarps; ++i) {
        const WarpContext &other = *block.contexts[i];
        for (uint32_t k = 0; k < other.count; ++k) {
            const Fragment &f = other.fragments[k];
            if (f.wait != Wait::warpgroup || f.pc == op.index) continue;
            const Op &there = block.program->ops[f.pc];
            report_and_end(w, op, HazardKind::missing_lanes, 0, 0,
                           "the warps of a warpgroup must execute the same instruction: warp " + to_string(w.id) +
                               " is at " + text_of(*block.program, op) + ", warp " + to_string(i) + " at " +
                               text_of(*block.program, there));
        }
    }
}

// Gives the warpgroup's threads op.imm registers each. False: the pool has too few left for now.
bool change_registers(WarpContext &w, const Op &op) {
    BlockContext &block = *w.owner;
    WgmmaQueue &queue = block.arriving.wgmma.of(block);
    if (const char *reason = block.program->registers_stay) {
        block.note(w, op, HazardKind::setmaxnreg,
                   text_of(*block.program, op) + " does nothing: ptxas leaves it out (\"" + reason + "\"). " +
                       block.program->registers_remedy);
        return true;
    }
    const bool increases = op.extra;
    const uint64_t wanted = uint64_t(op.imm);
    uint64_t have = 0;
    for (unsigned i = 0; i < kWarpgroupWarps; ++i) {
        const uint32_t registers = queue.warps[first_warp(w) + i].registers;
        have += registers * kLanes;
        if (increases ? registers <= wanted : registers >= wanted) continue;
        report_hazard(w, op, HazardKind::illegal_instruction, 0, 0,
                      text_of(*block.program, op) +
                          (increases ? " asks for more registers, and " : " gives registers back, and ") +
                          "a thread has " + to_string(registers) + ": " + to_string(wanted) + " is " +
                          (increases ? "fewer" : "more"));
        throw LaunchAborted{};
    }
    const uint64_t want = wanted * kLanes * kWarpgroupWarps;
    if (want > have + queue.free_registers) return false;
    queue.free_registers = queue.free_registers + have - want;
    for (unsigned i = 0; i < kWarpgroupWarps; ++i) queue.warps[first_warp(w) + i].registers = uint32_t(wanted);
    return true;
}

// Runs the op for a warpgroup that has arrived.
bool run(WarpContext &w, const Op &op) {
    BlockContext &block = *w.owner;
    if (op.fn == exec_set_max_registers) {
        if (!change_registers(w, op)) return false;
    } else {
        for (unsigned i = first_warp(w); i < first_warp(w) + kWarpgroupWarps; ++i) {
            WarpContext &member = *block.contexts[i];
            const auto at = std::find_if(member.fragments.begin(), member.fragments.begin() + member.count,
                                         [&](const Fragment &f) { return f.wait == Wait::warpgroup; });
            use_frame(member, *at->frame);
            member.exec = kAllLanes;
            member.ldmatrix_in_a_row = 0;
            w.worker->order.tensor_during_copies +=
                !block.arriving.groups[i].copies.empty() || !block.arriving.arrivals.empty();
            if (member.undefined) [[unlikely]]
                pass_undefined_sync(member, op);
        }
        op.fn(*block.contexts[first_warp(w)], op);
    }
    for (unsigned i = first_warp(w); i < first_warp(w) + kWarpgroupWarps; ++i) {
        WarpContext &member = *block.contexts[i];
        for (uint32_t k = 0; k < member.count; ++k) {
            Fragment &f = member.fragments[k];
            if (f.wait != Wait::warpgroup) continue;
            f.wait = Wait::nothing;
            ++f.pc;
        }
    }
    return true;
}

bool try_warpgroup(WarpContext &w, const Op &op) {
    for (unsigned i = 0; i < kWarpgroupWarps; ++i)
        if (lanes_at(*w.owner->contexts[first_warp(w) + i], op) != kAllLanes) return false;
    return run(w, op);
}

// Registers have come free: warpgroups that wait for some may go on.
void retry_registers(BlockContext &block) {
    for (bool again = true; again;) {
        again = false;
        for (unsigned i = 0; i + kWarpgroupWarps <= block.warps; i += kWarpgroupWarps) {
            WarpContext &w = *block.contexts[i];
            for (uint32_t k = 0; k < w.count && !again; ++k) {
                const Fragment &f = w.fragments[k];
                const Op &op = block.program->ops[f.pc];
                again = f.wait == Wait::warpgroup && op.fn == exec_set_max_registers && try_warpgroup(w, op);
            }
        }
    }
}

}  // namespace

WgmmaQueue &WgmmaQueue::of(const Block &block) {
    if (used) return *this;
    used = true;
    free_registers = 0;
    warps.resize(block.warps);
    for (WgmmaWarp &w : warps) {
        w.in_flight.clear();
        w.committed = 0;
        w.wait = nullptr;
        w.registers = block.program->registers_at_launch;
    }
    return *this;
}

void arrive_at_warpgroup(WarpContext &w, Fragment &f, const Op &op, uint32_t lanes) {
    if (!is_whole(w, op, lanes)) {  // reported, and the launch goes on: without it
        ++f.pc;
        return;
    }
    if (w.trace) w.trace->warpgroup(w, op);
    const uint32_t rest = f.mask & ~lanes, pc = f.pc;
    Frame *const frame = f.frame;
    f.mask = lanes;
    f.wait = Wait::warpgroup;
    if (rest) add_fragment(w, pc + 1, rest, frame);
    check_same(w, op);
    if (try_warpgroup(w, op) && op.fn == exec_set_max_registers && !op.extra) retry_registers(*w.owner);
}

std::string warpgroup_wait_text(const BlockContext &block, const WarpContext &w, const Fragment &f) {
    const Op &op = block.program->ops[f.pc];
    std::string text;
    for (unsigned i = first_warp(w); i < first_warp(w) + kWarpgroupWarps; ++i) {
        const uint32_t missing = ~lanes_at(*block.contexts[i], op);
        if (missing) text += (text.empty() ? "" : ", ") + lanes_text(missing) + " of warp " + to_string(i);
    }
    if (!text.empty()) return text + ": all 128 threads of a warpgroup execute it together";
    const WgmmaQueue &queue = block.arriving.wgmma;
    return "registers: it needs " + to_string(op.imm) + " for each of 128 threads, which have " +
           to_string(queue.warps[w.id].registers) + ", and the block's pool of " +
           to_string(uint64_t(block.program->registers_at_launch) * block.warps * kLanes) + " has " +
           to_string(queue.free_registers) + " left";
}

void exec_wgmma_fence(Warp &, const Op &) {}

void exec_wgmma_commit(Warp &w, const Op &) {
    ++w.block->completions->wgmma.of(*w.block).warps[w.id].committed;
}

void exec_wgmma_wait(Warp &w, const Op &op) {
    WgmmaWarp &own = w.block->completions->wgmma.of(*w.block).warps[w.id];
    own.wait = &op;
    own.wait_committed = own.committed;
    own.wait_reads = own.in_flight.empty() ? 0 : own.in_flight.back().reads;
    std::erase_if(own.in_flight, [&](WgmmaInFlight &m) {
        m.missed = m.missed || m.group == own.committed;
        if (m.group + uint64_t(op.imm) >= own.committed) return false;
        if (w.block->shadow) w.block->shadow->wgmma_wait(w, m.reads);
        return true;
    });
}

void exec_wgmma_touch(Warp &w, const Op &op) {
    const Program &program = *w.block->program;
    BlockContext &block = *context_of(w).owner;
    if (!w.block->definedness) return;  // hazards are off
    const std::string &text = program.notes[size_t(op.imm)];
    if (WgmmaTouch(op.extra) == WgmmaTouch::unfenced) return block.note(w, op, HazardKind::wgmma, text);
    for (const WgmmaInFlight &m : block.arriving.wgmma.of(block).warps[w.id].in_flight) {
        if (m.op->target != op.target) continue;
        if (!m.missed) {
            const std::string waited = block.wait_text(Grouped::wgmma, w.id, 0, m.reads, "this warp", "this access");
            return block.note(w, op, HazardKind::async_pending, text + " (" + waited + ")");
        }
        report_hazard(w, op, HazardKind::async_pending, -1, 0,
                      text +
                          ". There was a wait, but no wgmma.commit_group stands between the wgmma and it: a wgmma "
                          "that belongs to no group is covered by no wait");
        return;
    }
}

void exec_set_max_registers(Warp &, const Op &) {}

}  // namespace warpsim
