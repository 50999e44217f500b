// cvt and cvt.pack.
#include <algorithm>

#include "core/op_formats.h"
#include "instructions/arithmetic/forms.h"
#include "instructions/convert/convert.h"
#include "instructions/rows.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// The element of a packed type, or none.
Type packed_element(Type type) {
    switch (type) {
        case Type::f16x2:
            return Type::f16;
        case Type::bf16x2:
            return Type::bf16;
        case Type::e4m3x2:
            return Type::e4m3;
        case Type::e5m2x2:
            return Type::e5m2;
        default:
            return Type::none;
    }
}

// Applies a modifier other than a type.
void apply_modifier(Conversion &c, std::string_view m) {
    const struct {
        std::string_view name;
        Round round;
        bool integral;
    } roundings[] = {{"rn", Round::nearest_even, false},
                     {"rna", Round::nearest_away, false},
                     {"rz", Round::zero, false},
                     {"rm", Round::down, false},
                     {"rp", Round::up, false},
                     {"rni", Round::nearest_even, true},
                     {"rzi", Round::zero, true},
                     {"rmi", Round::down, true},
                     {"rpi", Round::up, true}};
    for (const auto &rounding : roundings) {
        if (m != rounding.name) continue;
        c.round = rounding.round;
        c.integral = rounding.integral;
        return;
    }
    if (m == "ftz")
        c.ftz = true;
    else if (m == "sat")
        c.sat = true;
    else if (m == "satfinite")
        c.satfinite = true;
    else if (m == "relu")
        c.relu = true;
}

bool convertible(Type type) {
    return float_format(type) || (ptx::type_bytes(type) > 0 && ptx::type_bytes(type) <= 8 && !ptx::is_float(type) &&
                                  packed_element(type) == Type::none && type != Type::u16x2 && type != Type::s16x2);
}

// The type with which to ask for an operand of `type`: 8-bit integers live in 16-bit or 32-bit registers.
Type container(Lowering &lowering, const Operand &operand, Type type) {
    if (ptx::type_bytes(type) != 1) return type == Type::tf32 ? Type::b32 : type;
    const unsigned bytes = operand.kind == Operand::Kind::reg ? lowering.register_bytes(operand) : 2;
    return bytes == 1 ? type : bytes == 2 ? Type::b16 : Type::b32;
}

Type register_type(unsigned bytes) {
    return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

void lower_cvt_pair(Lowering &lowering, const Instruction &in, Conversion c, Type to, Type from) {
    c.to = packed_element(to);
    c.from = packed_element(from) == Type::none ? from : packed_element(from);
    c.two_sources = c.from == from;
    if (c.to == Type::none || !float_format(c.from)) lowering.unsupported(in);
    expect_operands(lowering, in, c.two_sources ? 3 : 2);
    c.to_bytes = uint8_t(ptx::type_bytes(c.to));
    c.from_bytes = uint8_t(ptx::type_bytes(c.from));
    // Eight-bit floats saturate whether .satfinite is spelled out or not.
    if (c.to_bytes == 1) c.satfinite = true;
    const uint32_t a = alu_source(lowering, in, in.operands[1], from, Width::at_least);
    const uint32_t b = c.two_sources ? alu_source(lowering, in, in.operands[2], from, Width::at_least) : kNoSlot;
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], to);
    Op &op = lowering.emit(in, &convert_pair, OpClass::conversion);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.imm = pack<int64_t>(c);
}

void lower_cvt(Lowering &lowering, const Instruction &in) {
    Conversion c;
    const size_t types = in.modifiers.size() - 2;
    for (size_t i = 0; i < types; ++i) apply_modifier(c, in.modifiers[i]);
    const Type to = ptx::type_from_name(in.modifiers[types]), from = ptx::type_from_name(in.modifiers[types + 1]);

    // From one integer to another .sat is there where some value would not fit.
    const unsigned bits = 8 * ptx::type_bytes(to), from_bits = 8 * ptx::type_bytes(from);
    const bool fits =
        ptx::is_signed(to) == ptx::is_signed(from) ? bits >= from_bits : ptx::is_signed(to) && bits > from_bits;
    if (c.sat && fits && !ptx::is_float(to) && !ptx::is_float(from))
        lowering.unsupported(in, "every value fits: there is no .sat");

    const Operand &result = in.operands[0], &operand = in.operands[1];
    const Type from_container = container(lowering, operand, from);
    const bool wide_source = ptx::type_bytes(from) == 1 && ptx::type_bytes(from_container) == 4;
    const unsigned to_bytes = ptx::type_bytes(to);
    const unsigned result_bytes =
        std::max(result.kind == Operand::Kind::reg ? lowering.register_bytes(result) : 0u, std::max(to_bytes, 2u));
    const bool wide_result = to_bytes == 1 && result_bytes == 4;
    if (result_bytes == std::max(to_bytes, 2u) || wide_result) {
        const std::string key = in.text() + (wide_source ? "/a4" : "") + (wide_result ? "/d4" : "");
        if (const AluForm *form = find_form(key, in.operands.size() - 1);
            form && (ptx::type_bytes(from) != 1 || ptx::type_bytes(from_container) > 1)) {
            emit_form(lowering, in, *form, Width::at_least);
            return;
        }
    }
    if (packed_element(to) != Type::none) return lower_cvt_pair(lowering, in, c, to, from);
    if (!convertible(to) || !convertible(from)) lowering.unsupported(in);
    expect_operands(lowering, in, 2);
    c.to = to;
    c.from = from;
    c.from_bytes = uint8_t(ptx::type_bytes(from_container));
    c.to_bytes = uint8_t(result_bytes);
    const uint32_t a = alu_source(lowering, in, operand, from_container, Width::at_least);
    const uint32_t dst = alu_destination(lowering, in, result, register_type(result_bytes));
    Op &op = lowering.emit(in, &convert_scalar, OpClass::conversion);
    op.dst = dst;
    op.a = a;
    op.imm = pack<int64_t>(c);
}

// cvt.pack.sat.convertType.abType d, a, b and, of 8 bits and less, cvt.pack.sat.convertType.s32.b32 d, a, b, c
void lower_cvt_pack(Lowering &lowering, const Instruction &in) {
    const std::string &name = in.modifiers[2];
    const bool with_c = in.operands.size() == 4;
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::b32);
    const uint32_t b = alu_source(lowering, in, in.operands[2], Type::b32);
    const uint32_t c = with_c ? alu_source(lowering, in, in.operands[3], Type::b32) : kNoSlot;
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::b32);
    PackForm form;
    form.bits = static_cast<uint8_t>(std::stoi(name.substr(1)));
    form.is_signed = name[0] == 's';
    Op &op = lowering.emit(in, &convert_pack, OpClass::conversion);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    op.extra = pack<uint32_t>(form);
}

#define INTEGERS ".{u8,u16,u32,u64,s8,s16,s32,s64}"
#define INTEGERS_16 ".{u16,u32,u64,s16,s32,s64}"
#define ROUND_TO_INTEGER ".rni,.rzi,.rmi,.rpi"
#define CVT(SYNTAX) {SYNTAX, "d, a", OpClass::conversion, Flow::straight, nullptr, lower_cvt, passes_conversion}

constexpr InstructionRow kRows[] = {
    CVT("cvt{.sat}" INTEGERS INTEGERS),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f32" INTEGERS),
    CVT("cvt.{" ROUND "}{.sat}.{f16,f64}" INTEGERS),
    CVT("cvt.{" ROUND "}.bf16" INTEGERS_16),
    CVT("cvt.{" ROUND_TO_INTEGER "}{.ftz}{.sat}" INTEGERS ".f32"),
    CVT("cvt.{" ROUND_TO_INTEGER "}{.sat}" INTEGERS ".{f16,f64}"),
    CVT("cvt.{" ROUND_TO_INTEGER "}" INTEGERS_16 ".bf16"),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f32.f64"),
    CVT("cvt.{" ROUND "}{.sat}.f16.f64"),
    CVT("cvt.{" ROUND "}.bf16.f64"),
    CVT("cvt.{" ROUND "}{.ftz}{.sat}.f16.f32"),
    CVT("cvt.{rn,rz}{.relu}{.satfinite}.{f16,bf16,tf32}.f32"),
    CVT("cvt.{" ROUND "}{.ftz}.bf16.f32"),
    CVT("cvt.rna{.satfinite}.tf32.f32"),
    CVT("cvt{" ROUND "}.bf16.f16"),
    CVT("cvt{" ROUND "}.{f16,f64}.bf16"),
    CVT("cvt{" ROUND "}{.ftz}.f32.bf16"),
    CVT("cvt{.ftz}{.sat}.f32.f16"),
    CVT("cvt{.ftz}{.sat}.f64.f32"),
    CVT("cvt{.sat}.f64.f16"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.ftz}{.sat}.f32.f32"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.sat}.f16.f16"),
    CVT("cvt{" ROUND_TO_INTEGER "}{.sat}.f64.f64"),
    CVT("cvt{" ROUND_TO_INTEGER "}.bf16.bf16"),
    {"cvt.{rn,rz}{.relu}{.satfinite}.{f16x2,bf16x2}.f32", "d, a, b", OpClass::conversion, Flow::straight, nullptr,
     lower_cvt, passes_conversion},
    {"cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f32", "d, a, b", OpClass::conversion, Flow::straight, nullptr, lower_cvt,
     passes_conversion},
    CVT("cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f16x2"),
    CVT("cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}"),
    {"cvt.pack!.sat.{u16,s16}.s32", "d, a, b", OpClass::conversion, Flow::straight, nullptr, lower_cvt_pack},
    {"cvt.pack!.sat.{u2,s2,u4,s4,u8,s8}.s32.b32", "d, a, b, c", OpClass::conversion, Flow::straight, nullptr,
     lower_cvt_pack},
};

}  // namespace

std::span<const InstructionRow> convert_rows() {
    return kRows;
}

}  // namespace warpsim
