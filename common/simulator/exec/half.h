// f16 and bf16 as bits, to and from float. NaN results are the canonical 0x7fff / 0x7fffffff, as on NVIDIA GPUs.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
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

}  // namespace warpsim
