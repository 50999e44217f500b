// One attention problem on the host: sizes, layout, and Q, K, V as patterns of 16 or of 8 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention.h"

namespace flash {

enum class Layout { bhnd, bnhd };  // (B,H,N,d) or (B,N,H,d) in memory

struct Problem {
    int B = 1, Hq = 2, Hkv = 2, Nq = 256, Nkv = 256, d_head = 128;
    FlashDtype dtype = FLASH_BF16;
    Layout layout = Layout::bhnd;
    bool causal = false;
    float scale = 0.0f;  // 0: 1 / sqrt(d_head)

    size_t q_elements() const { return size_t(B) * Hq * Nq * d_head; }  // of Q and of O
    size_t rows() const { return size_t(B) * Hq * Nq; }                 // of Q, of all heads
    // Where element (b, h, n, 0) of Q or O (K or V) lies.
    size_t q_offset(int b, int h, int n) const { return offset(b, h, n, Hq, Nq); }
    size_t kv_offset(int b, int h, int n) const { return offset(b, h, n, Hkv, Nkv); }
    // 4 B Hq Nq Nkv d, half of it where causal: the rule of docs/benchmarks.md, whatever the kernel skips.
    double flops() const;
    std::string text() const;
    // Sizes, strides and scale; the pointers are those given.
    FlashParams params(void *Q, void *K, void *V, void *O) const;

  private:
    size_t offset(int b, int h, int n, int H, int N) const;
};

float to_float(uint16_t bits, FlashDtype dtype);
uint16_t from_float(float value, FlashDtype dtype);  // to nearest, ties to even

// O's type where Q, K and V have this one.
constexpr FlashDtype output_type(FlashDtype dtype) {
    return dtype == FLASH_E4M3 ? FLASH_BF16 : dtype;
}

struct Inputs {
    std::vector<uint16_t> Q, K, V;                    // patterns; of e4m3 the low byte
    std::vector<float> Q_scales, K_scales, V_scales;  // of e4m3: [B, Hq], [B, Hkv], [B, Hkv]; else empty
};

// The patterns as they lie in memory: a byte each of e4m3.
std::vector<uint8_t> memory(const std::vector<uint16_t> &patterns, FlashDtype dtype);

// Normally distributed values, rounded to the problem's type; the same for the same seed on every machine. Of e4m3 a
// head's largest element becomes 448, 224 or 149, by turns, and its scale is what makes up for that.
Inputs random_inputs(const Problem &problem, uint64_t seed);

}  // namespace flash
