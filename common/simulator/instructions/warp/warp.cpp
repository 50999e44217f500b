// shfl, vote, match, redux, activemask, elect.
#include "instructions/warp/warp.h"

#include <algorithm>
#include <cmath>

#include "core/warp.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/context.h"
#include "machine/core_ops.h"

namespace warpsim {

void exec_warp_barrier(Warp &, const Op &) {}  // what it orders is recorded where the group completes

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

// dst, pair predicate in imm (kNoSlot: none), a, b: lane, c: clamp and segment
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
    for (uint32_t lane = 0; lane < kLanes; ++lane) result[lane] = values[from[lane]];
    write_lanes<uint32_t>(w, op.dst, [&](unsigned lane) { return result[lane]; });
    const uint32_t members = context_of(w).sync.members;
    if (members != kAllLanes) [[unlikely]] {
        uint32_t outside = 0;
        for (uint32_t lane = 0; lane < kLanes; ++lane) outside |= uint32_t(!(members >> from[lane] & 1)) << lane;
        if (outside & w.exec) undefine_shuffled(w, op, outside & w.exec, from);
    }
    if (uint32_t(op.imm) != kNoSlot) {
        uint32_t bits = 0;
        for (uint32_t lane = 0; lane < kLanes; ++lane) bits |= valid[lane] << lane;
        set_predicate(w, uint32_t(op.imm), bits);
    }
}

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

// dst: predicate, or ballot in a register
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

// dst, pair predicate in imm
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

// dst: leader's lane; imm: predicate slot
void exec_elect(Warp &w, const Op &op) {
    const uint32_t leader = uint32_t(__builtin_ctz(context_of(w).sync.members));
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return leader; });
    set_predicate(w, uint32_t(op.imm), 1u << leader);
}

void exec_active_mask(Warp &w, const Op &op) {
    const uint32_t exec = w.exec;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned) { return exec; });
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

template <class Mode>
uint32_t pack(Brings brings, Mode mode, uint32_t flags = 0) {
    return uint32_t(brings) | uint32_t(mode) << kModeShift | flags;
}

Op &emit_sync(Lowering &l, const Instruction &in, uint32_t member, uint32_t extra, Handler fn = nullptr) {
    Op &op = l.emit_row(in, fn);
    op.member = member;
    op.extra = extra;
    return op;
}

uint32_t pair_slot(Lowering &l, const Operand &dst) {
    return dst.has_pair && !dst.elements.empty() ? l.destination(dst.elements[0], Type::pred) : kNoSlot;
}

// shfl.sync.mode.b32 d{|p}, a, b, c, membermask
void lower_shfl(Lowering &l, const Instruction &in) {
    const Shuffle mode = in.has("up")     ? Shuffle::up
                         : in.has("down") ? Shuffle::down
                         : in.has("bfly") ? Shuffle::butterfly
                                          : Shuffle::index;
    const uint32_t a = l.source(in.operands[1], Type::b32), b = l.source(in.operands[2], Type::b32),
                   c = l.source(in.operands[3], Type::b32), member = l.source(in.operands[4], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    Op &op = emit_sync(l, in, member, pack(Brings::word, mode), shuffle_handler(mode));
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    op.imm = pair;
}

// vote.sync.{all,any,uni}.pred d, {!}a, membermask; vote.sync.ballot.b32 d, {!}a, membermask
void lower_vote(Lowering &l, const Instruction &in) {
    const Vote mode = in.has("all")   ? Vote::all
                      : in.has("any") ? Vote::any
                      : in.has("uni") ? Vote::uniform
                                      : Vote::ballot;
    const uint32_t a = l.source(in.operands[1], Type::pred), member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], mode == Vote::ballot ? Type::b32 : Type::pred);
    Op &op = emit_sync(l, in, member, pack(Brings::predicate, mode));
    op.dst = dst;
    op.a = a;
}

// match.any.sync.type d, a, membermask; match.all.sync.type d{|p}, a, membermask
void lower_match(Lowering &l, const Instruction &in) {
    const bool wide = in.has("b64");
    const Match mode = in.has("any") ? Match::any : Match::all;
    const uint32_t a = l.source(in.operands[1], wide ? Type::b64 : Type::b32),
                   member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    Op &op = emit_sync(l, in, member, pack(wide ? Brings::double_word : Brings::word, mode),
                       wide ? exec_match64 : exec_match32);
    op.dst = dst;
    op.a = a;
    op.imm = pair;
}

// redux.sync.op.type d, a, membermask
void lower_redux(Lowering &l, const Instruction &in) {
    const Reduce mode = in.has("add")   ? Reduce::add
                        : in.has("min") ? Reduce::min
                        : in.has("max") ? Reduce::max
                        : in.has("and") ? Reduce::and_
                        : in.has("or")  ? Reduce::or_
                                        : Reduce::xor_;
    uint32_t flags = 0;
    if (in.has("s32")) flags |= kReduceSigned;
    if (in.has("f32")) flags |= kReduceFloat;
    if (in.has("abs")) flags |= kReduceAbs;
    if (in.has("NaN")) flags |= kReduceNan;
    const uint32_t a = l.source(in.operands[1], Type::b32), member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    Op &op = emit_sync(l, in, member, pack(Brings::word, mode, flags));
    op.dst = dst;
    op.a = a;
}

void lower_activemask(Lowering &l, const Instruction &in) {
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    l.emit_row(in).dst = dst;
}

// elect.sync d|p, membermask
void lower_elect(Lowering &l, const Instruction &in) {
    const uint32_t member = l.source(in.operands[1], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    if (pair == kNoSlot) l.unsupported(in, "no predicate");
    Op &op = emit_sync(l, in, member, uint32_t(Brings::nothing));
    op.dst = dst;
    op.imm = pair;
}

void lower_warp_barrier(Lowering &l, const Instruction &in) {
    const uint32_t member = l.source(in.operands[0], Type::b32);
    l.emit_row(in).member = member;
}

constexpr InstructionRow kRows[] = {
    // Barriers and fences. Memory is consistent here anyway; a fence matters to the hazard detector.
    {"bar.warp.sync!", "a", OpClass::barrier, Flow::warp_sync, exec_warp_barrier, lower_warp_barrier, passes_nothing},

    // Warps
    {"shfl.sync.{up,down,bfly,idx}.b32", "d|p, a, b, c, e", OpClass::shuffle, Flow::warp_sync, nullptr, lower_shfl,
     passes_shuffle},
    {"vote.sync.{all,any,uni}.pred", "d, a, b", OpClass::vote, Flow::warp_sync, exec_vote, lower_vote, passes_vote},
    {"vote.sync.ballot.b32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_vote, lower_vote, passes_vote},
    {"match.any.sync.{b32,b64}", "d, a, b", OpClass::vote, Flow::warp_sync, nullptr, lower_match, passes_group},
    {"match.all.sync.{b32,b64}", "d|p, a, b", OpClass::vote, Flow::warp_sync, nullptr, lower_match, passes_group},
    {"redux.sync.{add,min,max}.{u32,s32}", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux,
     passes_group},
    {"redux.sync.{and,or,xor}.b32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux, passes_group},
    {"redux.sync.{min,max}{.abs}{.NaN}.f32", "d, a, b", OpClass::vote, Flow::warp_sync, exec_reduce, lower_redux,
     passes_group},
    {"activemask.b32", "d", OpClass::vote, Flow::straight, exec_active_mask, lower_activemask},
    {"elect.sync", "d|p, a", OpClass::vote, Flow::warp_sync, exec_elect, lower_elect},
};

}  // namespace

std::span<const InstructionRow> warp_rows() {
    return kRows;
}

}  // namespace warpsim
