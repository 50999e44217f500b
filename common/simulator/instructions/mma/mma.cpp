// mma.sync. mma.m16n8k16 and .m16n8k8 of 16-bit floats with 32-bit sums, straight from the registers of a warp: what
// most programs spend their time on. Only where vectors have 16 elements, one for each row of A; elsewhere, and for
// elements that are not for vectors, exact_sums_of_8_columns() does it.
#include "instructions/mma/mma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/program.h"
#include "core/warp.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/convert/convert.h"
#include "instructions/mma/tensor_elements.h"
#include "instructions/mma/tensor_sum.h"
#include "instructions/mma/tensor_sum_vector.h"

namespace warpsim {

namespace tensor {

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

}  // namespace tensor

namespace {

inline Ints8 multiply_add(int32_t a, Ints8 b, Ints8 sum) {
    return a * b + sum;
}

// B's tiles with rows of K elements for each of its columns, in C's order: columns[k] is row k of the matrix.
template <class Element, unsigned K, class Vector>
inline void load_columns(const Warp &w, const uint32_t *slots, Vector (&columns)[K]) {
    using Value = typename Element::Value;
    constexpr unsigned kColumns = 4 * Element::kPerRegister, kTiles = K / kColumns;
    alignas(64) Value b[8][kColumns];
    for (unsigned t = 0; t < kTiles; ++t) {
        Element::widen(w.regs + slots[t], &b[0][0], 8 * kColumns);
        if constexpr (kColumns % 8 == 0) {
            for (unsigned part = 0; part < kColumns; part += 8) {
                Vector rows[8];
                for (unsigned i = 0; i < 8; ++i) std::memcpy(&rows[i], &b[kColumnOrder[i]][part], sizeof(Vector));
                transpose8(rows);
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + part + i] = rows[i];
            }
        } else {
            for (unsigned j = 0; j < kColumns; ++j)
                for (unsigned i = 0; i < 8; ++i) columns[t * kColumns + j][i] = b[kColumnOrder[i]][j];
        }
    }
}

// A, row by row.
template <class Element, unsigned K>
inline void load_rows(const Warp &w, const uint32_t *slots, typename Element::Value *a) {
    constexpr unsigned kColumns = 4 * Element::kPerRegister, kTiles = K / kColumns;
    if constexpr (kTiles == 1) {
        for (unsigned i = 0; i < 2; ++i) Element::widen(w.regs + slots[i], a + i * 8 * K, 8 * K);
    } else {
        alignas(64) typename Element::Value tile[8][kColumns];
        for (unsigned i = 0; i < 2 * kTiles; ++i) {
            Element::widen(w.regs + slots[i], &tile[0][0], 8 * kColumns);
            for (unsigned row = 0; row < 8; ++row)
                std::memcpy(a + (i % 2 * 8 + row) * K + i / 2 * kColumns, tile[row], sizeof tile[row]);
        }
    }
}

// sums[row] = A's row times B, with columns in C's order.
template <class ElementA, class ElementB, unsigned K>
inline void multiply(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, Ints8 (&sums)[16]) {
    Ints8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) int32_t a[16][K];
    load_rows<ElementA, K>(w, a_slots, &a[0][0]);
    for (unsigned half = 0; half < 2; ++half) {
        Ints8 sum[8] = {};
        for (unsigned k = 0; k < K; ++k)
#pragma GCC unroll 8
            for (unsigned row = 0; row < 8; ++row) sum[row] = multiply_add(a[8 * half + row][k], columns[k], sum[row]);
        for (unsigned row = 0; row < 8; ++row) sums[8 * half + row] = sum[row];
    }
}

// The same for floats, d included: on entry C, on return the results. odd: for f16, see SumRule.
template <class ElementA, class ElementB, unsigned K>
inline void multiply_add_floats(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, float *d, bool odd) {
    Floats8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) float a[16 * K + 16];
    alignas(64) int16_t a_exponents[16 * K + 16], b_exponents[8 * K];
    load_rows<ElementA, K>(w, a_slots, a);
    const float *b = reinterpret_cast<const float *>(columns);
    factor_exponents(a, a_exponents, 16 * K, ElementA::kLeast);
    factor_exponents(b, b_exponents, 8 * K, ElementB::kLeast);
    exact_sums_of_8_columns({a, b, a_exponents, b_exponents, d, 16, K}, {false, odd});
}

// D as its registers hold it: a sum of f16, rounded to odd, is rounded to nearest.
inline void round_sums(float *d, bool half) {
    if (!half) return;
    alignas(64) uint16_t bits[128];
    F16::narrow(d, bits, 128);
    F16::widen(bits, d, 128);
}

// The same for 8-bit floats, as instructions/mma/tensor_sum.h says. half: D is f16.
template <class ElementA, class ElementB, unsigned K>
inline void multiply_add_floats8(const Warp &w, const uint32_t *a_slots, const uint32_t *b_slots, float *d, bool half) {
    Floats8 columns[K];
    load_columns<ElementB, K>(w, b_slots, columns);
    alignas(64) float a[16][K];
    load_rows<ElementA, K>(w, a_slots, &a[0][0]);
    alignas(64) float sums[16 * 8] = {};
    for (unsigned part = 0; part < 2; ++part) {
        alignas(64) float a_part[16 * K / 2 + 16], b_part[8 * K / 2];
        alignas(64) int16_t a_exponents[16 * K / 2 + 16], b_exponents[8 * K / 2];
        for (unsigned i = 0; i < K / 2; ++i) {
            const unsigned k = i / 2 * 4 + 2 * part + i % 2;
            for (unsigned row = 0; row < 16; ++row) a_part[row * K / 2 + i] = a[row][k];
            std::memcpy(b_part + 8 * i, &columns[k], sizeof columns[k]);
        }
        factor_exponents(a_part, a_exponents, 8 * K, HalfElement::kLeast);
        factor_exponents(b_part, b_exponents, 4 * K, HalfElement::kLeast);
        exact_sums_of_8_columns({a_part, b_part, a_exponents, b_exponents, sums, 16, K / 2, part == 1}, {false, half});
        round_sums(sums, half);
    }
    for (unsigned i = 0; i < 128; ++i) {
        d[i] += sums[i];
        if (std::isnan(d[i])) d[i] = std::bit_cast<float>(0x7fffffffu);
    }
}

// Copies a result register to its slot, in the lanes that execute.
inline void store(const Warp &w, uint32_t slot, const void *lanes) {
    if (w.exec == kAllLanes) {
        std::memcpy(w.regs + slot, lanes, 4 * kLanes);
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
        if (w.exec >> lane & 1)
            std::memcpy(w.regs + slot + 4 * lane, static_cast<const std::byte *>(lanes) + 4 * lane, 4);
}

// A 16x8 result of 32-bit elements as its four registers: each vector's halves belong to two of them.
template <class Vector>
inline void store_words(const Warp &w, const uint32_t *slots, const Vector (&sums)[16]) {
    alignas(64) std::byte registers[4][4 * kLanes];
    for (unsigned row = 0; row < 16; ++row) {
        std::byte half[32];
        std::memcpy(half, &sums[row], sizeof half);
        std::memcpy(registers[row / 8 * 2] + row % 8 * 16, half, 16);
        std::memcpy(registers[row / 8 * 2 + 1] + row % 8 * 16, half + 16, 16);
    }
    for (unsigned i = 0; i < 4; ++i) store(w, slots[i], registers[i]);
}

template <class Vector>
inline Vector load_words(const Warp &w, const uint32_t *slots, unsigned row) {
    Vector c;
    std::byte both[32];
    std::memcpy(both, w.regs + slots[row / 8 * 2] + row % 8 * 16, 16);
    std::memcpy(both + 16, w.regs + slots[row / 8 * 2 + 1] + row % 8 * 16, 16);
    std::memcpy(&c, both, sizeof c);
    return c;
}

// By vectors of rows, where they can: false if not.
template <class Pairs, unsigned K>
inline bool multiply_pairs(const Warp &w, const uint32_t *slots) {
    if (!tensor::kHasRowVectors || w.exec != kAllLanes) return false;
    constexpr unsigned kA = K / 4, kB = K / 8;
    std::byte *registers[8 + kA + kB];
    for (unsigned i = 0; i < 8 + kA + kB; ++i) registers[i] = w.regs + slots[i];
    return tensor::mma_of_pairs<Pairs, K / 2>(registers + 4, registers + 4 + kA, registers + 4 + kA + kB, registers);
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_float(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    if constexpr (ElementA::kPerRegister == 2) {
        using Pairs = std::conditional_t<ElementA::kLeast == -14, tensor::HalfPairs, tensor::BfloatPairs>;
        if (multiply_pairs<Pairs, K>(w, slots)) return;
    }
    alignas(64) Floats8 sums[16];
    for (unsigned row = 0; row < 16; ++row) sums[row] = load_words<Floats8>(w, slots + 4 + kA + kA / 2, row);
    float *d = reinterpret_cast<float *>(sums);
    if constexpr (ElementA::kPerRegister == 4)
        multiply_add_floats8<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, d, false);
    else
        multiply_add_floats<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, d, false);
    store_words(w, slots, sums);
}

// f16 accumulators: pairs of neighbouring columns share a register.
template <class Element, unsigned K, class ElementB = Element>
void exec_mma_half(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * Element::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    alignas(64) float tile[16][8], sums[16][8];
    for (unsigned half = 0; half < 2; ++half)
        F16::widen(reinterpret_cast<const uint16_t *>(w.regs + slots[2 + kA + kA / 2 + half]), tile[8 * half], 64);
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) sums[row][i] = tile[row][kColumnOrder[i]];
    if constexpr (Element::kPerRegister == 4)
        multiply_add_floats8<Element, ElementB, K>(w, slots + 2, slots + 2 + kA, &sums[0][0], true);
    else
        multiply_add_floats<Element, ElementB, K>(w, slots + 2, slots + 2 + kA, &sums[0][0], true);
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) tile[row][kColumnOrder[i]] = sums[row][i];
    for (unsigned half = 0; half < 2; ++half) {
        alignas(64) uint16_t bits[64];
        F16::narrow(tile[8 * half], bits, 64);
        store(w, slots[half], bits);
    }
}

template <class ElementA, class ElementB, unsigned K>
void exec_mma_integer(Warp &w, const Op &op) {
    constexpr unsigned kA = K / (2 * ElementA::kPerRegister);
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    Ints8 sums[16];
    multiply<ElementA, ElementB, K>(w, slots + 4, slots + 4 + kA, sums);
    for (unsigned row = 0; row < 16; ++row) {
        const Ints8 c = load_words<Ints8>(w, slots + 4 + kA + kA / 2, row);
        if (op.extra & kMmaSaturate) {
            for (unsigned i = 0; i < 8; ++i)
                sums[row][i] =
                    static_cast<int32_t>(std::clamp<int64_t>(int64_t(sums[row][i]) + c[i], INT32_MIN, INT32_MAX));
        } else {
            using Unsigned = uint32_t __attribute__((vector_size(32)));
            sums[row] = reinterpret_cast<Ints8>(reinterpret_cast<Unsigned>(sums[row]) + reinterpret_cast<Unsigned>(c));
        }
    }
    store_words(w, slots, sums);
}

// All pairs of two integer types, and of the two 8-bit floats, for one depth.
#define INTEGERS(K, S, U, SNAME, UNAME, ...)                                                            \
    {"m16n8k" #K ".row.col.s32." SNAME "." SNAME ".s32", exec_mma_integer<S, S, K>, __VA_ARGS__},       \
        {"m16n8k" #K ".row.col.s32." SNAME "." UNAME ".s32", exec_mma_integer<S, U, K>, __VA_ARGS__},   \
        {"m16n8k" #K ".row.col.s32." UNAME "." SNAME ".s32", exec_mma_integer<U, S, K>, __VA_ARGS__}, { \
        "m16n8k" #K ".row.col.s32." UNAME "." UNAME ".s32", exec_mma_integer<U, U, K>, __VA_ARGS__      \
    }
#define FLOATS8(K, A, B, TYPES, ...)                                                        \
    {"m16n8k" #K ".row.col.f32." TYPES ".f32", exec_mma_float<A, B, K>, 4, __VA_ARGS__, 4}, \
        {"m16n8k" #K ".row.col.f16." TYPES ".f16", exec_mma_half<A, K, B>, 2, __VA_ARGS__, 2}

constexpr MmaForm kForms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", exec_mma_float<HalfElement, HalfElement, 8>, 4, 2, 1, 4},
    {"m16n8k16.row.col.f32.f16.f16.f32", exec_mma_float<HalfElement, HalfElement, 16>, 4, 4, 2, 4},
    {"m16n8k8.row.col.f16.f16.f16.f16", exec_mma_half<HalfElement, 8>, 2, 2, 1, 2},
    {"m16n8k16.row.col.f16.f16.f16.f16", exec_mma_half<HalfElement, 16>, 2, 4, 2, 2},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", exec_mma_float<BfloatElement, BfloatElement, 8>, 4, 2, 1, 4},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", exec_mma_float<BfloatElement, BfloatElement, 16>, 4, 4, 2, 4},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", exec_mma_float<Tf32Element, Tf32Element, 4>, 4, 2, 1, 4},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", exec_mma_float<Tf32Element, Tf32Element, 8>, 4, 4, 2, 4},
    FLOATS8(16, E4m3, E4m3, "e4m3.e4m3", 2, 1),
    FLOATS8(16, E4m3, E5m2, "e4m3.e5m2", 2, 1),
    FLOATS8(16, E5m2, E4m3, "e5m2.e4m3", 2, 1),
    FLOATS8(16, E5m2, E5m2, "e5m2.e5m2", 2, 1),
    FLOATS8(32, E4m3, E4m3, "e4m3.e4m3", 4, 2),
    FLOATS8(32, E4m3, E5m2, "e4m3.e5m2", 4, 2),
    FLOATS8(32, E5m2, E4m3, "e5m2.e4m3", 4, 2),
    FLOATS8(32, E5m2, E5m2, "e5m2.e5m2", 4, 2),
    INTEGERS(16, S8, U8, "s8", "u8", 4, 2, 1, 4),
    INTEGERS(32, S8, U8, "s8", "u8", 4, 4, 2, 4),
    INTEGERS(32, S4, U4, "s4", "u4", 4, 2, 1, 4),
    INTEGERS(64, S4, U4, "s4", "u4", 4, 4, 2, 4),
};

}  // namespace

const MmaForm *find_mma(std::string_view name) {
    for (const MmaForm &form : kForms)
        if (form.name == name) return &form;
    const MmaForm *form = find_mma_small(name);
    return form ? form : find_mma_double(name);
}

}  // namespace warpsim
