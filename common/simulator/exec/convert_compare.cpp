#include "core/op_formats.h"
#include "exec/alu.h"

#include <type_traits>

#include "exec/float_functions.h"

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
    static Outcome compare(const Warp &w, const Op &op) {
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
template <class Format, Cmp C, bool Ftz, bool Packed>
struct Halves {
    static constexpr bool kPacked = Packed;
    static Outcome compare(const Warp &w, const Op &op) {
        constexpr unsigned count = Packed ? 2 * kLanes : kLanes;
        alignas(64) float a[count], b[count];
        Format::widen(w.lanes<uint16_t>(op.a), a, count);
        Format::widen(w.lanes<uint16_t>(op.b), b, count);
        const auto half = [&](unsigned stride, unsigned first) {
            return collect_lanes<int32_t>([&](unsigned i) {
                float x = a[stride * i + first], y = b[stride * i + first];
                if constexpr (Ftz) x = flush(x), y = flush(y);
                return Compare<C>{}(x, y);
            });
        };
        if constexpr (Packed)
            return {half(2, 0), half(2, 1)};
        else
            return {half(1, 0), 0};
    }
    // Subnormal f16 to zero; the sign does not matter to a comparison.
    static float flush(float x) { return std::fabs(x) < 0x1p-14f ? 0.0f : x; }
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

void finish(Warp &w, const Op &op, const Outcome &outcome, bool packed) {
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

template <class F>
void put(AluForms &forms, const std::string &text, ptx::Type type) {
    const std::string rest = "." + text + "." + ptx::type_name(type);
    if constexpr (!F::kPacked) forms["setp" + rest] = {&setp<F>, OpClass::predicate, ptx::Type::pred, {type, type}};
    forms["compare" + rest] = {&compare<F>, OpClass::predicate, ptx::Type::pred, {type, type}};
}
template <class T, Cmp C>
void put_integer(AluForms &forms, const std::string &name) {
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
void put_floats(AluForms &forms, const std::string &name) {
    using ptx::Type;
    put<Plain<float, C, false>>(forms, name, Type::f32);
    put<Plain<float, C, true>>(forms, name + ".ftz", Type::f32);
    put<Plain<double, C, false>>(forms, name, Type::f64);
    put<Halves<F16, C, false, false>>(forms, name, Type::f16);
    put<Halves<F16, C, true, false>>(forms, name + ".ftz", Type::f16);
    put<Halves<F16, C, false, true>>(forms, name, Type::f16x2);
    put<Halves<F16, C, true, true>>(forms, name + ".ftz", Type::f16x2);
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
    put_floats<Cmp::eq>(forms, "eq");
    put_floats<Cmp::ne>(forms, "ne");
    put_floats<Cmp::lt>(forms, "lt");
    put_floats<Cmp::le>(forms, "le");
    put_floats<Cmp::gt>(forms, "gt");
    put_floats<Cmp::ge>(forms, "ge");
    put_floats<Cmp::equ>(forms, "equ");
    put_floats<Cmp::neu>(forms, "neu");
    put_floats<Cmp::ltu>(forms, "ltu");
    put_floats<Cmp::leu>(forms, "leu");
    put_floats<Cmp::gtu>(forms, "gtu");
    put_floats<Cmp::geu>(forms, "geu");
    put_floats<Cmp::num>(forms, "num");
    put_floats<Cmp::nan>(forms, "nan");
}

}  // namespace warpsim
