// mma.m16n8k16 and .m16n8k8 of 16-bit floats with 32-bit sums, straight from the registers of a warp: what most
// programs spend their time on. Only where vectors have 16 elements, one for each row of A; elsewhere, and for elements
// that are not for vectors, exact_sums_of_8_columns() does it.
#pragma once

#include "exec/tensor_sum_vector.h"

namespace warpsim::tensor {

#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline constexpr bool kHasRowVectors = true;

// Four vectors of 4 rows x 4 columns become four columns of 16 rows, and back.
template <class Vector>
inline void rows_to_columns(const Vector (&z)[4], Vector (&column)[4]) {
    constexpr Ints kFirst = {0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29}, kSecond = kFirst + 2;
    constexpr Ints kLow = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}, kHigh = kLow + 8;
    const Vector a = __builtin_shuffle(z[0], z[1], kFirst), b = __builtin_shuffle(z[2], z[3], kFirst);
    const Vector c = __builtin_shuffle(z[0], z[1], kSecond), d = __builtin_shuffle(z[2], z[3], kSecond);
    column[0] = __builtin_shuffle(a, b, kLow);
    column[1] = __builtin_shuffle(a, b, kHigh);
    column[2] = __builtin_shuffle(c, d, kLow);
    column[3] = __builtin_shuffle(c, d, kHigh);
}
template <class Vector>
inline void columns_to_rows(const Vector (&column)[4], Vector (&z)[4]) {
    constexpr Ints kLow = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}, kHigh = kLow + 8;
    constexpr Ints kUpper = {0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27}, kLower = kUpper + 4;
    const Vector a = __builtin_shuffle(column[0], column[1], kLow), b = __builtin_shuffle(column[2], column[3], kLow);
    const Vector c = __builtin_shuffle(column[0], column[1], kHigh), d = __builtin_shuffle(column[2], column[3], kHigh);
    z[0] = __builtin_shuffle(a, b, kUpper);
    z[1] = __builtin_shuffle(a, b, kLower);
    z[2] = __builtin_shuffle(c, d, kUpper);
    z[3] = __builtin_shuffle(c, d, kLower);
}

// Pairs of 16-bit floats, the lower half first. Infinities and NaN need not come out: their exponent says so.
struct BfloatPairs {
    static constexpr int kFraction = 7, kBias = 127;
    // Exponents may be the fields alone: see plain_exponent_of().
    static constexpr bool kPlain = true;
    static Floats first(Ints pairs) { return as<Floats>(pairs << 16); }
    static Floats second(Ints pairs) { return as<Floats>(pairs & ints(int(0xffff0000))); }
};
struct HalfPairs {
    static constexpr int kFraction = 10, kBias = 15;
    static constexpr bool kPlain = false;
    static Floats first(Ints pairs) { return second(pairs << 16); }
    static Floats second(Ints pairs) {
        const Floats magnitude = as<Floats>((pairs & 0x7fff0000) >> 3) * 0x1p112f;
        return as<Floats>(as<Ints>(magnitude) | (pairs & ints(INT32_MIN)));
    }
};

typedef uint16_t WideWords __attribute__((vector_size(4 * kVector), may_alias));

template <class Pairs>
inline WideShorts pair_exponents(Ints pairs) {
    if constexpr (Pairs::kPlain) return as<WideShorts>(as<WideWords>(pairs) << 1 >> (Pairs::kFraction + 1));
    constexpr int16_t kSpecial = int16_t((1 << (15 - Pairs::kFraction)) - 1);
    const WideShorts magnitude = as<WideShorts>(pairs) & int16_t(0x7fff), field = magnitude >> Pairs::kFraction;
    const WideShorts exponent = field - int16_t(Pairs::kBias), none = WideShorts{} + kNoExponent;
    const WideShorts subnormal = WideShorts{} + int16_t(1 - Pairs::kBias);
    const WideShorts finite = exponent > subnormal ? exponent : subnormal;
    const WideShorts any = field == kSpecial ? WideShorts{} + kSpecialExponent : finite;
    return magnitude == 0 ? none : any;
}

// E where the products' exponents are sums of bf16's fields, and no factor is 2^26 or more. A field of 0, of zero or of
// a subnormal number, then gives a sum for an E below -100: what is not below it is exact, and the rest is for others,
// unless there are no terms. low: all ones where it is below, and d is 0.
constexpr int kMostField = 152;
inline Ints plain_exponent_of(Ints fields, Floats d, Ints &bad, Ints &low) {
    const Ints of_products = fields - 127, magnitude = as<Ints>(d) & 0x7fffffff, of_d = magnitude >> 23;
    const Ints field = of_products > of_d ? of_products : of_d;
    constexpr int kLowest = kLeast + 127, kHighest = kMost + 127;
    const Ints above = (kHighest - field) >> 31, below = (field - kLowest) >> 31;
    low = below & ((magnitude - 1) >> 31);
    bad = above | (below & ~low);
    const Ints least = field > kLowest ? field : ints(kLowest);
    return (least < kHighest ? least : ints(kHighest)) - 127;
}

// d[i] = c[i] + A B, for registers as mma.sync has them: KPairs is k / 2. False: some element is not for vectors, and
// nothing has been written.
template <class Pairs, unsigned KPairs>
inline bool mma_of_pairs(const std::byte *const *a, const std::byte *const *b, const std::byte *const *c,
                         std::byte *const *d) {
    constexpr unsigned kQuads = KPairs / 4;
    Floats a_first[KPairs], a_second[KPairs];
    WideShorts a_exponents[KPairs];
    alignas(64) float b_first[kQuads][32], b_second[kQuads][32];
    alignas(64) int32_t b_exponents[kQuads][32];
#pragma GCC unroll 2
    for (unsigned quad = 0; quad < kQuads; ++quad) {
        const Ints z[4] = {load<Ints>(a[2 * quad]), load<Ints>(a[2 * quad] + 64), load<Ints>(a[2 * quad + 1]),
                           load<Ints>(a[2 * quad + 1] + 64)};
        Ints column[4];
        rows_to_columns(z, column);
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; ++i) {
            a_first[quad * 4 + i] = Pairs::first(column[i]);
            a_second[quad * 4 + i] = Pairs::second(column[i]);
            a_exponents[quad * 4 + i] = pair_exponents<Pairs>(column[i]);
        }
#pragma GCC unroll 2
        for (unsigned half = 0; half < 2; ++half) {
            const Ints pairs = load<Ints>(b[quad] + 64 * half);
            save(&b_first[quad][16 * half], Pairs::first(pairs));
            save(&b_second[quad][16 * half], Pairs::second(pairs));
            save(&b_exponents[quad][16 * half], pair_exponents<Pairs>(pairs));
        }
    }
    // Each element of B is loaded into a whole vector below; the compiler must not take them out of vectors instead.
    asm("" : "+m"(b_first), "+m"(b_second), "+m"(b_exponents));
    if constexpr (Pairs::kPlain) {
        WideShorts most = a_exponents[0];
#pragma GCC unroll 8
        for (unsigned k = 1; k < KPairs; ++k) most = a_exponents[k] > most ? a_exponents[k] : most;
#pragma GCC unroll 4
        for (unsigned i = 0; i < 2 * kQuads; ++i) {
            const WideShorts of_b = load<WideShorts>(&b_exponents[i / 2][i % 2 * 16]);
            most = of_b > most ? of_b : most;
        }
        if (any(as<Ints>(most > int16_t(kMostField)))) [[unlikely]]
            return false;
    }
    constexpr SumRule kRule{};
    Floats addend[2][4], scale[2][4];
    Ints exponent[2][4], bad[2][4], low[2][4], low_any = {};
    Words sum[2][4];
    Floats result[2][4];
    // Step by step for all columns: within one, most steps wait for the one before.
#pragma GCC unroll 2
    for (unsigned odd = 0; odd < 2; ++odd) {
        const Floats z[4] = {load<Floats>(c[odd]), load<Floats>(c[odd] + 64), load<Floats>(c[odd + 2]),
                             load<Floats>(c[odd + 2] + 64)};
        rows_to_columns(z, addend[odd]);
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned column = 2 * i + odd;
            WideShorts largest = WideShorts{} + int16_t(2 * kNoExponent);
#pragma GCC unroll 8
            for (unsigned k = 0; k < KPairs; ++k) {
                const WideShorts both =
                    a_exponents[k] + as<WideShorts>(Ints{} + b_exponents[k / 4][column * 4 + k % 4]);
                largest = both > largest ? both : largest;
            }
            const Ints both = as<Ints>(largest), second = both >> 16, first = both << 16 >> 16;
            const Ints products = first > second ? first : second;
            if constexpr (Pairs::kPlain) {
                exponent[odd][i] = plain_exponent_of(products, addend[odd][i], bad[odd][i], low[odd][i]);
                low_any |= low[odd][i];
            } else {
                exponent[odd][i] = exponent_of<kRule>(products, addend[odd][i], bad[odd][i]);
            }
            scale[odd][i] = power(kPlaces<kRule> - exponent[odd][i]);
        }
    }
#pragma GCC unroll 2
    for (unsigned odd = 0; odd < 2; ++odd) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned column = 2 * i + odd;
            Words first = {}, second = {};
#pragma GCC unroll 8
            for (unsigned k = 0; k < KPairs; ++k) {
                first += cut(a_first[k] * b_first[k / 4][column * 4 + k % 4], scale[odd][i]);
                second += cut(a_second[k] * b_second[k / 4][column * 4 + k % 4], scale[odd][i]);
            }
            sum[odd][i] = first + second;
        }
    }
    Ints bad_any = {};
    if (any(low_any)) [[unlikely]] {  // good where there are no terms
        for (unsigned column = 0; column < 8; ++column) {
            Ints terms = {};
            for (unsigned k = 0; k < KPairs; ++k) {
                const unsigned at = column * 4 + k % 4;
                terms |= (a_first[k] != 0) & (b_first[k / 4][at] != Floats{});
                terms |= (a_second[k] != 0) & (b_second[k / 4][at] != Floats{});
            }
            bad_any |= low[column % 2][column / 2] & terms;
        }
    }
#pragma GCC unroll 2
    for (unsigned odd = 0; odd < 2; ++odd) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; ++i) {
            result[odd][i] = finish<kRule>(sum[odd][i], addend[odd][i], scale[odd][i], exponent[odd][i], bad[odd][i]);
            bad_any |= bad[odd][i];
        }
    }
    if (any(bad_any)) [[unlikely]]
        return false;
#pragma GCC unroll 2
    for (unsigned odd = 0; odd < 2; ++odd) {
        Floats z[4];
        columns_to_rows(result[odd], z);
        save(d[odd], z[0]);
        save(d[odd] + 64, z[1]);
        save(d[odd + 2], z[2]);
        save(d[odd + 2] + 64, z[3]);
    }
    return true;
}
#else
inline constexpr bool kHasRowVectors = false;
struct BfloatPairs {};
struct HalfPairs {};
template <class Pairs, unsigned KPairs>
inline bool mma_of_pairs(const std::byte *const *, const std::byte *const *, const std::byte *const *,
                         std::byte *const *) {
    return false;
}
#endif

}  // namespace warpsim::tensor
