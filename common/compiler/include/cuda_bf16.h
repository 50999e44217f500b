#pragma once
#include <cuda_runtime.h>

struct __nv_bfloat16 {
    __bf16 value;
    __nv_bfloat16() = default;
    __device__ __nv_bfloat16(float x) : value(x) {}
    __device__ operator float() const { return value; }
};
struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

FLASH_DEVICE float __bfloat162float(__nv_bfloat16 x) {
    return x.value;
}
FLASH_DEVICE __nv_bfloat16 __float2bfloat16(float x) {
    return x;
}
FLASH_DEVICE __nv_bfloat16 __float2bfloat16_rn(float x) {
    return x;
}
FLASH_DEVICE float2 __bfloat1622float2(__nv_bfloat162 x) {
    return {x.x, x.y};
}
FLASH_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return {low, high};
}
FLASH_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return __builtin_bit_cast(__nv_bfloat162, both);
}
