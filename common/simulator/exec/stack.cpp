#include "exec/stack.h"

#include <algorithm>

#include "core/round_up.h"
#include "exec/context.h"

namespace warpsim {
namespace {

constexpr uint32_t kLeastFrame = 16, kFrameAlignment = 16;

template <class F>
void for_each_lane(uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(__builtin_ctz(lanes)));
}

[[noreturn]] void overflow(Warp &w, const Op &op, unsigned lane, uint64_t bytes, uint64_t taken) {
    report_hazard(w, op, HazardKind::illegal_instruction, int(lane), 0,
                  "stack overflow: alloca of " + std::to_string(bytes) + " bytes, where " + std::to_string(taken) +
                      " of the " + std::to_string(w.local_bytes) +
                      " bytes of local memory that a thread has are in use (cudaLimitStackSize sets them)");
    throw LaunchAborted{};
}

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

template <class T>
void exec_alloca(Warp &w, const Op &op) {
    const uint64_t own = variable_bytes(*context_of(w).frame);
    uint64_t *top = w.lanes<uint64_t>(op.b);
    for_each_lane(w.exec, [&](unsigned lane) {
        const uint64_t bytes = w.lanes<T>(op.a)[lane];
        const uint64_t start = round_up(top[lane] + own, uint64_t(op.imm));
        if (start > w.local_bytes || bytes > w.local_bytes - start) overflow(w, op, lane, bytes, top[lane] + own);
        if (w.undefined_local) w.undefined_local->undefine(lane * w.local_bytes + start, bytes);
        top[lane] = start + bytes - own;
        w.lanes<T>(op.dst)[lane] = T(start);
    });
}
template void exec_alloca<uint32_t>(Warp &, const Op &);
template void exec_alloca<uint64_t>(Warp &, const Op &);

template <class T>
void exec_stack_save(Warp &w, const Op &op) {
    const uint64_t own = variable_bytes(*context_of(w).frame);
    const uint64_t *top = w.lanes<uint64_t>(op.b);
    write_lanes<T>(w, op.dst, [=](unsigned lane) { return T(top[lane] + own); });
}
template void exec_stack_save<uint32_t>(Warp &, const Op &);
template void exec_stack_save<uint64_t>(Warp &, const Op &);

template <class T>
void exec_stack_restore(Warp &w, const Op &op) {
    const Frame &frame = *context_of(w).frame;
    const uint64_t own = variable_bytes(frame);
    for_each_lane(w.exec, [&](unsigned lane) {
        const uint64_t end = w.lanes<T>(op.a)[lane];
        uint64_t &top = w.lanes<uint64_t>(op.b)[lane];
        if (end < frame.local_base + own || end > top + own) {
            report_hazard(
                w, op, HazardKind::invalid_argument, int(lane), end,
                "stackrestore to " + std::to_string(end) + ", which no stacksave of this function has given since");
            return;
        }
        top = end - own;
    });
}
template void exec_stack_restore<uint32_t>(Warp &, const Op &);
template void exec_stack_restore<uint64_t>(Warp &, const Op &);

}  // namespace warpsim
