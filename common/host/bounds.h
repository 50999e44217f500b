// How far an output may be from the reference. The one source: flashladder.core.dtypes reads its lines, too.
#pragma once

#include <algorithm>

namespace flash {

struct Bounds {
    double unit_roundoff;  // half the distance from 1 to the next number of the type: u
    double half_smallest;  // half the smallest positive number: what rounding moves a result by below the normal ones
    double weight;         // P of a row's largest score is at least this: 1, and from stage 21 on 2^-margin
    double element;        // an element may be off by `element` u softmax(S)|V|, by half_smallest, and by `fine` below;
                           // of e4m3 by `element` u |softmax(S) V| besides
    double frobenius;      // relative Frobenius error of the whole
    double room = 1;       // so much of the norm of all `fine` the whole may be off besides
};

inline constexpr Bounds bounds_fp16{
    .unit_roundoff = 0x1p-11, .half_smallest = 0x1p-25, .weight = 0x1p-3, .element = 4, .frobenius = 6e-4};
inline constexpr Bounds bounds_bf16{
    .unit_roundoff = 0x1p-8, .half_smallest = 0x1p-134, .weight = 0x1p-32, .element = 4, .frobenius = 4e-3};
// Of P: O is bf16. `fine` has the errors of the scores besides (score_error_unit), each as if the worst came together.
inline constexpr Bounds bounds_e4m3{.unit_roundoff = 0x1p-4,
                                    .half_smallest = 0x1.1p-7,  // a straight line's error: it makes 2^-6.89 0
                                    .weight = 0x1p8,
                                    .element = 1.5,
                                    .frobenius = 4e-2,
                                    .room = 0.0625};

// What the tensor cores make of e4m3 is exact to 13 bits: of one sum of 32 products and of what there was before, 33
// terms, each is cut to 2^-13 of the largest one, and so is the result. score_group numbers of d_head at a time, a
// score is off by this times the largest of the products and of the sums before and after.
inline constexpr int score_group = 32;
inline constexpr double score_error_unit = 0x1.1p-8;  // 34 * 2^-13

// The sum of P is a column of P V: of the rounded P, and of 4 such sums a tile of 128 keys. So it is off by u times
// itself, but for the largest weight, a power of two; by what is below the normal numbers (`fine`); and by what is cut,
// which is no more than all of the others. Elements are P V over that sum. A log-sum-exp is off by the sum's part.
inline constexpr double sum_error_unit = 0x1.1p-6;  // 4 * 34 * 2^-13

// What rounding a softmax weight to the type may move it by beyond u times itself, which `element` has room for. p is
// exp(score - the row's largest score); what is rounded is P = p times `weight` or more. Among normal numbers that is
// nothing. Below them rounding moves P by up to half_smallest, and by no more than P, for 0 is never further away than
// the nearest. In units of p: min(p, half_smallest / weight) - u p, which is 0 from where the normal numbers begin, of
// e4m3 from 8.5 times that on.
// Where P was rounded while the row's maximum was lower, or is taken for lower, P was larger, and the error is less.
inline double fine(const Bounds &bounds, double p) {
    const double moved = std::min(p, bounds.half_smallest / bounds.weight);
    return std::max(0.0, moved - bounds.unit_roundoff * p);
}

// A row's log-sum-exp may be off by this times (d_head m + Nkv / 16 + 64), m the largest scale |q| |k| of its keys: a
// sum of d_head products in fp32 is off by less than d_head times 2^-23 of the sum of their magnitudes (tensor cores
// round towards zero, so 2^-23 and not 2^-24); of the sum over the keys each term goes through fewer than Nkv / 16 + 64
// additions, rescalings and exponentials, for it is summed by tiles and by several lanes.
inline constexpr double log_sum_exp_unit = 0x1p-23;

}  // namespace flash
