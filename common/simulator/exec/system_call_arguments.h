// How functions that the driver provides to kernels get at their arguments and give back results, lane by lane.
#pragma once

#include <cstring>

#include "core/warp.h"
#include "exec/context.h"
#include "exec/tracking_memory.h"

namespace warpsim::system_call {

// Where a lane's argument or (index behind the arguments) result lies.
inline std::byte *place(Warp &w, const Op &op, unsigned lane, unsigned index) {
    const uint32_t base = op.b == kNoSlot ? 0 : w.lanes<uint32_t>(op.b)[lane];
    return w.local + lane * w.local_bytes + base + w.block->program->operand_list[op.list + 2 * index];
}

// What a call reads must be defined.
inline void check_input(Warp &w, const Op &op, unsigned lane, uint64_t address, size_t bytes) {
    uint32_t origin = Definedness::kNoOrigin;
    if (w.block->definedness && undefined_generic(w, lane, address, bytes, origin))
        w.block->definedness->matters(w, op, lane, origin, Use::call);
}

template <class T>
T argument(Warp &w, const Op &op, unsigned lane, unsigned index) {
    T value;
    const std::byte *from = place(w, op, lane, index);
    std::memcpy(&value, from, sizeof value);
    check_input(w, op, lane, kLocalWindow + uint64_t(from - w.local) - lane * w.local_bytes, sizeof value);
    return value;
}

template <class T>
void give_back(Warp &w, const Op &op, unsigned lane, T value) {
    if (!op.extra) return;
    std::byte *const to = place(w, op, lane, op.list_count);
    std::memcpy(to, &value, sizeof value);
    if (w.undefined_local) w.undefined_local->define(size_t(to - w.local), sizeof value);
}

template <class F>
void for_each_lane(Warp &w, F f) {
    for (uint32_t left = w.exec; left; left &= left - 1) f(unsigned(__builtin_ctz(left)));
}

}  // namespace warpsim::system_call
