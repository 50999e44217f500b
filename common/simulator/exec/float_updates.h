// What atomic updates and reductions in the background make of floats, as bits: the old value, the operand, and two
// more that the operations of other types have. fp32 add flushes subnormals in global memory (the last argument), as
// the manual says; 16-bit floats keep them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "exec/half.h"

namespace warpsim {

inline float flush(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

inline float half_value(uint16_t bits, bool bf16) {
    return bf16 ? bf16_to_float(bits) : f16_to_float(bits);
}
inline uint16_t half_bits(float x, bool bf16) {
    return bf16 ? float_to_bf16(x) : float_to_f16(x);
}

struct AddF32 {
    static uint32_t of(uint32_t old, uint32_t b, uint32_t, bool global) {
        float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
        if (global) x = flush(x), y = flush(y);
        const float sum = canonical(x + y);
        return std::bit_cast<uint32_t>(global ? flush(sum) : sum);
    }
};
struct AddF64 {
    static uint64_t of(uint64_t old, uint64_t b, uint64_t, bool) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    }
};
// A sum in fp32 rounds once more to the same 16 bits as a sum rounded at once: 24 bits are at least twice 11 and two
// more.
template <bool bf16>
struct AddHalf {
    static uint16_t of(uint16_t old, uint16_t b, uint16_t, bool) {
        return half_bits(half_value(old, bf16) + half_value(b, bf16), bf16);
    }
};
template <bool bf16, bool max>
struct PickHalf {
    static uint16_t of(uint16_t old, uint16_t b, uint16_t, bool) {
        const float x = half_value(old, bf16), y = half_value(b, bf16);
        if (x != x && y != y) return kNaN16;
        if (x != x || y != y) return x != x ? b : old;
        if (x == y) return max ? old & b : old | b;  // +0 is larger than -0
        return (max ? x < y : y < x) ? b : old;
    }
};

}  // namespace warpsim
