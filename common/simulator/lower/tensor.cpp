// ldmatrix, stmatrix, movmatrix, mma.sync: see exec/mma.h; wmma: lower/wmma.cpp.
#include "exec/mma.h"
#include "lower/families.h"
#include "lower/fragments.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 {r...}, [p]      stmatrix...: [p], {r...}
void lower_matrix_move(Lowering &l, const Instruction &in, bool loads) {
    const size_t matrices = in.has("x4") ? 4 : in.has("x2") ? 2 : 1;
    if (in.operands[loads ? 0 : 1].kind != Operand::Kind::vector) l.unsupported(in, "the fragment is a vector");
    const std::vector<Operand> fragment = registers_of(in.operands[loads ? 0 : 1]);
    expect_count(l, in, "the fragment", fragment.size(), matrices);
    const Lowering::Address address = l.address(in.operands[loads ? 1 : 0]);
    const bool shared = in.has("shared") || in.has("shared::cta") || address.space_of_symbol == ptx::Space::shared;
    std::vector<uint32_t> slots;
    for (const Operand &operand : fragment)
        slots.push_back(loads ? l.destination(operand, Type::b32) : l.source(operand, Type::b32));
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.list = list;
    op.list_count = static_cast<uint16_t>(slots.size());
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = (in.has("trans") ? kMatrixTranspose : 0) | (address.slot_bytes == 8 ? kMatrixAddress64 : 0) |
               (shared ? 0 : kMatrixGeneric);
}

}  // namespace

void lower_mma(Lowering &l, const Instruction &in) {
    std::string name;
    for (const std::string &modifier : in.modifiers)
        if (modifier != "sync" && modifier != "aligned" && modifier != "satfinite")
            name += (name.empty() ? "" : ".") + modifier;
    const MmaForm *form = find_mma(name);
    const bool integers = name.find(".s32.") != name.npos && !name.ends_with(".popc");
    if (in.has("satfinite") && !integers) l.unsupported(in, "only sums of integers have .satfinite");
    if (!form) l.unsupported(in, "no such shape or combination of types is known to warpsim");
    const std::vector<Operand> d = registers_of(in.operands[0]), a = registers_of(in.operands[1]),
                               b = registers_of(in.operands[2]), c = registers_of(in.operands[3]);
    expect_count(l, in, "D", d.size(), form->d);
    expect_count(l, in, "A", a.size(), form->a);
    expect_count(l, in, "B", b.size(), form->b);
    expect_count(l, in, "C", c.size(), form->c);
    const Type width = name.ends_with(".f64") ? Type::b64 : Type::b32;
    std::vector<uint32_t> sources, slots;
    for (const auto *fragment : {&a, &b, &c})
        for (const Operand &operand : *fragment) sources.push_back(l.source(operand, width));
    for (const Operand &operand : d) slots.push_back(l.destination(operand, width));
    slots.insert(slots.end(), sources.begin(), sources.end());
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in, form->fn);
    op.list = list;
    op.list_count = static_cast<uint16_t>(slots.size());
    op.extra = in.has("satfinite") ? kMmaSaturate : 0;
    const bool quad_pairs = name.starts_with("m8n8k4.") && width == Type::b32;  // fragments of their own kind
    if (!quad_pairs) op.imm = pack<int64_t>(MmaFragments{form->d, form->a, form->b, form->c});
}

void lower_ldmatrix(Lowering &l, const Instruction &in) {
    lower_matrix_move(l, in, true);
}

void lower_stmatrix(Lowering &l, const Instruction &in) {
    lower_matrix_move(l, in, false);
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
void lower_movmatrix(Lowering &l, const Instruction &in) {
    const uint32_t a = l.source(in.operands[1], Type::b32), dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = a;
}

}  // namespace warpsim
