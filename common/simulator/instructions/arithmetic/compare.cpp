// setp and set.
#include <string_view>
#include <type_traits>

#include "core/op_formats.h"
#include "instructions/arithmetic/forms.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/rows.h"

namespace warpsim {

namespace {

enum class Cmp { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

// Ordered comparisons are false, the ones with u true where an operand is NaN.
template <Cmp C>
struct Compare {
    template <class T>
    bool operator()(T a, T b) const {
        switch (C) {
            case Cmp::eq:
                return a == b;
            case Cmp::ne:
                return std::is_floating_point_v<T> ? a < b || a > b : a != b;
            case Cmp::lt:
                return a < b;
            case Cmp::le:
                return a <= b;
            case Cmp::gt:
                return a > b;
            case Cmp::ge:
                return a >= b;
            case Cmp::equ:
                return !(a < b || a > b);
            case Cmp::neu:
                return !(a == b);
            case Cmp::ltu:
                return !(a >= b);
            case Cmp::leu:
                return !(a > b);
            case Cmp::gtu:
                return !(a <= b);
            case Cmp::geu:
                return !(a < b);
            case Cmp::num:
                return a == a && b == b;
            case Cmp::nan:
                return a != a || b != b;
        }
    }
};

// The results of one comparison: bit i of low for lane i; high is the upper half of packed types.
struct Outcome {
    uint32_t low, high;
};

template <class T, Cmp C, bool Ftz>
struct Plain {
    static constexpr bool kPacked = false;
    [[gnu::noinline]] static Outcome compare(const Warp &w, const Op &op) {
        const T *a = w.lanes<T>(op.a), *b = w.lanes<T>(op.b);
        using Mask = std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
        return {collect_lanes<Mask>([=](unsigned i) {
                    if constexpr (Ftz)
                        return Compare<C>{}(flush_subnormal(a[i]), flush_subnormal(b[i]));
                    else
                        return Compare<C>{}(a[i], b[i]);
                }),
                0};
    }
};
// 16-bit floats are compared as f32; what does that is compiled once for all comparisons, or once for all formats. Of
// packed types, half says which.
template <class Format, bool Ftz, bool Packed>
[[gnu::noinline]] void widen_halves(const Warp &w, uint32_t slot, unsigned half, float *to) {
    const uint16_t *from = w.lanes<uint16_t>(slot);
    alignas(64) uint16_t one[kLanes];
    if constexpr (Packed) {
        for (unsigned i = 0; i < kLanes; ++i) one[i] = from[2 * i + half];
        from = one;
    }
    Format::widen(from, to, kLanes);
    // Subnormal f16 to zero; the sign does not matter to a comparison.
    if constexpr (Ftz)
        for (unsigned i = 0; i < kLanes; ++i) to[i] = std::fabs(to[i]) < 0x1p-14f ? 0.0f : to[i];
}
template <Cmp C>
[[gnu::noinline]] uint32_t compare_floats(const float *a, const float *b) {
    return collect_lanes<int32_t>([=](unsigned i) { return Compare<C>{}(a[i], b[i]); });
}
template <class Format, Cmp C, bool Ftz, bool Packed>
struct Halves {
    static constexpr bool kPacked = Packed;
    static Outcome compare(const Warp &w, const Op &op) {
        alignas(64) float a[kLanes], b[kLanes];
        uint32_t result[2] = {};
        for (unsigned half = 0; half < (Packed ? 2 : 1); ++half) {
            widen_halves<Format, Ftz, Packed>(w, op.a, half, a);
            widen_halves<Format, Ftz, Packed>(w, op.b, half, b);
            result[half] = compare_floats<C>(a, b);
        }
        return {result[0], result[1]};
    }
};

uint32_t combine(uint32_t mask, const CompareOutput &output, uint32_t c) {
    if (output.negate_c) c = ~c;
    switch (output.combine) {
        case CompareOutput::Combine::none:
            return mask;
        case CompareOutput::Combine::land:
            return mask & c;
        case CompareOutput::Combine::lor:
            return mask | c;
        case CompareOutput::Combine::lxor:
            return mask ^ c;
    }
    return mask;
}

template <class T>
void write_choice(Warp &w, uint32_t dst, uint32_t mask, T one) {
    write_lanes<T>(w, dst, [=](unsigned i) { return mask >> i & 1 ? one : T(0); });
}

[[gnu::noinline]] void finish(Warp &w, const Op &op, const Outcome &outcome, bool packed) {
    const CompareOutput output = unpack<CompareOutput>(op.extra);
    const uint32_t c = op.c == kNoSlot ? 0 : w.predicate(op.c);
    const uint32_t low = combine(outcome.low, output, c), high = combine(outcome.high, output, c);
    if (output.kind == CompareOutput::Kind::predicates) {
        // Both destinations may be c's register, so c was read above. Packed: q is the upper half's result.
        const uint32_t other = packed ? high : combine(~outcome.low, output, c);
        write_mask(w, op.dst, low);
        if (op.imm >= 0) write_mask(w, uint32_t(op.imm), other);
        return;
    }
    uint32_t one = 0xffffffffu;
    if (output.kind == CompareOutput::Kind::f32)
        one = std::bit_cast<uint32_t>(1.0f);
    else if (output.kind == CompareOutput::Kind::f16)
        one = 0x3c00;
    else if (output.kind == CompareOutput::Kind::bf16)
        one = 0x3f80;
    if (packed) {
        const uint32_t unit = one & 0xffff;
        write_lanes<uint32_t>(
            w, op.dst, [=](unsigned i) { return (low >> i & 1 ? unit : 0u) | (high >> i & 1 ? unit << 16 : 0u); });
    } else if (output.bytes == 2) {
        write_choice<uint16_t>(w, op.dst, low, uint16_t(one));
    } else {
        write_choice<uint32_t>(w, op.dst, low, one);
    }
}

template <class F>
void setp(Warp &w, const Op &op) {
    write_mask(w, op.dst, F::compare(w, op).low);
}
template <class F>
void compare(Warp &w, const Op &op) {
    finish(w, op, F::compare(w, op), F::kPacked);
}

// set: null where a pair of results does not fit it.
void put(AluForms &forms, const char *name, ptx::Type type, Handler set, Handler rest) {
    const std::string behind = std::string(".") + name + "." + ptx::type_name(type);
    if (set) forms["setp" + behind] = {set, OpClass::predicate, ptx::Type::pred, {type, type}};
    forms["compare" + behind] = {rest, OpClass::predicate, ptx::Type::pred, {type, type}};
}
template <class F>
void put(AluForms &forms, const char *name, ptx::Type type) {
    Handler set = nullptr;
    if constexpr (!F::kPacked) set = &setp<F>;
    put(forms, name, type, set, &compare<F>);
}
template <class T, Cmp C>
void put_integer(AluForms &forms, const char *name) {
    put<Plain<T, C, false>>(forms, name, kTypeOf<T>);
}
template <class T>
void put_equality(AluForms &forms) {
    put_integer<T, Cmp::eq>(forms, "eq");
    put_integer<T, Cmp::ne>(forms, "ne");
}
template <class T>
void put_order(AluForms &forms) {
    put_equality<T>(forms);
    put_integer<T, Cmp::lt>(forms, "lt");
    put_integer<T, Cmp::le>(forms, "le");
    put_integer<T, Cmp::gt>(forms, "gt");
    put_integer<T, Cmp::ge>(forms, "ge");
    if constexpr (std::is_unsigned_v<T>) {
        put_integer<T, Cmp::lt>(forms, "lo");
        put_integer<T, Cmp::le>(forms, "ls");
        put_integer<T, Cmp::gt>(forms, "hi");
        put_integer<T, Cmp::ge>(forms, "hs");
        // .bNN compares as unsigned.
        const auto bits = sizeof(T) == 2 ? ptx::Type::b16 : sizeof(T) == 4 ? ptx::Type::b32 : ptx::Type::b64;
        put<Plain<T, Cmp::eq, false>>(forms, "eq", bits);
        put<Plain<T, Cmp::ne, false>>(forms, "ne", bits);
    }
}
template <Cmp C>
void put_floats(AluForms &forms, const char *name, const char *ftz) {
    using ptx::Type;
    put<Plain<float, C, false>>(forms, name, Type::f32);
    put<Plain<float, C, true>>(forms, ftz, Type::f32);
    put<Plain<double, C, false>>(forms, name, Type::f64);
    put<Halves<F16, C, false, false>>(forms, name, Type::f16);
    put<Halves<F16, C, true, false>>(forms, ftz, Type::f16);
    put<Halves<F16, C, false, true>>(forms, name, Type::f16x2);
    put<Halves<F16, C, true, true>>(forms, ftz, Type::f16x2);
    put<Halves<Bf16, C, false, false>>(forms, name, Type::bf16);
    put<Halves<Bf16, C, false, true>>(forms, name, Type::bf16x2);
}

}  // namespace

void add_compare_forms(AluForms &forms) {
    put_order<uint16_t>(forms);
    put_order<int16_t>(forms);
    put_order<uint32_t>(forms);
    put_order<int32_t>(forms);
    put_order<uint64_t>(forms);
    put_order<int64_t>(forms);
    put_floats<Cmp::eq>(forms, "eq", "eq.ftz");
    put_floats<Cmp::ne>(forms, "ne", "ne.ftz");
    put_floats<Cmp::lt>(forms, "lt", "lt.ftz");
    put_floats<Cmp::le>(forms, "le", "le.ftz");
    put_floats<Cmp::gt>(forms, "gt", "gt.ftz");
    put_floats<Cmp::ge>(forms, "ge", "ge.ftz");
    put_floats<Cmp::equ>(forms, "equ", "equ.ftz");
    put_floats<Cmp::neu>(forms, "neu", "neu.ftz");
    put_floats<Cmp::ltu>(forms, "ltu", "ltu.ftz");
    put_floats<Cmp::leu>(forms, "leu", "leu.ftz");
    put_floats<Cmp::gtu>(forms, "gtu", "gtu.ftz");
    put_floats<Cmp::geu>(forms, "geu", "geu.ftz");
    put_floats<Cmp::num>(forms, "num", "num.ftz");
    put_floats<Cmp::nan>(forms, "nan", "nan.ftz");
}

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

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

#define COMPARE "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs,equ,neu,ltu,leu,gtu,geu,num,nan}{.and,.or,.xor}"
#define SET(SYNTAX) {"set." COMPARE SYNTAX, "d, a, b{, c}", OpClass::integer, Flow::straight, nullptr, lower_set}

constexpr InstructionRow kRows[] = {
    {"setp." COMPARE "{.ftz}.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}", "d|p, a, b{, c}",
     OpClass::predicate, Flow::straight, nullptr, lower_setp, passes_comparison},
    SET(".{u32,s32,f32,f16,bf16}.{b16,b32,b64,u16,u32,u64,s16,s32,s64}"),
    SET("{.ftz}.{u32,s32,u16,s16}.{f16,bf16}"),
    SET("{.ftz}.{u32,s32}.{f32,f64,f16x2,bf16x2}"),
    SET("{.ftz}.f32.{f32,f64}"),
    SET("{.ftz}.f16.{f16,f32,f64}"),
    SET(".bf16.{bf16,f16,f32,f64}"),
    SET("{.ftz}.f16x2.f16x2"),
    SET(".bf16x2.bf16x2"),
};

}  // namespace

std::span<const InstructionRow> compare_rows() {
    return kRows;
}

}  // namespace warpsim
