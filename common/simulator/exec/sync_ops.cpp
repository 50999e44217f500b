#include "exec/sync_ops.h"

#include <algorithm>
#include <cmath>

#include "exec/context.h"
#include "hazard/global_shadow.h"

namespace warpsim {

namespace {

// The values that the group's lanes brought, as in a slot.
const std::byte *brought(Warp &w, const Op &op) {
    const std::byte *gathered = context_of(w).sync.values;
    return gathered ? gathered : w.regs + op.a;
}

template <class T>
void load_values(Warp &w, const Op &op, T (&values)[kLanes]) {
    std::memcpy(values, brought(w, op), sizeof values);
}

void set_predicate(Warp &w, uint32_t slot, uint32_t bits) {
    if (slot == kNoSlot) return;
    uint32_t &p = w.predicate(slot);
    p = (p & ~w.exec) | (bits & w.exec);
}

}  // namespace

namespace {

template <Shuffle mode>
void shuffle(Warp &w, const Op &op) {
    alignas(64) uint32_t values[kLanes], from[kLanes], result[kLanes], valid[kLanes];
    load_values(w, op, values);
    const uint32_t *b = w.lanes<uint32_t>(op.b), *c = w.lanes<uint32_t>(op.c);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t by = b[lane] & 0x1f, clamp = c[lane] & 0x1f, segment = c[lane] >> 8 & 0x1f;
        const uint32_t max_lane = (lane & segment) | (clamp & ~segment), min_lane = lane & segment;
        uint32_t source = 0;
        if constexpr (mode == Shuffle::up) source = lane - by;
        if constexpr (mode == Shuffle::down) source = lane + by;
        if constexpr (mode == Shuffle::butterfly) source = lane ^ by;
        if constexpr (mode == Shuffle::index) source = min_lane | (by & ~segment);
        const bool in_range =
            mode == Shuffle::up ? int32_t(source) >= int32_t(max_lane) : int32_t(source) <= int32_t(max_lane);
        from[lane] = (in_range ? source : lane) & 0x1f;
        valid[lane] = in_range;
    }
    // A lane may read one that takes no part: reductions over a part of a warp do, and drop what they got.
    for (uint32_t lane = 0; lane < kLanes; ++lane) result[lane] = values[from[lane]];
    write_lanes<uint32_t>(w, op.dst, [&](unsigned lane) { return result[lane]; });
    if (uint32_t(op.imm) != kNoSlot) {
        uint32_t bits = 0;
        for (uint32_t lane = 0; lane < kLanes; ++lane) bits |= valid[lane] << lane;
        set_predicate(w, uint32_t(op.imm), bits);
    }
}

}  // namespace

Handler shuffle_handler(Shuffle mode) {
    switch (mode) {
        case Shuffle::up:
            return shuffle<Shuffle::up>;
        case Shuffle::down:
            return shuffle<Shuffle::down>;
        case Shuffle::butterfly:
            return shuffle<Shuffle::butterfly>;
        default:
            return shuffle<Shuffle::index>;
    }
}

void exec_vote(Warp &w, const Op &op) {
    const uint32_t members = context_of(w).sync.members;
    uint32_t bits;
    std::memcpy(&bits, brought(w, op), sizeof bits);
    bits &= members;
    bool result = false;
    switch (Vote(op.extra >> kModeShift & 0xf)) {
        case Vote::ballot:
            write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return bits; });
            return;
        case Vote::all:
            result = bits == members;
            break;
        case Vote::any:
            result = bits != 0;
            break;
        case Vote::uniform:
            result = bits == 0 || bits == members;
            break;
    }
    set_predicate(w, op.dst, result ? kAllLanes : 0);
}

namespace {

template <class T>
void match(Warp &w, const Op &op) {
    const uint32_t members = context_of(w).sync.members;
    T values[kLanes];
    load_values(w, op, values);
    uint32_t equal[kLanes] = {};
    for (unsigned i = 0; i < kLanes; ++i) {
        if (!(members >> i & 1)) continue;
        for (unsigned j = 0; j < kLanes; ++j) equal[i] |= uint32_t((members >> j & 1) && values[i] == values[j]) << j;
    }
    if (Match(op.extra >> kModeShift & 0xf) == Match::any) {
        write_lanes<uint32_t>(w, op.dst, [&](unsigned i) { return equal[i]; });
        return;
    }
    const bool all = equal[__builtin_ctz(members)] == members;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return all ? members : 0u; });
    set_predicate(w, uint32_t(op.imm), all ? kAllLanes : 0);
}

template <class T, class F>
T fold(const uint32_t (&values)[kLanes], uint32_t members, F f) {
    T result = T(values[__builtin_ctz(members)]);
    for (uint32_t left = members & (members - 1); left; left &= left - 1)
        result = f(result, T(values[__builtin_ctz(left)]));
    return result;
}

// Minimum or maximum of floats: a NaN loses unless .NaN is given, and -0 is less than +0.
uint32_t fold_float(const uint32_t (&values)[kLanes], uint32_t members, bool least, uint32_t flags) {
    bool any = false;
    float best = 0;
    for (uint32_t left = members; left; left &= left - 1) {
        uint32_t bits = values[__builtin_ctz(left)];
        if (flags & kReduceAbs) bits &= 0x7fffffffu;
        float v;
        std::memcpy(&v, &bits, sizeof v);
        if (std::isnan(v)) {
            if (flags & kReduceNan) return 0x7fffffffu;
            continue;
        }
        const bool closer =
            least ? v < best || (v == best && std::signbit(v)) : v > best || (v == best && !std::signbit(v));
        if (!any || closer) best = v;
        any = true;
    }
    uint32_t bits = 0x7fffffffu;
    if (any) std::memcpy(&bits, &best, sizeof bits);
    return bits;
}

}  // namespace

void exec_match32(Warp &w, const Op &op) {
    match<uint32_t>(w, op);
}
void exec_match64(Warp &w, const Op &op) {
    match<uint64_t>(w, op);
}

void exec_reduce(Warp &w, const Op &op) {
    const uint32_t members = context_of(w).sync.members;
    uint32_t values[kLanes];
    load_values(w, op, values);
    const Reduce mode = Reduce(op.extra >> kModeShift & 0xf);
    const bool is_signed = op.extra & kReduceSigned;
    uint32_t result = 0;
    if (op.extra & kReduceFloat) {
        result = fold_float(values, members, mode == Reduce::min, op.extra);
    } else {
        switch (mode) {
            case Reduce::add:
                result = fold<uint32_t>(values, members, [](auto a, auto b) { return a + b; });
                break;
            case Reduce::and_:
                result = fold<uint32_t>(values, members, [](auto a, auto b) { return a & b; });
                break;
            case Reduce::or_:
                result = fold<uint32_t>(values, members, [](auto a, auto b) { return a | b; });
                break;
            case Reduce::xor_:
                result = fold<uint32_t>(values, members, [](auto a, auto b) { return a ^ b; });
                break;
            case Reduce::min:
                result = is_signed
                             ? uint32_t(fold<int32_t>(values, members, [](auto a, auto b) { return std::min(a, b); }))
                             : fold<uint32_t>(values, members, [](auto a, auto b) { return std::min(a, b); });
                break;
            case Reduce::max:
                result = is_signed
                             ? uint32_t(fold<int32_t>(values, members, [](auto a, auto b) { return std::max(a, b); }))
                             : fold<uint32_t>(values, members, [](auto a, auto b) { return std::max(a, b); });
                break;
        }
    }
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return result; });
}

void exec_elect(Warp &w, const Op &op) {
    const uint32_t leader = uint32_t(__builtin_ctz(context_of(w).sync.members));
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return leader; });
    set_predicate(w, uint32_t(op.imm), 1u << leader);
}

void exec_warp_barrier(Warp &, const Op &) {}  // what it orders is recorded where the group completes

void exec_active_mask(Warp &w, const Op &op) {
    const uint32_t exec = w.exec;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return exec; });
}

void exec_device_fence(Warp &w, const Op &op) {
    show_stores(w);
    if (w.block->global_shadow) w.block->global_shadow->order().fence(w.agent, w.exec, op.extra & kSystemScope);
    exec_cluster_fence(w, op);
}

// The launches before in the stream, which this one may have overtaken, are over, and all that they wrote is there.
void exec_wait_for_launches(Warp &w, const Op &) {
    if (w.block->global_shadow) w.block->global_shadow->order().wait_for_launches(w.agent, w.exec);
}

void exec_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->fence(w, w.exec, false);
}

void exec_cluster_fence(Warp &w, const Op &) {
    if (w.block->shadow) w.block->shadow->fence(w, w.exec, true);
}

void exec_trap(Warp &w, const Op &op) {
    report_hazard(w, op, HazardKind::trap, __builtin_ctz(w.exec), 0,
                  "the kernel executed " + w.block->program->debug[op.index].text);
}

}  // namespace warpsim
