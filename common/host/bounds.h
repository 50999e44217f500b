// How far an output may be from the reference. The one source: flashladder.core.dtypes reads its lines, too.
#pragma once

namespace flash {

struct Bounds {
    double unit_roundoff;  // half the distance from 1 to the next number of the type: u
    double half_smallest;  // half the smallest positive number: what rounding moves a result by below the normal ones
    double element;        // an element may be off by `element` u softmax(S)|V|, and by half_smallest
    double frobenius;      // relative Frobenius error of the whole
};

inline constexpr Bounds bounds_fp16{
    .unit_roundoff = 0x1p-11, .half_smallest = 0x1p-25, .element = 4, .frobenius = 6e-4};
inline constexpr Bounds bounds_bf16{
    .unit_roundoff = 0x1p-8, .half_smallest = 0x1p-134, .element = 4, .frobenius = 4e-3};

// A row's log-sum-exp may be off by this times (d_head m + Nkv / 16 + 64), m the largest scale |q| |k| of its keys: a
// sum of d_head products in fp32 is off by less than d_head times 2^-23 of the sum of their magnitudes (tensor cores
// round towards zero, so 2^-23 and not 2^-24); of the sum over the keys each term goes through fewer than Nkv / 16 + 64
// additions, rescalings and exponentials, for it is summed by tiles and by several lanes.
inline constexpr double log_sum_exp_unit = 0x1p-23;

}  // namespace flash
