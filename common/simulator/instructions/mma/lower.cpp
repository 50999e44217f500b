// mma.sync: see instructions/mma/mma.h.
#include <bit>

#include "core/op_formats.h"
#include "definedness/linear.h"
#include "definedness/rules.h"
#include "instructions/mma/mma.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/context.h"
#include "machine/tracking.h"

namespace warpsim {

void passes_mma(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    const MmaFragments count = unpack<MmaFragments>(op.imm);
    if (op.flow != Flow::warp_sync || !count.d || !flow.writes || w.exec != kAllLanes)
        return passes_any(w, op, flow, lanes);
    const uint32_t bytes = Operands(w, flow).writes[0].bytes;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const uint32_t *a = slots + count.d, *b = a + count.a, *c = b + count.b;
    const auto undefined = [&](uint32_t slot) { return w.undefined->undefined({slot, bytes}); };
    // Lanes 4g to 4g + 3 hold row g of A (register i of the rows from 8 * (i % 2) on) and column g of B.
    uint32_t rows[2] = {}, columns = 0;
    const unsigned halves = count.a > 1 ? 2 : 1;
    LaneOrigins origins{};
    uint32_t any = Definedness::kNoOrigin;
    const auto look = [&](uint32_t slot, uint32_t &groups) {
        const uint32_t found = undefined(slot);
        for (unsigned g = 0; g < 8; ++g) groups |= uint32_t((found >> 4 * g & 0xf) != 0) << g;
        if (found && !any) any = w.undefined->origins(slot)[std::countr_zero(found)];
    };
    for (unsigned i = 0; i < count.a; ++i) look(a[i], rows[i % halves]);
    for (unsigned i = 0; i < count.b; ++i) look(b[i], columns);
    uint32_t in_c[8] = {};
    for (unsigned i = 0; i < count.c; ++i) {
        in_c[i] = undefined(c[i]);
        if (in_c[i] && !any) any = w.undefined->origins(c[i])[std::countr_zero(in_c[i])];
    }
    if (!any) any = w.block->definedness->origin(Definedness::Source::variable, w, op, 0, 0);
    origins.fill(origin_id(any));
    for (unsigned i = 0; i < count.d; ++i) {
        uint32_t unknown = count.c == count.d ? in_c[i] : in_c[0] | in_c[1] | in_c[2] | in_c[3];
        const uint32_t &half = rows[halves == 2 && i >= count.d / 2];
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const bool here = (half >> lane / 4 & 1) || (columns >> 2 * (lane % 4) & 3);
            unknown |= uint32_t(here) << lane;
        }
        const OperandSlot to{slots[i], bytes};
        w.undefined->define(to, kAllLanes);
        w.undefined->undefine(to, unknown);
        set_origins(*w.undefined, to, unknown, origins);
    }
}

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

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

namespace {

#define MMA_SHAPE "m8n8k4,m8n8k16,m8n8k32,m8n8k128,m16n8k4,m16n8k8,m16n8k16,m16n8k32,m16n8k64,m16n8k128,m16n8k256"
#define MMA_TYPE ".{f16,bf16,tf32,f32,f64,e4m3,e5m2,s8,u8,s4,u4,b1,s32}"
#define MMA_TYPES MMA_TYPE MMA_TYPE MMA_TYPE MMA_TYPE

constexpr InstructionRow kRows[] = {
    // Matrices
    {"mma.sync.aligned.{" MMA_SHAPE "}.{row,col}.{row,col}{.satfinite}" MMA_TYPES "{.xor,.and}{.popc}", "d, a, b, c",
     OpClass::tensor, Flow::warp_sync, nullptr, lower_mma, passes_mma},
};

}  // namespace

std::span<const InstructionRow> mma_rows() {
    return kRows;
}

}  // namespace warpsim
