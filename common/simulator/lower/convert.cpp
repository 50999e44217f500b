// cvt, cvt.pack, mov, prmt, selp, slct, set, setp, cvta, isspacep.
#include "exec/convert.h"

#include <algorithm>

#include "core/op_formats.h"
#include "exec/convert_move.h"
#include "lower/alu.h"
#include "lower/families.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// ---- cvt ----

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

// ---- mov ----

unsigned mov_bytes(Type type) {
    return type == Type::pred ? 0 : ptx::type_bytes(type);
}

void lower_pack(Lowering &lowering, const Instruction &in, Type type) {
    const Operand &vector = in.operands[1];
    if (!in.modifiers[0].starts_with('b')) lowering.unsupported(in, "vectors are packed as .b16, .b32, .b64 or .b128");
    const size_t count = vector.elements.size();
    const unsigned bytes = count ? mov_bytes(type) / unsigned(count) : 0;
    const Handler handler = pack_handler(bytes, unsigned(count));
    if (!handler || bytes * count != mov_bytes(type)) lowering.unsupported(in);
    std::vector<uint32_t> slots;
    for (const Operand &element : vector.elements)
        slots.push_back(alu_source(lowering, in, element, register_type(bytes)));
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
    const uint32_t list = lowering.list(slots);
    Op &op = lowering.emit(in, handler, OpClass::move);
    op.dst = dst;
    op.list = list;
    op.list_count = uint16_t(count);
}

void lower_unpack(Lowering &lowering, const Instruction &in, Type type) {
    const Operand &vector = in.operands[0];
    if (!in.modifiers[0].starts_with('b'))
        lowering.unsupported(in, "vectors are unpacked as .b16, .b32, .b64 or .b128");
    const size_t count = vector.elements.size();
    const unsigned bytes = count ? mov_bytes(type) / unsigned(count) : 0;
    const Handler handler = unpack_handler(bytes, unsigned(count));
    if (!handler || bytes * count != mov_bytes(type)) lowering.unsupported(in);
    const uint32_t a = alu_source(lowering, in, in.operands[1], type);
    std::vector<uint32_t> slots;
    for (const Operand &element : vector.elements)
        slots.push_back(element.kind == Operand::Kind::sink
                            ? kNoSlot
                            : alu_destination(lowering, in, element, register_type(bytes)));
    const uint32_t list = lowering.list(slots);
    Op &op = lowering.emit(in, handler, OpClass::move);
    op.a = a;
    op.list = list;
    op.list_count = uint16_t(count);
}

// ---- setp, set ----

// Takes a Boolean operator out of the modifiers (the one behind the comparison).
CompareOutput::Combine boolean_operator(std::string_view modifier) {
    if (modifier == "and") return CompareOutput::Combine::land;
    if (modifier == "or") return CompareOutput::Combine::lor;
    if (modifier == "xor") return CompareOutput::Combine::lxor;
    return CompareOutput::Combine::none;
}

// Emits "compare.<cmp>{.ftz}.<type>" with its sources and the Boolean operand; the caller fills in dst, imm, extra.
Op &emit_compare(Lowering &lowering, const Instruction &in, const std::string &text, CompareOutput &output) {
    const bool combined = output.combine != CompareOutput::Combine::none;
    expect_operands(lowering, in, combined ? 4 : 3);
    const AluForm *form = find_form(text, 2);
    if (!form) lowering.unsupported(in, "no such comparison: ." + text.substr(text.find('.') + 1));
    const uint32_t a = alu_source(lowering, in, in.operands[1], form->src[0]);
    const uint32_t b = alu_source(lowering, in, in.operands[2], form->src[1]);
    uint32_t c = kNoSlot;
    if (combined) {
        Operand predicate = in.operands[3];
        output.negate_c = predicate.negated;
        predicate.negated = false;
        c = alu_source(lowering, in, predicate, Type::pred);
    }
    Op &op = lowering.emit(in, form->fn, form->cls);
    op.a = a;
    op.b = b;
    op.c = c;
    op.imm = -1;
    return op;
}

// The comparison and its modifiers without the Boolean operator: ".lt.ftz"; sets output.combine.
std::string comparison(const Instruction &in, size_t types, CompareOutput &output) {
    std::string text;
    for (size_t i = 0; i + types < in.modifiers.size(); ++i) {
        const auto combine = i > 0 ? boolean_operator(in.modifiers[i]) : CompareOutput::Combine::none;
        if (combine == CompareOutput::Combine::none)
            text += "." + in.modifiers[i];
        else
            output.combine = combine;
    }
    return text;
}

// ---- address spaces ----

// The window of a state space: where a generic address of it starts. Global and constant addresses are generic ones.
uint64_t window_of(std::string_view space) {
    return space.starts_with("shared")  ? kSharedWindow
           : space == "local"           ? kLocalWindow
           : space.starts_with("param") ? kParamWindow
                                        : 0;
}

}  // namespace

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

void lower_mov(Lowering &lowering, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers[0]);
    const Operand &from = in.operands[1];
    if (from.kind == Operand::Kind::vector) return lower_pack(lowering, in, type);
    if (in.operands[0].kind == Operand::Kind::vector) return lower_unpack(lowering, in, type);
    if (type == Type::pred && from.kind == Operand::Kind::integer) {
        const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
        Op &op = lowering.emit(in, &set_predicate, OpClass::predicate);
        op.dst = dst;
        op.imm = from.integer ? kAllLanes : 0;
        return;
    }
    const uint32_t a = alu_source(lowering, in, from, type);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], type);
    Op &op = lowering.emit(in, move_handler(mov_bytes(type)), type == Type::pred ? OpClass::predicate : OpClass::move);
    op.dst = dst;
    op.a = a;
}

void lower_prmt(Lowering &lowering, const Instruction &in) {
    const bool plain = in.text() == "prmt.b32" && in.operands.size() == 4;
    if (!plain || in.operands[3].kind != Operand::Kind::integer || (in.operands[3].integer & 0x8888))
        return lower_by_text(lowering, in);
    const int64_t selector = in.operands[3].integer & 0xffff;
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::b32);
    const uint32_t b = alu_source(lowering, in, in.operands[2], Type::b32);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::b32);
    Op &op = lowering.emit(in, &permute_immediate, OpClass::move);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.imm = selector;
}

void lower_setp(Lowering &lowering, const Instruction &in) {
    const Operand &p = in.operands[0];
    if (p.has_pair && (in.has("f16") || in.has("bf16")))
        lowering.unsupported(in, "comparisons of one 16-bit float have one destination");
    CompareOutput output;
    const std::string text = comparison(in, 1, output) + "." + in.modifiers.back();
    if (output.combine == CompareOutput::Combine::none && !p.has_pair) {
        if (const AluForm *form = find_form("setp" + text, in.operands.size() - 1)) {
            emit_form(lowering, in, *form);
            return;
        }
    }
    const uint32_t dst = alu_destination(lowering, in, p, Type::pred);
    int64_t q = -1;
    if (p.has_pair && p.elements.size() == 1 && p.elements[0].kind != Operand::Kind::sink)
        q = alu_destination(lowering, in, p.elements[0], Type::pred);
    Op &op = emit_compare(lowering, in, "compare" + text, output);
    op.dst = dst;
    op.imm = q;
    op.extra = pack<uint32_t>(output);
}

void lower_set(Lowering &lowering, const Instruction &in) {
    const Type to = ptx::type_from_name(in.modifiers[in.modifiers.size() - 2]);
    CompareOutput output;
    output.bytes = uint8_t(ptx::type_bytes(to));
    switch (to) {
        case Type::u16:
        case Type::s16:
        case Type::u32:
        case Type::s32:
            output.kind = CompareOutput::Kind::ones;
            break;
        case Type::f32:
            output.kind = CompareOutput::Kind::f32;
            break;
        case Type::f16:
        case Type::f16x2:
            output.kind = CompareOutput::Kind::f16;
            break;
        case Type::bf16:
        case Type::bf16x2:
            output.kind = CompareOutput::Kind::bf16;
            break;
        default:
            lowering.unsupported(in);
    }
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], to);
    const std::string text = comparison(in, 2, output) + "." + in.modifiers.back();
    Op &op = emit_compare(lowering, in, "compare" + text, output);
    op.dst = dst;
    op.extra = pack<uint32_t>(output);
    op.cls = OpClass::integer;
}

// cvta{.to}.space.size d, a: adds or subtracts the window, so that an address of another space stays out of bounds.
void lower_cvta(Lowering &lowering, const Instruction &in) {
    const bool to = in.has("to");
    const uint64_t window = window_of(in.modifiers[to ? 1 : 0]);
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::u64);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::u64);
    Op &op = lowering.emit(in, window ? &add_offset64 : move_handler(8), OpClass::conversion);
    op.dst = dst;
    op.a = a;
    op.imm = int64_t(to ? -window : window);
}

void lower_isspacep(Lowering &lowering, const Instruction &in) {
    const uint64_t window = window_of(in.modifiers[0]);
    const uint32_t a = alu_source(lowering, in, in.operands[1], Type::u64);
    const uint32_t dst = alu_destination(lowering, in, in.operands[0], Type::pred);
    // Constant variables lie in global memory here: their addresses are both.
    Op &op = lowering.emit(in, in.modifiers[0] == "const" ? &in_constant_memory : &in_window, OpClass::predicate);
    op.dst = dst;
    op.a = a;
    op.imm = int64_t(window);
}

}  // namespace warpsim
