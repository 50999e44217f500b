// Calls of device functions: frames, arguments, return values, and threads that exit.
#include <algorithm>

#include "exec/cluster.h"
#include "exec/context.h"
#include "exec/stack.h"
#include "exec/tracking.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

constexpr uint64_t kMostFrameBytes = 1 << 30;  // of the calls of a block's warps

template <class F>
void for_each_lane(uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(__builtin_ctz(lanes)));
}

// For the next call.
void keep_frame(WarpContext &w, std::unique_ptr<Frame> frame) {
    w.owner->call_frame_bytes -= frame->function->frame_bytes;
    w.worker->free_frames.push_back(std::move(frame));
}

}  // namespace

void prepare_frame(WarpContext &w, Frame &frame) {
    const Program::Function &function = *frame.function;
    frame.memory.reserve(function.frame_bytes + 64);
    frame.regs = frame.memory.data();
    if (function.zero_frame) std::memset(frame.regs, 0, function.constants_offset);
    // A block's warps follow those of the block before in the same frames, and no op writes a constant.
    const bool again = frame.prepared && !frame.parent;
    if (!again) std::copy(function.constants.begin(), function.constants.end(), frame.regs + function.constants_offset);
    frame.prepared = true;
    prepare_shadow(w, frame);
    for (const auto &special : function.specials) {
        if (again && !differs_between_blocks(special.which) && !is_stack_top(special)) continue;
        fill_special(w, frame, special.which, special.bytes, frame.regs + special.slot);
    }
}

Frame *enter_function(WarpContext &w, const Op &op, uint32_t index, uint32_t lanes, Frame *parent) {
    const Program &program = *w.block->program;
    const Program::Function &callee = program.functions[index];
    const uint64_t base = stack_end(*parent, lanes);
    if (base + std::max(16u, callee.local_bytes) > w.local_bytes ||
        w.owner->call_frame_bytes + callee.frame_bytes > std::min(kMostFrameBytes, w.block->global->limit())) {
        report_hazard(w, op, HazardKind::illegal_instruction, __builtin_ctz(lanes), 0,
                      "stack overflow: the call of " + callee.name + " is " + std::to_string(parent->depth + 1) +
                          " calls deep and needs more than the " + std::to_string(w.local_bytes) +
                          " bytes of local memory that a thread has (cudaLimitStackSize), or more registers than fit");
        throw LaunchAborted{};
    }
    std::unique_ptr<Frame> frame;
    auto &free = w.worker->free_frames;
    if (free.empty()) {
        frame = std::make_unique<Frame>();
    } else {
        frame = std::move(free.back());
        free.pop_back();
    }
    frame->parent = parent;
    frame->function = &callee;
    frame->call = &op;
    frame->return_pc = op.index + 1;
    frame->depth = parent->depth + 1;
    frame->local_base = uint32_t(base);
    frame->lanes = lanes;
    prepare_frame(w, *frame);
    const uint32_t *places = program.operand_list.data() + op.list;  // offset and bytes of each argument
    if (w.undefined_local) {
        for_each_lane(lanes, [&](unsigned lane) {
            w.undefined_local->undefine(lane * w.local_bytes + base, callee.local_bytes);
        });
    }
    for (uint32_t i = 0; i < op.list_count; ++i) {
        const auto &to = callee.parameters[i];
        const uint32_t from = parent->local_base + places[2 * i], bytes = std::min(to.bytes, places[2 * i + 1]);
        for_each_lane(lanes, [&](unsigned lane) {
            std::byte *local = w.local + lane * w.local_bytes;
            std::memcpy(local + base + to.offset, local + from, bytes);
            if (w.undefined_local)
                w.undefined_local->copy(lane * w.local_bytes + base + to.offset, lane * w.local_bytes + from, bytes);
        });
    }
    w.owner->call_frame_bytes += callee.frame_bytes;
    w.call_frames.push_back(std::move(frame));
    return w.call_frames.back().get();
}

namespace {

void forget_lanes(WarpContext &w, Frame *frame, uint32_t lanes) {
    frame->lanes &= ~lanes;
    if (frame->lanes || !frame->parent) return;
    const auto found = std::find_if(w.call_frames.begin(), w.call_frames.end(),
                                    [&](const std::unique_ptr<Frame> &f) { return f.get() == frame; });
    keep_frame(w, std::move(*found));
    *found = std::move(w.call_frames.back());
    w.call_frames.pop_back();
}

}  // namespace

void leave_function(WarpContext &w, Frame *frame, uint32_t lanes) {
    const Op &op = *frame->call;
    const uint32_t *places = w.block->program->operand_list.data() + op.list + 2 * op.list_count;
    for (uint32_t i = 0; i < op.extra && i < frame->function->returns.size(); ++i) {
        const auto &from = frame->function->returns[i];
        const uint32_t to = frame->parent->local_base + places[2 * i], bytes = std::min(from.bytes, places[2 * i + 1]);
        for_each_lane(lanes, [&](unsigned lane) {
            std::byte *local = w.local + lane * w.local_bytes;
            std::memcpy(local + to, local + frame->local_base + from.offset, bytes);
            if (w.undefined_local)
                w.undefined_local->copy(lane * w.local_bytes + to,
                                        lane * w.local_bytes + frame->local_base + from.offset, bytes);
        });
    }
    forget_lanes(w, frame, lanes);
}

void exit_lanes(WarpContext &w, Frame *frame, uint32_t lanes) {
    while (frame) {
        Frame *const parent = frame->parent;
        forget_lanes(w, frame, lanes);
        frame = parent;
    }
    BlockContext &block = *w.owner;
    w.alive &= ~lanes;
    block.alive -= unsigned(__builtin_popcount(lanes));
    if (block.shadow) block.shadow->exited(w.id, lanes);
    if (block.cluster) exit_cluster(w, lanes);
    complete_warp_syncs(w);
    complete_barriers(block);
}

void release_frames(WarpContext &w) {
    for (auto &frame : w.call_frames) keep_frame(w, std::move(frame));
    w.call_frames.clear();
}

}  // namespace warpsim
