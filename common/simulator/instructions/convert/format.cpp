#include "instructions/convert/convert.h"

#include <algorithm>
#include <bit>

namespace warpsim {
namespace {

// value / 2^shift with everything below noted in sticky.
struct Shifted {
    uint64_t quotient;
    bool half, sticky;
};
Shifted shift_right(uint64_t value, unsigned shift, bool sticky) {
    if (shift == 0) return {value, false, sticky};
    if (shift > 64) return {0, false, sticky || value != 0};
    const uint64_t quotient = shift == 64 ? 0 : value >> shift;
    const uint64_t half = uint64_t(1) << (shift - 1);
    return {quotient, (value & half) != 0, sticky || (value & (half - 1)) != 0};
}

uint64_t round_shifted(const Shifted &s, bool negative, Round mode) {
    const bool inexact = s.half || s.sticky;
    bool up = false;
    switch (mode) {
        case Round::nearest_even:
            up = s.half && (s.sticky || (s.quotient & 1));
            break;
        case Round::nearest_away:
            up = s.half;
            break;
        case Round::zero:
            break;
        case Round::down:
            up = inexact && negative;
            break;
        case Round::up:
            up = inexact && !negative;
            break;
    }
    return s.quotient + up;
}

}  // namespace

const FloatFormat *float_format(ptx::Type type) {
    static constexpr FloatFormat kF16{11, 15, 5, 0, 0x7fff, true}, kBf16{8, 127, 8, 0, 0x7fff, true};
    static constexpr FloatFormat kTf32{11, 127, 8, 13, 0x7fffffff, true}, kF32{24, 127, 8, 0, 0x7fffffff, true};
    static constexpr FloatFormat kF64{53, 1023, 11, 0, 0x7fffffffffffffff, true};
    static constexpr FloatFormat kE4m3{4, 8, 4, 0, 0x7f, false}, kE5m2{3, 15, 5, 0, 0x7f, true};
    switch (type) {
        case ptx::Type::f16:
            return &kF16;
        case ptx::Type::bf16:
            return &kBf16;
        case ptx::Type::tf32:
            return &kTf32;
        case ptx::Type::f32:
            return &kF32;
        case ptx::Type::f64:
            return &kF64;
        case ptx::Type::e4m3:
            return &kE4m3;
        case ptx::Type::e5m2:
            return &kE5m2;
        default:
            return nullptr;
    }
}

Number unpack_float(uint64_t bits, const FloatFormat &f) {
    bits >>= f.trailing_zeros;
    const unsigned fraction_bits = f.precision - 1;
    const uint64_t fraction = bits & ((uint64_t(1) << fraction_bits) - 1);
    const uint64_t exponent = bits >> fraction_bits & ((uint64_t(1) << f.exponent_bits) - 1);
    const uint64_t top = (uint64_t(1) << f.exponent_bits) - 1;
    Number n;
    n.negative = bits >> (fraction_bits + f.exponent_bits) & 1;
    if (exponent == top && (f.has_infinity || fraction == (uint64_t(1) << fraction_bits) - 1)) {
        n.kind = f.has_infinity && fraction == 0 ? Number::Kind::infinite : Number::Kind::nan;
        return n;
    }
    n.significand = exponent ? fraction | uint64_t(1) << fraction_bits : fraction;
    n.exponent = std::max(int(exponent), 1) - 1 + f.min_exponent() - int(fraction_bits);
    n.kind = n.significand ? Number::Kind::finite : Number::Kind::zero;
    return n;
}

Number unpack_integer(uint64_t bits, ptx::Type type) {
    const unsigned unused = 64 - 8 * ptx::type_bytes(type);
    Number n;
    if (ptx::is_signed(type)) {
        const int64_t value = int64_t(bits << unused) >> unused;
        n.negative = value < 0;
        n.significand = n.negative ? -uint64_t(value) : uint64_t(value);
    } else {
        n.significand = bits << unused >> unused;
    }
    n.kind = n.significand ? Number::Kind::finite : Number::Kind::zero;
    return n;
}

uint64_t pack_float(const Number &n, const FloatFormat &f, Round mode, bool saturate_finite) {
    const unsigned fraction_bits = f.precision - 1;
    const uint64_t fraction_ones = (uint64_t(1) << fraction_bits) - 1;
    const uint64_t top = ((uint64_t(1) << f.exponent_bits) - 1) << fraction_bits;
    const uint64_t infinity = f.has_infinity ? top : top | fraction_ones;  // e4m3: NaN stands in
    const uint64_t largest = f.has_infinity ? top - 1 : (top | fraction_ones) - 1;
    const auto place = [&](uint64_t magnitude) {
        return (magnitude | uint64_t(n.negative) << (fraction_bits + f.exponent_bits)) << f.trailing_zeros;
    };
    switch (n.kind) {
        case Number::Kind::nan:
            return f.nan;
        case Number::Kind::zero:
            return place(0);
        case Number::Kind::infinite:
            return place(saturate_finite ? largest : infinity);
        case Number::Kind::finite:
            break;
    }
    // The exponent of the leading bit, and that of the last bit kept.
    const int leading = n.exponent + 63 - std::countl_zero(n.significand);
    const int last = std::max(leading, f.min_exponent()) - int(fraction_bits);
    const int shift = last - n.exponent;
    Shifted s = shift > 0 ? shift_right(n.significand, unsigned(shift), n.sticky)
                          : Shifted{n.significand << -shift, false, n.sticky};
    const uint64_t rounded = round_shifted(s, n.negative, mode);
    // A carry out of the significand moves into the exponent field by itself; a subnormal has no hidden bit to add.
    const uint64_t biased = uint64_t(last + int(fraction_bits) - f.min_exponent());
    const uint64_t magnitude = (biased << fraction_bits) + rounded;
    if (magnitude <= largest && leading <= f.max_exponent) return place(magnitude);
    const bool stays = mode == Round::zero || (mode == Round::down && !n.negative) || (mode == Round::up && n.negative);
    return place(saturate_finite || stays ? largest : infinity);
}

Number round_to_integral(const Number &n, Round mode) {
    if (n.kind != Number::Kind::finite || n.exponent >= 0) return n;
    Number r = n;
    r.significand = round_shifted(shift_right(n.significand, unsigned(-n.exponent), n.sticky), n.negative, mode);
    r.exponent = 0;
    r.sticky = false;
    r.kind = r.significand ? Number::Kind::finite : Number::Kind::zero;
    return r;
}

uint64_t pack_integer(const Number &n, ptx::Type to, Round mode, uint64_t nan) {
    if (n.kind == Number::Kind::nan) return nan;
    const unsigned bits = 8 * ptx::type_bytes(to);
    const bool is_signed = ptx::is_signed(to);
    const uint64_t maximum = (~uint64_t(0) >> (64 - bits)) >> is_signed;
    const uint64_t minimum_magnitude = is_signed ? maximum + 1 : 0;
    const uint64_t limit = n.negative ? minimum_magnitude : maximum;
    uint64_t magnitude = limit;
    const Number r = round_to_integral(n, mode);
    if (r.kind == Number::Kind::zero)
        magnitude = 0;
    else if (r.kind == Number::Kind::finite && r.exponent <= int(std::countl_zero(r.significand)))
        magnitude = std::min(limit, r.significand << r.exponent);
    return (n.negative ? -magnitude : magnitude) & (~uint64_t(0) >> (64 - bits));
}

}  // namespace warpsim
