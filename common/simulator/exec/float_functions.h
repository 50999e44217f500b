// Scalar float functions of PTX that vectorise when inlined in a loop over lanes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "exec/half.h"

namespace warpsim {

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

}  // namespace warpsim
