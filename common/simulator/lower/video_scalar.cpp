// The scalar video instructions:
//   vop.dtype.atype.btype{.sat}{.op2} d{.dsel}, a{.asel}, b{.bsel}{, c}      vset.atype.btype.cmp{.op2} ...
//   vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a{.asel}, {-}b{.bsel}, {-}c
#include "exec/video_scalar.h"

#include <string_view>

#include "core/op_formats.h"
#include "lower/families.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

struct Name {
    std::string_view text;
    ScalarVideoOp what;
};
constexpr Name kNames[] = {
    {"vadd", ScalarVideoOp::add}, {"vsub", ScalarVideoOp::sub}, {"vabsdiff", ScalarVideoOp::absolute_difference},
    {"vmin", ScalarVideoOp::min}, {"vmax", ScalarVideoOp::max}, {"vshl", ScalarVideoOp::shl},
    {"vshr", ScalarVideoOp::shr}, {"vmad", ScalarVideoOp::mad}, {"eq", ScalarVideoOp::eq},
    {"ne", ScalarVideoOp::ne},    {"lt", ScalarVideoOp::lt},    {"le", ScalarVideoOp::le},
    {"gt", ScalarVideoOp::gt},    {"ge", ScalarVideoOp::ge},
};

VideoPart part_of(Lowering &l, const Instruction &in, const Operand &operand) {
    constexpr std::string_view kParts[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
    for (size_t i = 0; i < std::size(kParts); ++i)
        if (operand.selector == kParts[i]) return static_cast<VideoPart>(i);
    l.unsupported(in, "the selector ." + operand.selector);
}

}  // namespace

void lower_scalar_video(Lowering &l, const Instruction &in) {
    ScalarVideoForm form;
    const bool compares = in.opcode == "vset", multiplies = in.opcode == "vmad";
    for (const Name &name : kNames)
        if (in.opcode == name.text || (compares && in.has(name.text))) form.what = name.what;
    std::vector<bool> is_signed;
    for (const std::string &modifier : in.modifiers)
        if (modifier == "s32" || modifier == "u32") is_signed.push_back(modifier == "s32");
    form.a_signed = is_signed[is_signed.size() - 2];
    form.b_signed = is_signed[is_signed.size() - 1];
    form.d_signed = !compares && is_signed[0];
    form.saturate = in.has("sat");
    form.wrap = in.has("wrap");
    form.second = in.has("add")   ? VideoSecond::add
                  : in.has("min") ? VideoSecond::min
                  : in.has("max") ? VideoSecond::max
                                  : VideoSecond::none;
    const bool has_c = in.operands.size() == 4;
    form.d = part_of(l, in, in.operands[0]);
    form.a = part_of(l, in, in.operands[1]);
    form.b = part_of(l, in, in.operands[2]);
    if (has_c && !in.operands[3].selector.empty()) l.unsupported(in, "the third source has no selector");
    const bool merges = form.d != VideoPart::word, combines = form.second != VideoSecond::none;
    if (multiplies) {
        const bool minus_a = in.operands[1].minus, minus_b = in.operands[2].minus;
        if (merges) l.unsupported(in, "its destination has no selector");
        form.minus_product = minus_a != minus_b;
        form.minus_c = in.operands[3].minus;
        form.plus = in.has("po");
        if (form.plus && (minus_a || minus_b || form.minus_c)) l.unsupported(in, "no source is negated with .po");
        if (form.minus_product && form.minus_c) l.unsupported(in, "the product and the sum are negated both");
        form.shift = in.has("shr7") ? 7 : in.has("shr15") ? 15 : 0;
        form.d_signed = form.a_signed || form.b_signed || form.minus_product || form.minus_c;
    } else {
        if (merges && combines) l.unsupported(in, "a selector of the destination, or a second operation, not both");
        // ptxas also takes a third source that nothing is done with.
        if ((merges || combines) && !has_c) l.unsupported(in, "it needs a third source");
    }
    const uint32_t a = l.source(in.operands[1], Type::b32), b = l.source(in.operands[2], Type::b32),
                   c = has_c ? l.source(in.operands[3], Type::b32) : kNoSlot,
                   dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    op.imm = pack<int64_t>(form);
}

}  // namespace warpsim
