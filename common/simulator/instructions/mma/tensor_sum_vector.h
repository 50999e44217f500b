// The usual case of instructions/mma/tensor_sum.h, for a vector of elements: terms become integers, multiples of 2^(E -
// 25), in 32 bits. Sixteen products fit: each is below 4 * 2^25, less the last bits of 11-bit factors. What does not
// fit (exponents near the ends of fp32's range, infinities, NaN, a sum that leaves 31 bits) is marked bad, for
// exact_sum().
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "instructions/mma/tensor_sum.h"

namespace warpsim::tensor {

#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline constexpr unsigned kVector = 16;
#else
inline constexpr unsigned kVector = 8;
#endif
typedef float Floats __attribute__((vector_size(4 * kVector), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kVector), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * kVector), may_alias));
typedef int16_t Shorts __attribute__((vector_size(2 * kVector), may_alias));
typedef int16_t WideShorts __attribute__((vector_size(4 * kVector), may_alias));

inline constexpr int kLeast = -100, kMost = 125;  // exponents that vectors take
inline constexpr int kNone = kNoExponent / 2;     // an E below it: there are no terms
inline constexpr int kFloatLeast = -126;

template <class T>
inline T load(const void *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <class T>
inline void save(void *to, const T &value) {
    std::memcpy(to, &value, sizeof value);
}
template <class To, class From>
inline To as(const From &value) {
    return std::bit_cast<To>(value);
}
inline Ints ints(int value) {
    return Ints{} + value;
}

// 2^exponent, for exponents of normal floats.
inline Floats power(Ints exponent) {
    return as<Floats>((exponent + 127) << 23);
}

inline Ints exponents_of(Floats values, int least) {
    const Ints magnitude = as<Ints>(values) & 0x7fffffff, field = magnitude >> 23;
    const Ints exponent = field - 127;
    const Ints bounded = exponent > least ? exponent : ints(least);
    const Ints finite = field == 255 ? ints(kSpecialExponent) : bounded;
    return magnitude == 0 ? ints(kNoExponent) : finite;
}

template <SumRule Rule>
inline constexpr int kPlaces = Rule.narrow ? 13 : 25;

// E of a vector of elements, from that of their products. bad: all ones where the element is not for vectors.
template <SumRule Rule>
inline Ints exponent_of(Ints products, Floats d, Ints &bad) {
    // An infinite or NaN d has 128, which is bad; a subnormal one counts as 2^-127, and so far down all are bad.
    const Ints magnitude = as<Ints>(d) & 0x7fffffff;
    const Ints of_d = magnitude == 0 ? ints(kNoExponent) : (magnitude >> 23) - 127;
    const Ints exponent = products > of_d ? products : of_d;
    const Ints none = exponent <= kNone;
    bad = (exponent > kMost) | ((exponent < kLeast) & ~none);
    return (bad | none) != 0 ? ints(0) : exponent;
}

inline Words cut(Floats term, Floats scale) {
    return as<Words>(__builtin_convertvector(term * scale, Ints));
}

inline Ints magnitude_of(Words total) {
#if defined(__AVX2__) && !(defined(__AVX512BW__) && defined(__AVX512VL__))
    return as<Ints>(_mm256_abs_epi32(as<__m256i>(total)));
#else
    return as<Ints>(as<Ints>(total) < 0 ? -total : total);
#endif
}

// A sum, cut toward zero to fp32.
inline Floats cut_to_float(Words total) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    constexpr int kTowardZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    return as<Floats>(_mm512_maskz_cvt_roundepi32_ps(0xffff, as<__m512i>(total), kTowardZero));
#else
    // To nearest is toward zero if the first bit that fp32 has no room for is 0. Shifted by 24 places, the number's
    // highest bit lies there and nothing lies above.
    const Words magnitude = as<Words>(magnitude_of(total)), even = magnitude & ~(magnitude >> 24);
#if defined(__AVX2__)
    const Ints signed_again = as<Ints>(_mm256_sign_epi32(as<__m256i>(even), as<__m256i>(total)));
#else
    const Words sign = as<Words>(as<Ints>(total) >> 31);
    const Ints signed_again = as<Ints>((even ^ sign) - sign);
#endif
    return __builtin_convertvector(signed_again, Floats);
#endif
}

// A sum as the result has it, in units of the last place.
template <SumRule Rule>
inline Floats as_float(Words total) {
    Floats sum = cut_to_float(total);
    if constexpr (Rule.narrow && !Rule.odd) {
        sum = as<Floats>(as<Ints>(sum) & ~0x3ff);
    } else if constexpr (Rule.odd) {
        const Ints inexact = __builtin_convertvector(sum, Ints) != as<Ints>(total);
        sum = as<Floats>(as<Ints>(sum) | (inexact & 1));
    }
    return sum;
}

// The sum of the products, in units of the last place, and d become the result.
template <SumRule Rule>
inline Floats finish(Words products, Floats d, Floats scale, Ints exponent, Ints &bad) {
    const Words addend = cut(d, scale), total = products + addend;
    bad |= as<Ints>((products ^ total) & (addend ^ total)) >> 31;
    return as_float<Rule>(total) * power(exponent - kPlaces<Rule>);
}

inline bool any(Ints lanes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return _mm512_test_epi32_mask(as<__m512i>(lanes), as<__m512i>(lanes)) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256(as<__m256i>(lanes), as<__m256i>(lanes));
#else
    using Halves = int64_t __attribute__((vector_size(4 * kVector)));
    const Halves halves = as<Halves>(lanes);
    int64_t all = 0;
    for (unsigned i = 0; i < kVector / 2; ++i) all |= halves[i];
    return all != 0;
#endif
}
inline bool any_negative(Ints lanes) {
#if defined(__AVX2__) && !(defined(__AVX512BW__) && defined(__AVX512VL__))
    return _mm256_movemask_ps(as<__m256>(lanes)) != 0;
#else
    return any(lanes & INT32_MIN);
#endif
}

}  // namespace warpsim::tensor
