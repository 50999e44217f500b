// wgmma and setmaxnreg: see instructions/wgmma/wgmma.cpp and machine/completions.h.
#include <algorithm>
#include <array>

#include "core/op_formats.h"
#include "instructions/rows.h"
#include "instructions/wgmma/wgmma.h"
#include "lower/lowering.h"
#include "machine/core_ops.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

bool one_of(Type type, std::initializer_list<Type> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_16_bit(Type type) {
    return one_of(type, {Type::f16, Type::bf16});
}
bool is_float8(Type type) {
    return one_of(type, {Type::e4m3, Type::e5m2});
}
bool is_integer(Type type) {
    return one_of(type, {Type::s8, Type::u8});
}

// n and k of "m64n128k16"; false: no such shape.
bool read_shape(const std::string &shape, unsigned &n, unsigned &k) {
    int end = 0;
    return std::sscanf(shape.c_str(), "m64n%uk%u%n", &n, &k, &end) == 2 && size_t(end) == shape.size();
}

// Shape and types: m64nNkK.D.A.B, what stands behind sync.aligned.
WgmmaForm read_form(Lowering &l, const Instruction &in) {
    std::vector<std::string> names(in.modifiers.begin(), in.modifiers.end());
    std::erase_if(names, [](const std::string &name) {
        return name == "mma_async" || name == "sync" || name == "aligned" || name == "satfinite";
    });
    if (in.has("sp")) l.unsupported(in, "sparse matrices");
    unsigned n = 0, k = 0;
    if (names.size() != 4 || !read_shape(names[0], n, k))
        l.unsupported(in, "it has a shape and three types, as in .m64n128k16.f32.bf16.bf16");
    WgmmaForm form;
    form.d = ptx::type_from_name(names[1]);
    form.a = ptx::type_from_name(names[2]);
    form.b = ptx::type_from_name(names[3]);
    form.saturate = in.has("satfinite");
    const bool floats = is_16_bit(form.a) || form.a == Type::tf32 || is_float8(form.a);
    if (!floats && !is_integer(form.a)) l.unsupported(in, "no such type of A is known to warpsim");
    const bool match = is_float8(form.a)    ? is_float8(form.b)
                       : is_integer(form.a) ? is_integer(form.b)
                                            : form.a == form.b;
    if (!match) l.unsupported(in, "the types of A and B do not go together");
    const bool d_fits = is_integer(form.a) ? form.d == Type::s32
                                           : form.d == Type::f32 ||
                                                 (form.d == Type::f16 && form.a != Type::bf16 && form.a != Type::tf32);
    if (!d_fits) l.unsupported(in, "no such type of D for these of A and B");
    if (form.saturate && !is_integer(form.a)) l.unsupported(in, "only sums of integers have .satfinite");
    const unsigned wanted_k = 32 / ptx::type_bytes(form.a);
    if (k != wanted_k) l.unsupported(in, "k is " + std::to_string(wanted_k) + " for these types");
    const bool n_fits = is_integer(form.a) ? n == 8 || n == 24 || (n >= 16 && n <= 256 && n % 16 == 0)
                                           : n >= 8 && n <= 256 && n % 8 == 0;
    if (!n_fits)
        l.unsupported(in, is_integer(form.a) ? "n is 8, 16, 24, 32, and from there a multiple of 16 up to 256"
                                             : "n is a multiple of 8 up to 256");
    form.n8 = uint8_t(n / 8);
    return form;
}

int64_t immediate(Lowering &l, const Instruction &in, size_t operand, const char *what,
                  std::initializer_list<int64_t> values) {
    const Operand &o = in.operands[operand];
    if (o.kind != Operand::Kind::integer || std::find(values.begin(), values.end(), o.integer) == values.end())
        l.unsupported(in, std::string(what) + (*values.begin() ? " is 1 or -1" : " is 0 or 1"));
    return o.integer;
}

// wgmma.mma_async.sync.aligned.shape.d.a.b {d...}, a-desc | {a...}, b-desc, scale-d{, imm-scale-a, imm-scale-b{,
// imm-trans-a}, imm-trans-b}: A in registers has no imm-trans-a, types other than 16-bit ones have neither, integers no
// scales.
void lower_wgmma(Lowering &l, const Instruction &in) {
    WgmmaForm form = read_form(l, in);
    const std::vector<Operand> d = registers_of(in.operands[0]);
    const unsigned columns = form.n8 * 8u;
    expect_count(l, in, "D", d.size(), form.d == Type::f16 ? columns / 4 : columns / 2);
    form.a_in_registers = in.operands[1].kind == Operand::Kind::vector;
    const size_t scales = is_integer(form.a) ? 0 : 2;
    const size_t transposes = is_16_bit(form.a) ? (form.a_in_registers ? 1 : 2) : 0;
    const size_t wanted = 4 + scales + transposes;
    if (in.operands.size() != wanted)
        l.unsupported(in, "it has " + std::to_string(in.operands.size()) + " operands, not " + std::to_string(wanted));
    if (scales) {
        form.negate_a = immediate(l, in, 4, "imm-scale-a", {1, -1}) < 0;
        form.negate_b = immediate(l, in, 5, "imm-scale-b", {1, -1}) < 0;
    }
    if (transposes == 2) form.a_mn_major = immediate(l, in, 6, "imm-trans-a", {0, 1});
    if (transposes) form.b_mn_major = immediate(l, in, 5 + transposes, "imm-trans-b", {0, 1});
    std::vector<uint32_t> slots;
    for (const Operand &operand : d) {
        l.source(operand, Type::b32);
        slots.push_back(l.destination(operand, Type::b32));
    }
    uint32_t a = kNoSlot;
    if (form.a_in_registers) {
        const std::vector<Operand> registers = registers_of(in.operands[1]);
        expect_count(l, in, "A", registers.size(), 4);
        for (const Operand &operand : registers) slots.push_back(l.source(operand, Type::b32));
    } else {
        a = l.source(in.operands[1], Type::b64);
    }
    const uint32_t b = l.source(in.operands[2], Type::b64);
    const uint32_t scale_d = l.source(in.operands[3], Type::pred);
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.list = list;
    op.list_count = uint16_t(slots.size());
    op.a = a;
    op.b = b;
    op.c = scale_d;
    op.imm = pack<int64_t>(form);
}

void lower_wgmma_wait(Lowering &l, const Instruction &in) {
    const int64_t groups = in.operands[0].integer;
    if (groups < 0 || groups > 7) l.unsupported(in, "it leaves 0 to 7 groups in flight");
    l.emit_row(in).imm = groups;
}

void lower_set_max_registers(Lowering &l, const Instruction &in) {
    const int64_t count = in.operands[0].integer;
    if (count < 24 || count > 256 || count % 8)
        l.unsupported(in, "the number of registers is a multiple of 8 from 24 to 256");
    Op &op = l.emit_row(in);
    op.imm = count;
    op.extra = in.has("inc");
}

#define OF_WARP OpClass::warpgroup, Flow::warp_sync

constexpr InstructionRow kRows[] = {
    {"wgmma.mma_async!.sync.aligned*", "d, a, b, c{, e}{, f}{, g}{, h}", OpClass::tensor, Flow::warpgroup, exec_wgmma,
     lower_wgmma, passes_wgmma},
    {"wgmma.fence!.sync.aligned", "", OF_WARP, exec_wgmma_fence, lower_plain, passes_nothing},
    {"wgmma.commit_group!.sync.aligned", "", OF_WARP, exec_wgmma_commit, lower_plain, passes_nothing},
    {"wgmma.wait_group!.sync.aligned", "i", OF_WARP, exec_wgmma_wait, lower_wgmma_wait, passes_nothing},
    {"setmaxnreg.{inc,dec}!.sync.aligned.u32", "i", OpClass::warpgroup, Flow::warpgroup, exec_set_max_registers,
     lower_set_max_registers, passes_nothing},
};

}  // namespace

std::span<const InstructionRow> wgmma_rows() {
    return kRows;
}

}  // namespace warpsim
