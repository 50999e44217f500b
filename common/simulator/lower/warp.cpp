// shfl, vote, match, redux, activemask, elect.
#include "core/warp.h"
#include "exec/sync_ops.h"
#include "lower/lowering.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

template <class Mode>
uint32_t pack(Brings brings, Mode mode, uint32_t flags = 0) {
    return uint32_t(brings) | uint32_t(mode) << kModeShift | flags;
}

Op &emit_sync(Lowering &l, const Instruction &in, Handler fn, OpClass cls, uint32_t member, uint32_t extra) {
    Op &op = l.emit(in, fn, cls);
    op.flow = Flow::warp_sync;
    op.member = member;
    op.extra = extra;
    return op;
}

uint32_t pair_slot(Lowering &l, const Operand &dst) {
    return dst.has_pair && !dst.elements.empty() ? l.destination(dst.elements[0], Type::pred) : kNoSlot;
}

// shfl.sync.mode.b32 d{|p}, a, b, c, membermask
void lower_shfl(Lowering &l, const Instruction &in) {
    if (!in.has("sync") || in.operands.size() != 5) l.unsupported(in, "only shfl.sync exists on current devices");
    const Shuffle mode = in.has("up")     ? Shuffle::up
                         : in.has("down") ? Shuffle::down
                         : in.has("bfly") ? Shuffle::butterfly
                         : in.has("idx")  ? Shuffle::index
                                          : (l.unsupported(in), Shuffle::up);
    const uint32_t a = l.source(in.operands[1], Type::b32), b = l.source(in.operands[2], Type::b32),
                   c = l.source(in.operands[3], Type::b32), member = l.source(in.operands[4], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    Op &op = emit_sync(l, in, shuffle_handler(mode), OpClass::shuffle, member, pack(Brings::word, mode));
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    op.imm = pair;
}

// vote.sync.{all,any,uni}.pred d, {!}a, membermask; vote.sync.ballot.b32 d, {!}a, membermask
void lower_vote(Lowering &l, const Instruction &in) {
    if (!in.has("sync")) l.unsupported(in, "only vote.sync exists on current devices");
    const Vote mode = in.has("all")      ? Vote::all
                      : in.has("any")    ? Vote::any
                      : in.has("uni")    ? Vote::uniform
                      : in.has("ballot") ? Vote::ballot
                                         : (l.unsupported(in), Vote::all);
    const uint32_t a = l.source(in.operands[1], Type::pred), member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], mode == Vote::ballot ? Type::b32 : Type::pred);
    Op &op = emit_sync(l, in, exec_vote, OpClass::vote, member, pack(Brings::predicate, mode));
    op.dst = dst;
    op.a = a;
}

// match.any.sync.type d, a, membermask; match.all.sync.type d{|p}, a, membermask
void lower_match(Lowering &l, const Instruction &in) {
    const bool wide = in.has("b64");
    const Match mode = in.has("any") ? Match::any : in.has("all") ? Match::all : (l.unsupported(in), Match::any);
    const uint32_t a = l.source(in.operands[1], wide ? Type::b64 : Type::b32),
                   member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    Op &op = emit_sync(l, in, wide ? exec_match64 : exec_match32, OpClass::vote, member,
                       pack(wide ? Brings::double_word : Brings::word, mode));
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
                        : in.has("xor") ? Reduce::xor_
                                        : (l.unsupported(in), Reduce::add);
    uint32_t flags = 0;
    if (in.has("s32")) flags |= kReduceSigned;
    if (in.has("f32")) flags |= kReduceFloat;
    if (in.has("abs")) flags |= kReduceAbs;
    if (in.has("NaN")) flags |= kReduceNan;
    if (in.has("f32") && mode != Reduce::min && mode != Reduce::max) l.unsupported(in);
    const uint32_t a = l.source(in.operands[1], Type::b32), member = l.source(in.operands[2], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    Op &op = emit_sync(l, in, exec_reduce, OpClass::vote, member, pack(Brings::word, mode, flags));
    op.dst = dst;
    op.a = a;
}

void lower_activemask(Lowering &l, const Instruction &in) {
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    l.emit(in, exec_active_mask, OpClass::vote).dst = dst;
}

// elect.sync d|p, membermask
void lower_elect(Lowering &l, const Instruction &in) {
    const uint32_t member = l.source(in.operands[1], Type::b32);
    const uint32_t dst = l.destination(in.operands[0], Type::b32), pair = pair_slot(l, in.operands[0]);
    if (pair == kNoSlot) l.unsupported(in, "no predicate");
    Op &op = emit_sync(l, in, exec_elect, OpClass::vote, member, uint32_t(Brings::nothing));
    op.dst = dst;
    op.imm = pair;
}

}  // namespace

void register_warp(FamilyTable &table) {
    table["shfl"] = lower_shfl;
    table["vote"] = lower_vote;
    table["match"] = lower_match;
    table["redux"] = lower_redux;
    table["activemask"] = lower_activemask;
    table["elect"] = lower_elect;
}

}  // namespace warpsim
