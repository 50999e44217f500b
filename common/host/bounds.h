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

}  // namespace flash
