// shfl, vote, match, redux, activemask, elect.
#include "core/warp.h"
#include "exec/sync_ops.h"
#include "lower/families.h"
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

Op &emit_sync(Lowering &l, const Instruction &in, uint32_t member, uint32_t extra, Handler fn = nullptr) {
    Op &op = l.emit_row(in, fn);
    op.member = member;
    op.extra = extra;
    return op;
}

uint32_t pair_slot(Lowering &l, const Operand &dst) {
    return dst.has_pair && !dst.elements.empty() ? l.destination(dst.elements[0], Type::pred) : kNoSlot;
}

}  // namespace

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

}  // namespace warpsim
