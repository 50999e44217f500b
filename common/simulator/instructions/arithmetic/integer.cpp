// Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max dp4a dp2a, and packed 16-bit pairs.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "instructions/arithmetic/forms.h"

namespace warpsim {

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Twice as wide, of the same sign.
template <class T>
struct WideOf;
template <>
struct WideOf<uint16_t> {
    using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
    using type = int32_t;
};
template <>
struct WideOf<uint32_t> {
    using type = uint64_t;
};
template <>
struct WideOf<int32_t> {
    using type = int64_t;
};
template <>
struct WideOf<uint64_t> {
    using type = unsigned __int128;
};
template <>
struct WideOf<int64_t> {
    using type = __int128;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
T clamp_to(int64_t value) {
    return T(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// The arithmetic is unsigned, as wrapping signed arithmetic would be undefined in C++; 16-bit products are formed in 32
// bits because uint16_t promotes to int.
struct Add {
    template <class T>
    T operator()(T a, T b) const {
        return T(Unsigned<T>(a) + Unsigned<T>(b));
    }
};
struct Sub {
    template <class T>
    T operator()(T a, T b) const {
        return T(Unsigned<T>(a) - Unsigned<T>(b));
    }
};
struct AddSat {
    int32_t operator()(int32_t a, int32_t b) const { return clamp_to<int32_t>(int64_t(a) + b); }
};
struct SubSat {
    int32_t operator()(int32_t a, int32_t b) const { return clamp_to<int32_t>(int64_t(a) - b); }
};
struct MulLo {
    template <class T>
    T operator()(T a, T b) const {
        using U = std::common_type_t<Unsigned<T>, unsigned>;
        return T(U(a) * U(b));
    }
};
struct MulHi {
    template <class T>
    T operator()(T a, T b) const {
        return T(Wide<T>(Wide<T>(a) * Wide<T>(b)) >> std::numeric_limits<Unsigned<T>>::digits);
    }
};
struct MulWide {
    template <class T>
    Wide<T> operator()(T a, T b) const {
        return Wide<T>(a) * Wide<T>(b);
    }
};
struct MadLo {
    template <class T>
    T operator()(T a, T b, T c) const {
        return Add{}(MulLo{}(a, b), c);
    }
};
struct MadHi {
    template <class T>
    T operator()(T a, T b, T c) const {
        return Add{}(MulHi{}(a, b), c);
    }
};
struct MadHiSat {
    int32_t operator()(int32_t a, int32_t b, int32_t c) const { return clamp_to<int32_t>(int64_t(MulHi{}(a, b)) + c); }
};
struct MadWide {
    template <class T>
    Wide<T> operator()(T a, T b, Wide<T> c) const {
        return Add{}(MulWide{}(a, b), c);
    }
};

// 24-bit products: the low 24 bits of each factor, extended by the type's sign; .lo takes bits 0-31, .hi bits 16-47.
template <class T>
Wide<T> product24(T a, T b) {
    return Wide<T>(T(Unsigned<T>(a) << 8) >> 8) * Wide<T>(T(Unsigned<T>(b) << 8) >> 8);
}
struct Mul24Lo {
    template <class T>
    T operator()(T a, T b) const {
        return T(product24(a, b));
    }
};
struct Mul24Hi {
    template <class T>
    T operator()(T a, T b) const {
        return T(product24(a, b) >> 16);
    }
};
struct Mad24Lo {
    template <class T>
    T operator()(T a, T b, T c) const {
        return Add{}(Mul24Lo{}(a, b), c);
    }
};
struct Mad24Hi {
    template <class T>
    T operator()(T a, T b, T c) const {
        return Add{}(Mul24Hi{}(a, b), c);
    }
};
struct Mad24HiSat {
    int32_t operator()(int32_t a, int32_t b, int32_t c) const {
        return clamp_to<int32_t>(int64_t(Mul24Hi{}(a, b)) + c);
    }
};

struct Sad {
    template <class T>
    T operator()(T a, T b, T c) const {
        const T difference = a < b ? Sub{}(b, a) : Sub{}(a, b);
        return Add{}(c, difference);
    }
};
// A zero divisor gives all ones (quotient) and the dividend (remainder), as the hardware's sequences do; the manual
// leaves the value open. The smallest value over -1 wraps.
struct Div {
    template <class T>
    T operator()(T a, T b) const {
        if (b == 0) return T(-1);
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return Sub{}(T(0), a);
        return T(a / b);
    }
};
struct Rem {
    template <class T>
    T operator()(T a, T b) const {
        if (b == 0) return a;
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return 0;
        return T(a % b);
    }
};
struct Neg {
    template <class T>
    T operator()(T a) const {
        return Sub{}(T(0), a);
    }
};
struct Abs {
    template <class T>
    T operator()(T a) const {
        return a < 0 ? Neg{}(a) : a;
    }
};
struct Min {
    template <class T>
    T operator()(T a, T b) const {
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    T operator()(T a, T b) const {
        return a > b ? a : b;
    }
};
template <class F>
struct Relu {
    template <class T>
    T operator()(T a, T b) const {
        return Max{}(F{}(a, b), T(0));
    }
};

// Four 8-bit products added to c; the accumulator wraps.
template <class A, class B>
struct Dp4a {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
        for (unsigned k = 0; k < 32; k += 8) c += uint32_t(int32_t(A(a >> k)) * int32_t(B(b >> k)));
        return c;
    }
};
// Two products of a's 16-bit halves with bytes of b: its lower two (Shift 0) or upper two (Shift 16).
template <class A16, class B8, unsigned Shift>
struct Dp2a {
    uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
        c += uint32_t(int32_t(A16(a)) * int32_t(B8(b >> Shift)));
        c += uint32_t(int32_t(A16(a >> 16)) * int32_t(B8(b >> (Shift + 8))));
        return c;
    }
};

// Two 16-bit lanes in a 32-bit register.
template <class F, class T>
struct Pair {
    uint32_t operator()(uint32_t a, uint32_t b) const {
        const T low = F{}(T(a), T(b)), high = F{}(T(a >> 16), T(b >> 16));
        return uint32_t(uint16_t(low)) | uint32_t(uint16_t(high)) << 16;
    }
};

constexpr OpClass kInteger = OpClass::integer;

// The forms that every 16-, 32- and 64-bit type has.
template <class T>
void add_common(AluForms &forms) {
    const std::string type = type_suffix<T>();
    add2<Add, T, T, T>(forms, "add" + type, kInteger);
    add2<Sub, T, T, T>(forms, "sub" + type, kInteger);
    add2<MulLo, T, T, T>(forms, "mul.lo" + type, kInteger);
    add2<MulHi, T, T, T>(forms, "mul.hi" + type, kInteger);
    add3<MadLo, T, T, T, T>(forms, "mad.lo" + type, kInteger);
    add3<MadHi, T, T, T, T>(forms, "mad.hi" + type, kInteger);
    add3<Sad, T, T, T, T>(forms, "sad" + type, kInteger);
    add2<Div, T, T, T>(forms, "div" + type, kInteger);
    add2<Rem, T, T, T>(forms, "rem" + type, kInteger);
    add2<Min, T, T, T>(forms, "min" + type, kInteger);
    add2<Max, T, T, T>(forms, "max" + type, kInteger);
    if constexpr (std::is_signed_v<T>) {
        add1<Neg, T, T>(forms, "neg" + type, kInteger);
        add1<Abs, T, T>(forms, "abs" + type, kInteger);
    }
}
template <class T>
void add_wide(AluForms &forms) {
    const std::string type = type_suffix<T>();
    add2<MulWide, Wide<T>, T, T>(forms, "mul.wide" + type, kInteger);
    add3<MadWide, Wide<T>, T, T, Wide<T>>(forms, "mad.wide" + type, kInteger);
}
template <class T>
void add_24_bit(AluForms &forms) {
    const std::string type = type_suffix<T>();
    add2<Mul24Lo, T, T, T>(forms, "mul24.lo" + type, kInteger);
    add2<Mul24Hi, T, T, T>(forms, "mul24.hi" + type, kInteger);
    add3<Mad24Lo, T, T, T, T>(forms, "mad24.lo" + type, kInteger);
    add3<Mad24Hi, T, T, T, T>(forms, "mad24.hi" + type, kInteger);
}
template <class A8, class A16, class B8>
void add_dot_products(AluForms &forms, const std::string &types) {
    add3<Dp4a<A8, B8>, uint32_t, uint32_t, uint32_t, uint32_t>(forms, "dp4a" + types, kInteger);
    add3<Dp2a<A16, B8, 0>, uint32_t, uint32_t, uint32_t, uint32_t>(forms, "dp2a.lo" + types, kInteger);
    add3<Dp2a<A16, B8, 16>, uint32_t, uint32_t, uint32_t, uint32_t>(forms, "dp2a.hi" + types, kInteger);
}
template <class F, class T>
void add_pair(AluForms &forms, const std::string &text) {
    add2<Pair<F, T>, uint32_t, uint32_t, uint32_t>(forms, text, kInteger);
}

}  // namespace

void add_integer_forms(AluForms &forms) {
    add_common<uint16_t>(forms);
    add_common<int16_t>(forms);
    add_common<uint32_t>(forms);
    add_common<int32_t>(forms);
    add_common<uint64_t>(forms);
    add_common<int64_t>(forms);
    add_wide<uint16_t>(forms);
    add_wide<int16_t>(forms);
    add_wide<uint32_t>(forms);
    add_wide<int32_t>(forms);
    add_24_bit<uint32_t>(forms);
    add_24_bit<int32_t>(forms);
    add2<AddSat, int32_t, int32_t, int32_t>(forms, "add.sat.s32", kInteger);
    add2<SubSat, int32_t, int32_t, int32_t>(forms, "sub.sat.s32", kInteger);
    add3<MadHiSat, int32_t, int32_t, int32_t, int32_t>(forms, "mad.hi.sat.s32", kInteger);
    add3<Mad24HiSat, int32_t, int32_t, int32_t, int32_t>(forms, "mad24.hi.sat.s32", kInteger);
    add2<Relu<Min>, int32_t, int32_t, int32_t>(forms, "min.relu.s32", kInteger);
    add2<Relu<Max>, int32_t, int32_t, int32_t>(forms, "max.relu.s32", kInteger);

    add_pair<Add, uint16_t>(forms, "add.u16x2");
    add_pair<Add, int16_t>(forms, "add.s16x2");
    add_pair<Min, uint16_t>(forms, "min.u16x2");
    add_pair<Max, uint16_t>(forms, "max.u16x2");
    add_pair<Min, int16_t>(forms, "min.s16x2");
    add_pair<Max, int16_t>(forms, "max.s16x2");
    add_pair<Relu<Min>, int16_t>(forms, "min.relu.s16x2");
    add_pair<Relu<Max>, int16_t>(forms, "max.relu.s16x2");

    add_dot_products<uint8_t, uint16_t, uint8_t>(forms, ".u32.u32");
    add_dot_products<uint8_t, uint16_t, int8_t>(forms, ".u32.s32");
    add_dot_products<int8_t, int16_t, uint8_t>(forms, ".s32.u32");
    add_dot_products<int8_t, int16_t, int8_t>(forms, ".s32.s32");
}

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide128 = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

struct Product {
    template <bool High, class T>
    static Unsigned<T> of(T a, T b) {
        const Wide128<T> product = Wide128<T>(a) * Wide128<T>(b);
        return Unsigned<T>(High ? product >> std::numeric_limits<Unsigned<T>>::digits : product);
    }
};

enum class Kind { add, sub, mad_lo, mad_hi };

// Takes the carry (borrow) in where In, leaves one where Out. A borrow is a set bit, as in the manual.
template <Kind K, class T, bool In, bool Out>
void extended(Warp &w, const Op &op) {
    using U = Unsigned<T>;
    const T *a = w.lanes<T>(op.a), *b = w.lanes<T>(op.b);
    const T *c = K == Kind::mad_lo || K == Kind::mad_hi ? w.lanes<T>(op.c) : nullptr;
    U *dst = w.lanes<U>(op.dst);
    const uint32_t carry = In ? w.carry : 0;
    uint32_t out = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        const U in = carry >> i & 1;
        U x, y, sum;
        bool overflow;
        if constexpr (K == Kind::sub) {
            overflow = __builtin_sub_overflow(U(a[i]), U(b[i]), &x);
            overflow |= __builtin_sub_overflow(x, in, &sum);
        } else {
            if constexpr (K == Kind::add)
                x = U(a[i]), y = U(b[i]);
            else
                x = Product::of<K == Kind::mad_hi>(a[i], b[i]), y = U(c[i]);
            overflow = __builtin_add_overflow(x, y, &sum);
            overflow |= __builtin_add_overflow(sum, in, &sum);
        }
        out |= uint32_t(overflow) << i;
        if (w.exec >> i & 1) dst[i] = sum;
    }
    if (Out) w.carry = (w.carry & ~w.exec) | (out & w.exec);
}

template <Kind K, class T>
void add_kind(AluForms &forms, const std::string &first, const std::string &next) {
    const std::string type = type_suffix<T>();
    const ptx::Type t = kTypeOf<T>;
    const ptx::Type third = K == Kind::add || K == Kind::sub ? ptx::Type::none : t;
    forms[first + ".cc" + type] = {&extended<K, T, false, true>, OpClass::integer, t, {t, t, third}};
    forms[next + type] = {&extended<K, T, true, false>, OpClass::integer, t, {t, t, third}};
    forms[next + ".cc" + type] = {&extended<K, T, true, true>, OpClass::integer, t, {t, t, third}};
}
template <class T>
void add_type(AluForms &forms) {
    add_kind<Kind::add, T>(forms, "add", "addc");
    add_kind<Kind::sub, T>(forms, "sub", "subc");
    add_kind<Kind::mad_lo, T>(forms, "mad.lo", "madc.lo");
    add_kind<Kind::mad_hi, T>(forms, "mad.hi", "madc.hi");
}

}  // namespace

void add_carry_forms(AluForms &forms) {
    add_type<uint32_t>(forms);
    add_type<int32_t>(forms);
    add_type<uint64_t>(forms);
    add_type<int64_t>(forms);
}

}  // namespace warpsim
