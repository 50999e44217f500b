// Conversions between fp32 and the two 16-bit types, under one name for both.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// A number of a byte: 1 sign, 4 exponent, 3 fraction bits. wgmma multiplies them.
struct e4m3 {
    uint8_t bits;
};

__device__ inline float to_float(__half x) {
    return __half2float(x);
}
__device__ inline float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

// x rounded to the nearest T, ties to even.
template <typename T>
__device__ T from_float(float x);
template <>
__device__ inline __half from_float<__half>(float x) {
    return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

// Two values rounded to T side by side in a register, `low` in the low half.
template <typename T>
__device__ uint32_t pack(float low, float high);
template <>
__device__ inline uint32_t pack<__half>(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&pair);
}
template <>
__device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&pair);
}

// Two neighbouring elements, which start on a multiple of 4 bytes, in one access.
__device__ inline float2 to_float2(const __half *two) {
    return __half22float2(*reinterpret_cast<const __half2 *>(two));
}
__device__ inline float2 to_float2(const __nv_bfloat16 *two) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(two));
}
