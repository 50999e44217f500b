#pragma once
#include <cuda_runtime.h>

struct __half {
    _Float16 value;
    __half() = default;
    __device__ __half(float x) : value(x) {}
    __device__ operator float() const { return value; }
};
struct __align__(4) __half2 {
    __half x, y;
};
typedef __half half;
typedef __half2 half2;

FLASH_DEVICE float __half2float(__half x) {
    return x.value;
}
FLASH_DEVICE __half __float2half(float x) {
    return x;
}
FLASH_DEVICE __half __float2half_rn(float x) {
    return x;
}
FLASH_DEVICE float2 __half22float2(__half2 x) {
    return {x.x, x.y};
}
FLASH_DEVICE __half2 __halves2half2(__half low, __half high) {
    return {low, high};
}
FLASH_DEVICE __half2 __floats2half2_rn(float low, float high) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return __builtin_bit_cast(__half2, both);
}
