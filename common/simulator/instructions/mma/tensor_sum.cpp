#include "instructions/mma/tensor_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "instructions/arithmetic/numbers.h"
#include "instructions/mma/tensor_sum_vector.h"

namespace warpsim {
namespace {

using namespace tensor;

constexpr unsigned kVectors = kSumColumns / kVector;

// The products of a row, cut and added.
template <unsigned Depth>
inline void add_products(const float *a, const float *b, const Floats (&scale)[kVectors], Words (&sum)[kVectors]) {
#pragma GCC unroll 2
    for (unsigned k = 0; k < Depth; ++k, b += kSumColumns) {
        const Floats mine = a[k] - Floats{};
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors; ++v) sum[v] += cut(mine * load<Floats>(b + v * kVector), scale[v]);
    }
}

// The largest exponents of their products.
template <unsigned Depth>
inline void find_exponents(const int16_t *a, const int16_t *b, int16_t *exponents) {
    WideShorts largest[kVectors / 2];
#pragma GCC unroll 4
    for (unsigned v = 0; v < kVectors / 2; ++v) largest[v] = WideShorts{} + int16_t(2 * kNoExponent);
#pragma GCC unroll 2
    for (unsigned k = 0; k < Depth; ++k, b += kSumColumns) {
        const WideShorts mine = a[k] - WideShorts{};
#pragma GCC unroll 4
        for (unsigned v = 0; v < kVectors / 2; ++v) {
            const WideShorts sum = mine + load<WideShorts>(b + v * 2 * kVector);
            largest[v] = sum > largest[v] ? sum : largest[v];
        }
    }
#pragma GCC unroll 4
    for (unsigned v = 0; v < kVectors / 2; ++v) save(exponents + v * 2 * kVector, largest[v]);
}

// One row, step by step for all columns: within one vector, most steps wait for the one before.
template <SumRule Rule, unsigned Depth>
void sums_of_row(const SumOperands &o, unsigned row) {
    const float *a = o.a + size_t(row) * Depth;
    const int16_t *a_exponents = o.a_exponents + size_t(row) * Depth;
    float *d = o.d + size_t(row) * kSumColumns;
    alignas(64) int16_t exponents[kSumColumns];
    Floats scale[kVectors], addend[kVectors];
    Ints exponent[kVectors], bad[kVectors];
    Words sum[kVectors] = {};
    find_exponents<Depth>(a_exponents, o.b_exponents, exponents);
    for (unsigned v = 0; v < kVectors; ++v) {
        addend[v] = o.adds ? load<Floats>(d + v * kVector) : Floats{};
        const Ints products = __builtin_convertvector(load<Shorts>(exponents + v * kVector), Ints);
        exponent[v] = exponent_of<Rule>(products, addend[v], bad[v]);
        scale[v] = power(kPlaces<Rule> - exponent[v]);
    }
    add_products<Depth>(a, o.b, scale, sum);
    Ints any_bad = {};
    for (unsigned v = 0; v < kVectors; ++v) {
        const Floats result = finish<Rule>(sum[v], addend[v], scale[v], exponent[v], bad[v]);
        any_bad |= bad[v];
        save(d + v * kVector, result);
    }
    if (!any(any_bad)) [[likely]]
        return;
    for (unsigned i = 0; i < kSumColumns; ++i) {
        const float before = addend[i / kVector][i % kVector];
        if (bad[i / kVector][i % kVector])
            d[i] = exact_sum(a, a_exponents, o.b + i, o.b_exponents + i, kSumColumns, Depth, o.adds ? &before : nullptr,
                             Rule);
    }
}

template <SumRule Rule, unsigned Depth>
void sums(const SumOperands &o) {
    static_assert(kSumColumns % (2 * kVector) == 0);
    for (unsigned row = 0; row < o.rows; ++row) sums_of_row<Rule, Depth>(o, row);
}

// 8 columns of one row, or of two.
constexpr unsigned kRows = kVector / 8;

template <class Vector, class T>
inline Vector spread(const T *row, size_t step, unsigned k) {
    if constexpr (kRows == 1) {
        return row[k] - Vector{};
    } else {
        Vector both;
        for (unsigned i = 0; i < kVector; ++i) both[i] = row[i / 8 * step + k];
        return both;
    }
}

template <SumRule Rule, unsigned Depth>
void sums_of_8(const SumOperands &o) {
    alignas(64) float b[Depth][kVector];
    alignas(64) int16_t b_exponents[Depth][kVector];
    for (unsigned k = 0; k < Depth; ++k) {
        for (unsigned copy = 0; copy < kRows; ++copy) {
            std::memcpy(&b[k][8 * copy], o.b + 8 * k, 8 * sizeof(float));
            std::memcpy(&b_exponents[k][8 * copy], o.b_exponents + 8 * k, 8 * sizeof(int16_t));
        }
    }
    for (unsigned row = 0; row < o.rows; row += kRows) {
        const float *a = o.a + size_t(row) * Depth;
        const int16_t *a_exponents = o.a_exponents + size_t(row) * Depth;
        Shorts largest = Shorts{} + int16_t(2 * kNoExponent);
#pragma GCC unroll 32
        for (unsigned k = 0; k < Depth; ++k) {
            const Shorts exponent = spread<Shorts>(a_exponents, Depth, k) + load<Shorts>(b_exponents[k]);
            largest = exponent > largest ? exponent : largest;
        }
        float *d = o.d + 8 * size_t(row);
        const Floats addend = o.adds ? load<Floats>(d) : Floats{};
        Ints bad;
        const Ints exponent = exponent_of<Rule>(__builtin_convertvector(largest, Ints), addend, bad);
        const Floats scale = power(kPlaces<Rule> - exponent);
        Words sum = {};
#pragma GCC unroll 32
        for (unsigned k = 0; k < Depth; ++k) sum += cut(spread<Floats>(a, Depth, k) * load<Floats>(b[k]), scale);
        const Floats result = finish<Rule>(sum, addend, scale, exponent, bad);
        if (!any(bad)) [[likely]] {
            save(d, result);
            continue;
        }
        for (unsigned i = 0; i < kVector; ++i) {
            const size_t mine = i / 8 * Depth, at = i % 8;
            d[i] = bad[i] ? exact_sum(a + mine, a_exponents + mine, o.b + at, o.b_exponents + at, 8, Depth,
                                      o.adds ? d + i : nullptr, Rule)
                          : result[i];
        }
    }
}

template <SumRule Rule, class F>
void with_depth(unsigned depth, F f) {
    switch (depth) {
        case 4:
            return f.template operator()<Rule, 4>();
        case 8:
            return f.template operator()<Rule, 8>();
        case 16:
            return f.template operator()<Rule, 16>();
        default:
            return f.template operator()<Rule, 32>();
    }
}

template <class F>
void with_rule(unsigned depth, SumRule rule, F f) {
    if (rule.narrow && rule.odd) return with_depth<SumRule{true, true}>(depth, f);
    if (rule.narrow) return with_depth<SumRule{true, false}>(depth, f);  // nothing is left below the 13 bits
    if (rule.odd) return with_depth<SumRule{false, true}>(depth, f);
    return with_depth<SumRule{false, false}>(depth, f);
}

}  // namespace

void factor_exponents(const float *values, int16_t *exponents, size_t count, int least) {
    for (size_t i = 0; i < count; i += kVector)
        save(exponents + i, __builtin_convertvector(exponents_of(load<Floats>(values + i), least), Shorts));
}

void exact_sums(const SumOperands &o, SumRule rule) {
    with_rule(o.depth, rule, [&]<SumRule Rule, unsigned Depth>() { sums<Rule, Depth>(o); });
}

void exact_sums_of_8_columns(const SumOperands &o, SumRule rule) {
    with_rule(o.depth, rule, [&]<SumRule Rule, unsigned Depth>() { sums_of_8<Rule, Depth>(o); });
}

float exact_sum(const float *a, const int16_t *a_exponents, const float *b, const int16_t *b_exponents, size_t b_step,
                unsigned depth, const float *d, SumRule rule) {
    constexpr unsigned kMostTerms = 33;
    double terms[kMostTerms] = {};  // products of 11-bit factors are exact, also far beyond fp32's range
    int largest = 2 * kNoExponent;
    unsigned count = 0;
    double special = 0;  // infinities and NaN, as doubles add them
    const auto add = [&](double term, int exponent) {
        if (!std::isfinite(term)) {
            special += term;
        } else if (term != 0) {
            terms[count++] = term;
            largest = std::max(largest, exponent);
        }
    };
    for (unsigned k = 0; k < depth; ++k)
        add(double(a[k]) * double(b[k * b_step]), int(a_exponents[k]) + int(b_exponents[k * b_step]));
    if (d) {
        int exponent = 0;
        if (std::isfinite(*d) && *d != 0) exponent = std::max(std::ilogb(*d), kFloatLeast);
        add(double(*d), exponent);
    }
    if (special != special) return std::bit_cast<float>(kNaN32);
    if (special != 0) return float(special);
    if (!count) return 0;
    const int last = largest - (rule.narrow ? 13 : 25);
    int64_t sum = 0;  // below 2^33
    for (unsigned i = 0; i < count; ++i) sum += static_cast<int64_t>(std::ldexp(terms[i], -last));
    if (sum == 0) return 0;
    uint64_t magnitude = uint64_t(sum < 0 ? -sum : sum);
    // Places below the result's last one: by its precision, or by fp32's least exponent.
    const int top = std::bit_width(magnitude) - 1, precision = rule.narrow && !rule.odd ? 13 : 23;
    const int lost = std::max(std::max(top - precision, kFloatLeast - 23 - last), 0);
    const bool inexact = lost > 63 || (magnitude & ((uint64_t{1} << lost) - 1));
    magnitude = lost > 63 ? 0 : magnitude >> lost;
    if (rule.odd && inexact) magnitude |= 1;
    const double value = std::ldexp(double(magnitude), last + lost);  // exact
    const float result = value >= 0x1p128 ? HUGE_VALF : float(value);
    return sum < 0 ? -result : result;
}

}  // namespace warpsim
