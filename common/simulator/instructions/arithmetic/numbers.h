// Half-precision numbers as lanes hold them, and functions of floats that arithmetic, conversions and reductions share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace warpsim {

inline constexpr uint32_t kNaN32 = 0x7fffffffu;
inline constexpr uint16_t kNaN16 = 0x7fffu;

inline float canonical(float x) {
    return x == x ? x : std::bit_cast<float>(kNaN32);
}

// Exact; NaNs keep their payload (a signalling one may become quiet).
inline float bf16_to_float(uint16_t bits) {
    return std::bit_cast<float>(uint32_t(bits) << 16);
}
inline float f16_to_float(uint16_t bits) {
    // The exponent moves from bias 15 to bias 127 by a multiplication, which also normalises subnormals.
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = uint32_t(bits & 0x7fff) << 13;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    const uint32_t infinite = magnitude | 0x7f800000u;
    return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? infinite : std::bit_cast<uint32_t>(scaled)));
}

// Round to nearest even.
inline uint16_t float_to_bf16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t kept = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return x == x ? uint16_t(kept) : kNaN16;
}
inline uint16_t float_to_f16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
    // Below 2^-14 a half's last bit is worth 2^-24, which is the last bit of a float in [0.5, 1): adding 0.5 rounds
    // there. Above, the integer addition rounds at bit 13 and carries into the exponent where it must.
    const float small = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t subnormal = std::bit_cast<uint32_t>(small) - 0x3f000000u;
    const uint32_t normal = (magnitude - 0x38000000u + 0x0fff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? 0x7c00 : half;  // 65536 and more; 65520 to 65536 rounds up to 0x7c00 by itself
    return magnitude > 0x7f800000u ? kNaN16 : uint16_t(half | (bits >> 16 & 0x8000));
}

// The same for arrays; n is a multiple of 8. `narrow` wants canonical NaNs.
struct F16 {
    static constexpr uint16_t kSmallestNormal = 0x0400;
    static void widen(const uint16_t *from, float *to, unsigned n) {
#if defined(__F16C__)
        for (unsigned i = 0; i < n; i += 8)
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
#else
        for (unsigned i = 0; i < n; ++i) to[i] = f16_to_float(from[i]);
#endif
    }
    static void narrow(const float *from, uint16_t *to, unsigned n) {
#if defined(__F16C__)
        for (unsigned i = 0; i < n; i += 8)
            _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                             _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#else
        for (unsigned i = 0; i < n; ++i) to[i] = float_to_f16(from[i]);
#endif
    }
};
struct Bf16 {
    static constexpr uint16_t kSmallestNormal = 0x0080;
    static void widen(const uint16_t *from, float *to, unsigned n) {
        for (unsigned i = 0; i < n; ++i) to[i] = bf16_to_float(from[i]);
    }
    static void narrow(const float *from, uint16_t *to, unsigned n) {
        for (unsigned i = 0; i < n; ++i) to[i] = float_to_bf16(from[i]);
    }
};

// a * b + c for f16 or bf16 values, as a float from which one more rounding to 16 bits gives the correctly rounded
// result. The product of two 11-bit (8-bit) significands is exact in double. The sum is rounded to odd, to 53 and then
// to 24 bits: where it is inexact the last bit becomes 1, which keeps "above, at or below a tie" visible to the
// final rounding (sound when at least two bits more than the result's are kept, and 24 >= 11 + 2).
inline float fused_multiply_add(float a, float b, float c) {
    const double product = double(a) * double(b), addend = c, sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);  // exact (Knuth's two-sum)
    uint64_t bits = std::bit_cast<uint64_t>(sum);
    const bool inexact = error != 0 && std::abs(sum) < 0x1p1000;  // error is NaN for infinities: never used then
    const uint64_t outwards = (error > 0) == (sum > 0) ? 1 : uint64_t(-1);
    bits += inexact && !(bits & 1) ? outwards : 0;
    const double odd = std::bit_cast<double>(bits);
    const float result = float(odd);
    uint32_t result_bits = std::bit_cast<uint32_t>(result);
    const double back = result;
    const uint32_t step = std::abs(odd) > std::abs(back) ? 1 : uint32_t(-1);
    result_bits += back != odd && odd == odd && !(result_bits & 1) ? step : 0;
    return std::bit_cast<float>(result_bits);
}

inline double canonical(double x) {
    return x;
}  // f64 keeps what the host's IEEE arithmetic gives, as GPUs do

// .ftz: a subnormal becomes a zero of the same sign.
inline float flush_subnormal(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits & 0x7f800000u) ? bits : bits & 0x80000000u);
}
// .sat: to [0, 1]; NaN gives +0.
template <class T>
inline T saturate(T x) {
    return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}

// min, max by IEEE 754-2008 minNum (a NaN loses), or 2019 minimum (.NaN: a NaN wins); -0 < +0 in both.
// XorSignAbs: of the magnitudes, with the exclusive or of the signs.
template <bool Max, bool Nan, bool XorSignAbs>
struct Extremum {
    template <class T>
    T operator()(T a, T b) const {
        using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
        Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
        const Bits result_sign = (x ^ y) & sign;
        if constexpr (XorSignAbs) {
            x &= ~sign, y &= ~sign;
            a = std::bit_cast<T>(x), b = std::bit_cast<T>(y);
        }
        // Equal values differ in the sign of zero at most: or-ing finds -0, and-ing +0.
        const T same = std::bit_cast<T>(Max ? x & y : x | y);
        T r = (Max ? a > b : a < b) ? a : b;
        r = a == b ? same : r;
        if constexpr (Nan)
            r = a != a ? a : r;  // b's NaN was chosen above: the comparison is false
        else
            r = b != b ? a : r;
        if constexpr (XorSignAbs) r = r == r ? std::bit_cast<T>(std::bit_cast<Bits>(r) | result_sign) : r;
        return canonical(r);
    }
};

// 2^x within 1 ulp, subnormal results included; exact where x is an integer. -inf, +inf, NaN: 0, inf, NaN.
inline float exp2_approx(float x) {
    const float bounded = x < -160.0f ? -160.0f : (x > 160.0f ? 160.0f : x);
    const float whole = std::nearbyint(bounded);
    const float f = bounded - whole;  // exact, in [-0.5, 0.5]
    // Minimax polynomial (Remez, weighted for the relative error of 2^f) of (2^f - 1) / f, times f, plus 1.
    float p = 1.5353599e-4f;
    p = __builtin_fmaf(p, f, 1.3398852e-3f);
    p = __builtin_fmaf(p, f, 9.618436e-3f);
    p = __builtin_fmaf(p, f, 5.5503324e-2f);
    p = __builtin_fmaf(p, f, 2.4022648e-1f);
    p = __builtin_fmaf(p, f, 6.931472e-1f);
    p = __builtin_fmaf(p, f, 1.0f);
    // 2^whole in two factors, so that each is a normal float and only the last product rounds.
    const int32_t n = int32_t(whole), half = n >> 1;
    const float first = std::bit_cast<float>(uint32_t(half + 127) << 23);
    const float second = std::bit_cast<float>(uint32_t(n - half + 127) << 23);
    const float result = p * first * second;
    return x == x ? result : std::bit_cast<float>(kNaN32);
}

inline float tanh_approx(float x) {
    return canonical(std::tanh(x));
}

inline float flush(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

inline float half_value(uint16_t bits, bool bf16) {
    return bf16 ? bf16_to_float(bits) : f16_to_float(bits);
}
inline uint16_t half_bits(float x, bool bf16) {
    return bf16 ? float_to_bf16(x) : float_to_f16(x);
}

struct AddF32 {
    static uint32_t of(uint32_t old, uint32_t b, uint32_t, bool global) {
        float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
        if (global) x = flush(x), y = flush(y);
        const float sum = canonical(x + y);
        return std::bit_cast<uint32_t>(global ? flush(sum) : sum);
    }
};
struct AddF64 {
    static uint64_t of(uint64_t old, uint64_t b, uint64_t, bool) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    }
};
// A sum in fp32 rounds once more to the same 16 bits as a sum rounded at once: 24 bits are at least twice 11 and two
// more.
template <bool bf16>
struct AddHalf {
    static uint16_t of(uint16_t old, uint16_t b, uint16_t, bool) {
        return half_bits(half_value(old, bf16) + half_value(b, bf16), bf16);
    }
};
template <bool bf16, bool max>
struct PickHalf {
    static uint16_t of(uint16_t old, uint16_t b, uint16_t, bool) {
        const float x = half_value(old, bf16), y = half_value(b, bf16);
        if (x != x && y != y) return kNaN16;
        if (x != x || y != y) return x != x ? b : old;
        if (x == y) return max ? old & b : old | b;  // +0 is larger than -0
        return (max ? x < y : y < x) ? b : old;
    }
};

}  // namespace warpsim
