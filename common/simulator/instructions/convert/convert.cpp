#include "instructions/convert/convert.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "instructions/arithmetic/numbers.h"

namespace warpsim {
namespace {

uint64_t load_lane(const std::byte *lanes, unsigned bytes, unsigned index) {
    uint64_t value = 0;
    std::memcpy(&value, lanes + size_t(bytes) * index, bytes);
    return value;
}
void store_lane(std::byte *lanes, unsigned bytes, unsigned index, uint64_t value) {
    std::memcpy(lanes + size_t(bytes) * index, &value, bytes);
}

void flush(Number &n) {
    // Below 2^-126: what is subnormal in f32.
    if (n.kind == Number::Kind::finite && n.exponent + 63 - std::countl_zero(n.significand) < -126)
        n.kind = Number::Kind::zero, n.significand = 0;
}

// A NaN of f64 keeps its sign and the top of its payload and becomes quiet, as GPUs have it (other sources give the
// canonical NaN).
uint64_t narrow_nan(uint64_t bits, const FloatFormat &to) {
    const unsigned fraction_bits = to.precision - 1;
    const uint64_t exponent = ((uint64_t(1) << to.exponent_bits) - 1) << fraction_bits;
    const uint64_t payload = (bits & ((uint64_t(1) << 52) - 1)) >> (52 - fraction_bits);
    const uint64_t quiet = uint64_t(1) << (fraction_bits - 1);
    return bits >> 63 << (fraction_bits + to.exponent_bits) | exponent | quiet | payload;
}

uint64_t convert(uint64_t bits, const Conversion &c) {
    const FloatFormat *from = float_format(c.from), *to = float_format(c.to);
    Number n = from ? unpack_float(bits, *from) : unpack_integer(bits, c.from);
    if (c.ftz && c.from == ptx::Type::f32) flush(n);
    if (!to) {
        const bool nan_is_zero = c.from != ptx::Type::f64 && ptx::type_bytes(c.to) < 8;
        // Between integers only .sat clamps.
        if (!from && !c.sat) return bits;
        return pack_integer(n, c.to, c.round, nan_is_zero ? 0 : uint64_t(1) << (8 * ptx::type_bytes(c.to) - 1));
    }
    const bool narrows = c.from == ptx::Type::f64 && (c.to == ptx::Type::f16 || c.to == ptx::Type::bf16);
    if (narrows && n.kind == Number::Kind::nan && !c.sat) return narrow_nan(bits, *to);
    if (c.integral) n = round_to_integral(n, c.round);
    if (c.sat) {
        if (n.kind == Number::Kind::nan || n.negative) n = Number{};
        const bool above = n.kind == Number::Kind::finite && n.exponent + 63 - std::countl_zero(n.significand) >= 0;
        if (above || n.kind == Number::Kind::infinite) n = Number{.kind = Number::Kind::finite, .significand = 1};
    }
    if (c.relu && n.negative && n.kind != Number::Kind::nan) n = Number{};
    const uint64_t result = pack_float(n, *to, c.round, c.satfinite);
    return c.ftz && c.to == ptx::Type::f32
               ? std::bit_cast<uint32_t>(flush_subnormal(std::bit_cast<float>(uint32_t(result))))
               : result;
}

uint64_t extend(uint64_t value, ptx::Type type) {
    const unsigned unused = 64 - 8 * ptx::type_bytes(type);
    if (ptx::is_signed(type)) return uint64_t(int64_t(value << unused) >> unused);
    return value << unused >> unused;
}

}  // namespace

void convert_scalar(Warp &w, const Op &op) {
    const Conversion c = unpack<Conversion>(op.imm);
    const std::byte *a = w.lanes<std::byte>(op.a);
    std::byte *dst = w.lanes<std::byte>(op.dst);
    for (unsigned i = 0; i < kLanes; ++i)
        if (w.exec >> i & 1) store_lane(dst, c.to_bytes, i, extend(convert(load_lane(a, c.from_bytes, i), c), c.to));
}

void convert_pair(Warp &w, const Op &op) {
    const Conversion c = unpack<Conversion>(op.imm);
    const std::byte *a = w.lanes<std::byte>(op.a);
    const std::byte *b = c.two_sources ? w.lanes<std::byte>(op.b) : nullptr;
    std::byte *dst = w.lanes<std::byte>(op.dst);
    for (unsigned i = 0; i < kLanes; ++i) {
        if (!(w.exec >> i & 1)) continue;
        const uint64_t low = b ? load_lane(b, c.from_bytes, i) : load_lane(a, c.from_bytes, 2 * i);
        const uint64_t high = b ? load_lane(a, c.from_bytes, i) : load_lane(a, c.from_bytes, 2 * i + 1);
        store_lane(dst, c.to_bytes, 2 * i, convert(low, c));
        store_lane(dst, c.to_bytes, 2 * i + 1, convert(high, c));
    }
}

void convert_pack(Warp &w, const Op &op) {
    const PackForm form = unpack<PackForm>(op.extra);
    const unsigned bits = form.bits;
    const int64_t least = form.is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t most = (int64_t{1} << (form.is_signed ? bits - 1 : bits)) - 1;
    const uint32_t *a = w.lanes<uint32_t>(op.a), *b = w.lanes<uint32_t>(op.b);
    const uint32_t *c = op.c == kNoSlot ? nullptr : w.lanes<uint32_t>(op.c);
    write_lanes<uint32_t>(w, op.dst, [=](unsigned i) -> uint32_t {
        const auto clamped = [&](uint32_t x) {
            return uint64_t(std::clamp<int64_t>(int32_t(x), least, most)) & ((uint64_t{1} << bits) - 1);
        };
        const uint64_t pair = clamped(a[i]) << bits | clamped(b[i]);
        return uint32_t(c ? uint64_t(c[i]) << (2 * bits) | pair : pair);
    });
}

// ---- the vectorised pairs ----

namespace {

template <class D, class A>
struct IntegerCast {
    // The value of type A in a's low bits, as D, extended to the register that holds it.
    template <class Container>
    D operator()(Container container) const {
        return D(A(container));
    }
};
template <class T>
using Register = std::conditional_t<sizeof(T) == 1, uint16_t, T>;

// With .sat, which is rare, convert_scalar() has them.
void put_cast(AluForms &forms, const ptx::Type (&types)[2], const char *suffix, const AluForm &form) {
    forms[std::string("cvt.") + ptx::type_name(types[0]) + "." + ptx::type_name(types[1]) + suffix] = form;
}
// DC and AC: the registers' lane types.
template <class D, class A, class DC, class AC>
void put_integer_cast(AluForms &forms, const char *suffix) {
    // A sign matters only where bits are added. Casts that differ in nothing else share their code.
    using From = std::conditional_t<(sizeof(D) > sizeof(A)), A, std::make_unsigned_t<A>>;
    using To = std::conditional_t<(sizeof(DC) > sizeof(D)), D, std::make_unsigned_t<D>>;
    using FromLane = std::make_unsigned_t<AC>;
    using ToLane = std::make_unsigned_t<DC>;
    put_cast(forms, {kTypeOf<D>, kTypeOf<A>}, suffix,
             {&map1<IntegerCast<To, From>, ToLane, FromLane>, OpClass::conversion, kTypeOf<DC>, {kTypeOf<AC>}});
}
template <class D, class A>
void put_integer_casts(AluForms &forms) {
    put_integer_cast<D, A, Register<D>, Register<A>>(forms, "");
    if constexpr (sizeof(A) == 1) put_integer_cast<D, A, Register<D>, uint32_t>(forms, "/a4");
    if constexpr (sizeof(D) == 1) put_integer_cast<D, A, uint32_t, Register<A>>(forms, "/d4");
    if constexpr (sizeof(D) == 1 && sizeof(A) == 1) put_integer_cast<D, A, uint32_t, uint32_t>(forms, "/a4/d4");
}

template <class T>
struct Cast {
    template <class A>
    T operator()(A a) const {
        return T(a);
    }
};
// Puts a form, and what runs it in the other modes of rounding, under "cvt", each mode and `rest`.
struct Modes {
    Handler nearest, zero, down, up;
};
template <Handler H>
constexpr Modes kModes = {H, &rounded<H, FE_TOWARDZERO>, &rounded<H, FE_DOWNWARD>, &rounded<H, FE_UPWARD>};
void put_modes(AluForms &forms, const std::string &rest, AluForm form, const Modes &modes) {
    const std::pair<const char *, Handler> all[] = {
        {"cvt.rn", modes.nearest}, {"cvt.rz", modes.zero}, {"cvt.rm", modes.down}, {"cvt.rp", modes.up}};
    for (const auto &[start, handler] : all) {
        form.fn = handler;
        forms[start + rest] = form;
    }
}
template <class F, class A>
void put_integer_to_float(AluForms &forms) {
    put_modes(forms, type_suffix<F>() + type_suffix<A>(), {nullptr, OpClass::conversion, kTypeOf<F>, {kTypeOf<A>}},
              kModes<&map1<Cast<F>, F, A>>);
}

struct NearestInteger {
    template <class T>
    T operator()(T x) const {
        return std::nearbyint(x);
    }
};
struct Truncated {
    template <class T>
    T operator()(T x) const {
        return std::trunc(x);
    }
};
struct Floor {
    template <class T>
    T operator()(T x) const {
        return std::floor(x);
    }
};
struct Ceiling {
    template <class T>
    T operator()(T x) const {
        return std::ceil(x);
    }
};

// Rounds, clamps to the integer's range; NaN becomes 0, or 100...0 where one of the types has 64 bits.
template <class D, class R, bool Ftz>
struct ToInteger {
    template <class A>
    D operator()(A a) const {
        if constexpr (Ftz) a = flush_subnormal(a);
        constexpr A least = A(std::numeric_limits<D>::min());
        constexpr A beyond = A(std::numeric_limits<D>::max() / 2 + 1) * A(2);  // 2^n, exact
        constexpr D nan = sizeof(A) == 8 || sizeof(D) == 8 ? D(uint64_t(1) << (8 * sizeof(D) - 1)) : D(0);
        const A r = R{}(a);
        const bool inside = r >= least && r < beyond;
        const A safe = inside ? r : A(0);
        const D value = convert(safe);
        const D outside = r >= beyond ? std::numeric_limits<D>::max() : r < least ? std::numeric_limits<D>::min() : nan;
        return inside ? value : outside;
    }
    // Through the signed type that the host's vector units convert to.
    template <class A>
    static D convert(A x) {
        if constexpr (sizeof(D) == 2)
            return D(int32_t(x));
        else
            return D(x);
    }
};
// flushed: with .ftz; null of other types than f32.
void put_to_integer(AluForms &forms, const char *mode, AluForm form, Handler flushed) {
    const std::string types = std::string(".") + ptx::type_name(form.dst) + "." + ptx::type_name(form.src[0]);
    for (const char *sat : {"", ".sat"}) {  // clamps anyway
        forms[std::string("cvt") + mode + sat + types] = form;
        if (!flushed) continue;
        AluForm &with_ftz = forms[std::string("cvt") + mode + ".ftz" + sat + types] = form;
        with_ftz.fn = flushed;
    }
}
template <class D, class A, class R>
void put_to_integer(AluForms &forms, const char *mode) {
    Handler flushed = nullptr;
    if constexpr (std::is_same_v<A, float>) flushed = &map1<ToInteger<D, R, true>, D, A>;
    put_to_integer(forms, mode, {&map1<ToInteger<D, R, false>, D, A>, OpClass::conversion, kTypeOf<D>, {kTypeOf<A>}},
                   flushed);
}
template <class D, class A>
void put_to_integer_modes(AluForms &forms) {
    put_to_integer<D, A, NearestInteger>(forms, ".rni");
    put_to_integer<D, A, Truncated>(forms, ".rzi");
    put_to_integer<D, A, Floor>(forms, ".rmi");
    put_to_integer<D, A, Ceiling>(forms, ".rpi");
}

// f32 <-> f64 and roundings to integral values within a type.
template <class R, bool Ftz, bool Sat>
struct Integral {
    template <class T>
    T operator()(T a) const {
        if constexpr (Ftz) a = flush_subnormal(a);
        const T r = R{}(a);
        if constexpr (Sat)
            return saturate(r);
        else
            return canonical(r);
    }
};
template <class R>
void put_integral(AluForms &forms, const std::string &mode) {
    const OpClass cls = OpClass::conversion;
    add1<Integral<R, false, false>, float, float>(forms, "cvt" + mode + ".f32.f32", cls);
    add1<Integral<R, true, false>, float, float>(forms, "cvt" + mode + ".ftz.f32.f32", cls);
    add1<Integral<R, false, true>, float, float>(forms, "cvt" + mode + ".sat.f32.f32", cls);
    add1<Integral<R, true, true>, float, float>(forms, "cvt" + mode + ".ftz.sat.f32.f32", cls);
    add1<Integral<R, false, false>, double, double>(forms, "cvt" + mode + ".f64.f64", cls);
}
struct Same {
    template <class T>
    T operator()(T a) const {
        return a;
    }
};
template <bool Ftz>
struct Narrow {
    float operator()(double a) const {
        const float r = float(a);  // a NaN keeps its sign and the top of its payload, as the host's does
        return Ftz ? flush_subnormal(r) : r;
    }
};
template <bool Ftz>
struct Widen {
    double operator()(float a) const { return double(Ftz ? flush_subnormal(a) : a); }
};
template <bool Ftz>
void put_narrow(AluForms &forms, const std::string &rest) {
    put_modes(forms, rest, {nullptr, OpClass::conversion, ptx::Type::f32, {ptx::Type::f64}},
              kModes<&map1<Narrow<Ftz>, float, double>>);
}

template <class Format>
void from_half(Warp &w, const Op &op) {
    alignas(64) float wide[kLanes];
    Format::widen(w.lanes<uint16_t>(op.a), wide, kLanes);
    const float *x = wide;
    write_lanes<float>(w, op.dst, [=](unsigned i) { return canonical(x[i]); });
}
template <bool Relu>
float before_narrowing(float x) {
    return canonical(Relu && x <= 0 ? 0.0f : x);
}
template <class Format, bool Relu>
void to_half(Warp &w, const Op &op) {
    const float *a = w.lanes<float>(op.a);
    alignas(64) float wide[kLanes];
    alignas(64) uint16_t narrow[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) wide[i] = before_narrowing<Relu>(a[i]);
    Format::narrow(wide, narrow, kLanes);
    const uint16_t *x = narrow;
    write_lanes<uint16_t>(w, op.dst, [=](unsigned i) { return x[i]; });
}
template <class Format, bool Relu>
void to_half_pair(Warp &w, const Op &op) {
    const float *a = w.lanes<float>(op.a), *b = w.lanes<float>(op.b);
    alignas(64) float wide[kLanes];
    alignas(64) uint16_t high[kLanes], low[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) wide[i] = before_narrowing<Relu>(a[i]);
    Format::narrow(wide, high, kLanes);
    for (unsigned i = 0; i < kLanes; ++i) wide[i] = before_narrowing<Relu>(b[i]);
    Format::narrow(wide, low, kLanes);
    const uint16_t *h = high, *l = low;
    write_lanes<uint32_t>(w, op.dst, [=](unsigned i) { return uint32_t(h[i]) << 16 | l[i]; });
}
template <class Format>
void put_halves(AluForms &forms, ptx::Type one, ptx::Type two) {
    const OpClass cls = OpClass::conversion;
    const std::string type = std::string(".") + ptx::type_name(one), pair = std::string(".") + ptx::type_name(two);
    forms["cvt.f32" + type] = {&from_half<Format>, cls, ptx::Type::f32, {one}};
    forms["cvt.rn" + type + ".f32"] = {&to_half<Format, false>, cls, one, {ptx::Type::f32}};
    forms["cvt.rn.relu" + type + ".f32"] = {&to_half<Format, true>, cls, one, {ptx::Type::f32}};
    forms["cvt.rn" + pair + ".f32"] = {&to_half_pair<Format, false>, cls, two, {ptx::Type::f32, ptx::Type::f32}};
    forms["cvt.rn.relu" + pair + ".f32"] = {&to_half_pair<Format, true>, cls, two, {ptx::Type::f32, ptx::Type::f32}};
}

// Nearest, ties away from zero, at bit 13: the addition carries into the exponent where it must.
struct Tf32 {
    uint32_t operator()(uint32_t a) const {
        const uint32_t magnitude = a & 0x7fffffffu;
        const uint32_t kept = (a + 0x1000) & ~0x1fffu;
        return magnitude < 0x7f800000u ? kept : magnitude == 0x7f800000u ? a : kNaN32;
    }
};

template <class... D>
struct Types {};
template <class A, class... D>
void put_from_integer(AluForms &forms, Types<D...>) {
    (put_integer_casts<D, A>(forms), ...);
    if constexpr (sizeof(A) > 1) {
        put_integer_to_float<float, A>(forms);
        put_integer_to_float<double, A>(forms);
    }
}
template <class... A>
void put_all(AluForms &forms, Types<A...> all) {
    (put_from_integer<A>(forms, all), ...);
    const auto from_float = [&]<class D>(std::type_identity<D>) {
        if constexpr (sizeof(D) > 1) {
            put_to_integer_modes<D, float>(forms);
            put_to_integer_modes<D, double>(forms);
        }
    };
    (from_float(std::type_identity<A>{}), ...);
}

}  // namespace

void add_convert_forms(AluForms &forms) {
    put_all(forms, Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>{});
    put_integral<NearestInteger>(forms, ".rni");
    put_integral<Truncated>(forms, ".rzi");
    put_integral<Floor>(forms, ".rmi");
    put_integral<Ceiling>(forms, ".rpi");
    add1<Integral<Same, true, false>, float, float>(forms, "cvt.ftz.f32.f32", OpClass::conversion);
    add1<Integral<Same, false, true>, float, float>(forms, "cvt.sat.f32.f32", OpClass::conversion);
    add1<Integral<Same, true, true>, float, float>(forms, "cvt.ftz.sat.f32.f32", OpClass::conversion);
    put_narrow<false>(forms, ".f32.f64");
    put_narrow<true>(forms, ".ftz.f32.f64");
    add1<Widen<false>, double, float>(forms, "cvt.f64.f32", OpClass::conversion);
    add1<Widen<true>, double, float>(forms, "cvt.ftz.f64.f32", OpClass::conversion);
    put_halves<F16>(forms, ptx::Type::f16, ptx::Type::f16x2);
    put_halves<Bf16>(forms, ptx::Type::bf16, ptx::Type::bf16x2);
    forms["cvt.rna.tf32.f32"] = {
        &map1<Tf32, uint32_t, uint32_t>, OpClass::conversion, ptx::Type::b32, {ptx::Type::f32}};
}

}  // namespace warpsim
