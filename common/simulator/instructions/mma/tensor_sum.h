// Sums of products bit for bit as Hopper's tensor cores form them, for mma.sync and wgmma alike (measured on an H200).
//
// The K products of an element and its addend D are one sum. E is the largest exponent among them: a product's is the
// sum of its factors' exponents, not renormalised; zeros do not count; a subnormal number has its format's least
// exponent. Each term is cut toward zero to a multiple of 2^(E - 25), of 8-bit floats 2^(E - 13), and the terms are
// added exactly. For a result of f32 the sum is cut toward zero to fp32, of 8-bit floats to 13 fraction bits; for one
// of f16 it is rounded to nearest even, nothing having been cut. NaN is 0x7fffffff, overflow gives infinity, a sum of
// zeros is +0.
//
// Hopper has no mma.sync of 8-bit floats: ptxas (13.0) widens the factors to f16 and multiplies twice, by k = 0, 1, 4,
// 5, 8, 9, ... onto zero, then by the other k onto that; each is a sum of f16 as above, with a result of D's type. C is
// added to it last, rounded to nearest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpsim {

// A factor's value and its exponent: kNoExponent of zeros, kSpecialExponent of infinities and NaN.
inline constexpr int16_t kNoExponent = -8192, kSpecialExponent = 10000;

struct SumRule {
    bool narrow = false;  // 8-bit floats
    bool odd = false;     // for a result of f16: rounded to odd, so that one more rounding to nearest is right
};

// Exponents of `count` values (a multiple of 16) of a format whose least exponent is `least`.
void factor_exponents(const float *values, int16_t *exponents, size_t count, int least);

inline constexpr unsigned kSumColumns = 32;  // columns that are summed together
// d[row][column] += sums of a[row][i] * b[i][column], i < depth (4, 8, 16 or 32), of kSumColumns columns, or of those
// that the function says. All arrays lie row by row, aligned to 64 bytes; a and a_exponents have `depth` to a row.
// Where `adds` is false the d that was there does not count.
struct SumOperands {
    const float *a = nullptr, *b = nullptr;
    const int16_t *a_exponents = nullptr, *b_exponents = nullptr;
    float *d = nullptr;
    unsigned rows = 0, depth = 0;
    bool adds = true;
};
void exact_sums(const SumOperands &, SumRule);

// The same for 16 rows, 8 columns: mma.sync's. a is followed by room for 16 more values.
void exact_sums_of_8_columns(const SumOperands &, SumRule);

// One element, whatever its numbers are; steps of a and b: 1 and `b_step`. d: null for none.
float exact_sum(const float *a, const int16_t *a_exponents, const float *b, const int16_t *b_exponents, size_t b_step,
                unsigned depth, const float *d, SumRule);

}  // namespace warpsim
