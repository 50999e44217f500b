// Frames: what special registers hold, calls of device functions with arguments and return values, the stack, and
// threads that exit.
#include <algorithm>

#include "core/round_up.h"
#include "core/specials.h"
#include "machine/cluster.h"
#include "machine/context.h"
#include "machine/tracking.h"
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

namespace {

constexpr uint32_t kLeastFrame = 16, kFrameAlignment = 16;

}  // namespace

uint64_t variable_bytes(const Frame &frame) {
    return std::max(kLeastFrame, frame.function->local_bytes);
}

uint64_t stack_end(const Frame &frame, uint32_t lanes) {
    const uint64_t own = variable_bytes(frame);
    uint64_t end = frame.local_base + own;
    for (const auto &special : frame.function->specials) {
        if (!is_stack_top(special)) continue;
        const auto *top = reinterpret_cast<const uint64_t *>(frame.regs + special.slot);
        for_each_lane(
            lanes, [&](unsigned lane) { end = std::max<uint64_t>(end, round_up(top[lane] + own, kFrameAlignment)); });
    }
    return end;
}

namespace {

// The same for all lanes.
uint64_t uniform_value(const WarpContext &w, const Frame &frame, Special which) {
    const BlockContext &b = *w.owner;
    const LaunchConfig &config = *b.worker->launch->config;
    switch (which) {
        case Special::ntid_x:
            return b.ntid[0];
        case Special::ntid_y:
            return b.ntid[1];
        case Special::ntid_z:
            return b.ntid[2];
        case Special::ctaid_x:
            return b.ctaid[0];
        case Special::ctaid_y:
            return b.ctaid[1];
        case Special::ctaid_z:
            return b.ctaid[2];
        case Special::nctaid_x:
            return b.nctaid[0];
        case Special::nctaid_y:
            return b.nctaid[1];
        case Special::nctaid_z:
            return b.nctaid[2];
        case Special::warpid:
            return w.id;
        case Special::nwarpid:
            return b.warps;
        case Special::smid:
            return b.linear_id % std::max(1u, config.multiprocessors);
        case Special::nsmid:
            return config.multiprocessors;
        case Special::warp_size:
            return kLanes;
        case Special::dynamic_smem_size:
            return config.dynamic_shared;
        case Special::total_smem_size:
            return b.shared_bytes - b.program->reserved_shared;
        case Special::reserved_smem_bytes:
            return b.program->reserved_shared;
        case Special::reserved_smem_middle:
            return b.program->reserved_shared / 2;
        case Special::cluster_ctaid_x:
            return b.ctaid[0] % config.cluster[0];
        case Special::cluster_ctaid_y:
            return b.ctaid[1] % config.cluster[1];
        case Special::cluster_ctaid_z:
            return b.ctaid[2] % config.cluster[2];
        case Special::cluster_nctaid_x:
            return config.cluster[0];
        case Special::cluster_nctaid_y:
            return config.cluster[1];
        case Special::cluster_nctaid_z:
            return config.cluster[2];
        case Special::cluster_ctarank:
            return b.rank;
        case Special::cluster_nctarank:
            return config.cluster_blocks();
        case Special::clusterid_x:
            return b.ctaid[0] / config.cluster[0];
        case Special::clusterid_y:
            return b.ctaid[1] / config.cluster[1];
        case Special::clusterid_z:
            return b.ctaid[2] / config.cluster[2];
        case Special::nclusterid_x:
            return b.nctaid[0] / config.cluster[0];
        case Special::nclusterid_y:
            return b.nctaid[1] / config.cluster[1];
        case Special::nclusterid_z:
            return b.nctaid[2] / config.cluster[2];
        case Special::is_explicit_cluster:
            return config.explicit_cluster ? kAllLanes : 0;
        case Special::envreg1:
            return b.worker->launch->workspace >> 32;
        case Special::envreg2:
            return uint32_t(b.worker->launch->workspace);
        case Special::frame_base:
            return frame.local_base;
        default:
            return 0;
    }
}

void write_all_lanes(std::byte *slot, uint32_t value) {
    auto *lanes = reinterpret_cast<uint32_t *>(slot);
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes[lane] = value;
}

// Writes f(lane) in lanes of `bytes`.
template <class F>
void fill(std::byte *slot, unsigned bytes, F f) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint64_t value = f(lane);
        std::memcpy(slot + lane * bytes, &value, bytes);
    }
}

}  // namespace

bool differs_between_blocks(uint8_t which) {
    switch (Special(which)) {
        case Special::ctaid_x:
        case Special::ctaid_y:
        case Special::ctaid_z:
        case Special::smid:
        case Special::cluster_ctaid_x:
        case Special::cluster_ctaid_y:
        case Special::cluster_ctaid_z:
        case Special::cluster_ctarank:
        case Special::clusterid_x:
        case Special::clusterid_y:
        case Special::clusterid_z:
            return true;
        default:
            return false;
    }
}

void fill_special(const WarpContext &w, const Frame &frame, uint8_t which, unsigned bytes, std::byte *slot) {
    const uint32_t *ntid = w.block->ntid;
    const uint32_t thread = w.linear_thread;
    switch (Special(which)) {
        case Special::tid_x:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) % ntid[0]; });
        case Special::tid_y:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) / ntid[0] % ntid[1]; });
        case Special::tid_z:
            return fill(slot, bytes, [=](uint32_t lane) { return (thread + lane) / ntid[0] / ntid[1]; });
        case Special::laneid:
            return fill(slot, bytes, [](uint32_t lane) { return lane; });
        case Special::lanemask_eq:
            return fill(slot, bytes, [](uint32_t lane) { return 1u << lane; });
        case Special::lanemask_le:
            return fill(slot, bytes, [](uint32_t lane) { return (2ull << lane) - 1; });
        case Special::lanemask_lt:
            return fill(slot, bytes, [](uint32_t lane) { return (1u << lane) - 1; });
        case Special::lanemask_ge:
            return fill(slot, bytes, [](uint32_t lane) { return 0u - (1u << lane); });
        case Special::lanemask_gt:
            return fill(slot, bytes, [](uint32_t lane) { return uint32_t(0) - uint32_t(2ull << lane); });
        default:
            break;
    }
    const uint64_t value = uniform_value(w, frame, Special(which));
    if (bytes == 0) {
        std::memcpy(slot, &value, sizeof(uint32_t));  // a predicate
    } else if (bytes == 4) {
        write_all_lanes(slot, uint32_t(value));
    } else {
        fill(slot, bytes, [=](uint32_t) { return value; });
    }
}

}  // namespace warpsim
