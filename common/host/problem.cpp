#include "problem.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace flash {

size_t Problem::offset(int b, int h, int n, int H, int N) const {
    const size_t row = layout == Layout::bhnd ? (size_t(b) * H + h) * N + n : (size_t(b) * N + n) * H + h;
    return row * d_head;
}

double Problem::flops() const {
    return (causal ? 0.5 : 1.0) * 4.0 * B * Hq * Nq * Nkv * d_head;
}

std::string Problem::text() const {
    std::string heads = Hq == Hkv ? std::to_string(Hq) : std::to_string(Hq) + "/" + std::to_string(Hkv);
    std::string rows = Nq == Nkv ? std::to_string(Nq) : std::to_string(Nq) + "x" + std::to_string(Nkv);
    return std::string(dtype == FLASH_FP16   ? "fp16"
                       : dtype == FLASH_BF16 ? "bf16"
                                             : "e4m3") +
           " B=" + std::to_string(B) + " H=" + heads + " N=" + rows + " d=" + std::to_string(d_head) +
           (layout == Layout::bhnd ? " (B,H,N,d)" : " (B,N,H,d)") + (causal ? " causal" : "");
}

FlashParams Problem::params(void *Q, void *K, void *V, void *O) const {
    const auto tensor = [this](void *data, int H, int N) {
        const int64_t d = d_head;  // first in each product: that of two lengths alone may not fit in int
        return layout == Layout::bhnd ? FlashTensor{data, d * H * N, d * N, d} : FlashTensor{data, d * H * N, d, d * H};
    };
    FlashParams params{};
    params.Q = tensor(Q, Hq, Nq), params.K = tensor(K, Hkv, Nkv), params.V = tensor(V, Hkv, Nkv);
    params.O = tensor(O, Hq, Nq);
    params.B = B, params.Hq = Hq, params.Hkv = Hkv, params.Nq = Nq, params.Nkv = Nkv, params.d_head = d_head;
    params.dtype = dtype;
    params.causal = causal;
    params.scale = scale != 0.0f ? scale : 1.0f / std::sqrt(float(d_head));
    return params;
}

float to_float(uint16_t bits, FlashDtype dtype) {
    if (dtype == FLASH_FP16) return __half2float(__half(__half_raw{bits}));
    if (dtype == FLASH_E4M3) {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), __NV_E4M3)));
    }
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t from_float(float value, FlashDtype dtype) {
    if (dtype == FLASH_FP16) return __half_raw(__float2half_rn(value)).x;
    if (dtype == FLASH_E4M3) return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    return __nv_bfloat16_raw(__float2bfloat16_rn(value)).x;
}

namespace {

// Normally distributed numbers by Marsaglia's polar method. std::normal_distribution is another one in each library;
// these are the same wherever the library's log() is, to the last bits of a double, which rounding to 16 bits takes.
class Normal {
  public:
    explicit Normal(uint64_t seed) : generator_(seed) {}
    float operator()() {
        if (has_second_) {
            has_second_ = false;
            return second_;
        }
        for (;;) {
            const uint64_t bits = generator_();
            const int64_t x = static_cast<int32_t>(bits), y = static_cast<int32_t>(bits >> 32);
            // Exact: in units of 2^-62.
            const uint64_t square = static_cast<uint64_t>(x * x) + static_cast<uint64_t>(y * y);
            if (square == 0 || square >= uint64_t{1} << 62) continue;
            const double s = std::ldexp(static_cast<double>(square), -62);
            const double factor = std::ldexp(std::sqrt(-2 * std::log(s) / s), -31);
            has_second_ = true;
            second_ = static_cast<float>(static_cast<double>(y) * factor);
            return static_cast<float>(static_cast<double>(x) * factor);
        }
    }

  private:
    std::mt19937_64 generator_;
    float second_ = 0;
    bool has_second_ = false;
};

}  // namespace

std::vector<uint8_t> memory(const std::vector<uint16_t> &patterns, FlashDtype dtype) {
    const size_t bytes = dtype == FLASH_E4M3 ? 1 : 2;
    std::vector<uint8_t> result(patterns.size() * bytes);
    for (size_t i = 0; i < patterns.size(); ++i) std::memcpy(&result[i * bytes], &patterns[i], bytes);  // little-endian
    return result;
}

Inputs random_inputs(const Problem &problem, uint64_t seed) {
    Normal normal(seed);
    // offset: where row n of head h of batch b lies.
    const auto fill = [&](std::vector<uint16_t> &patterns, std::vector<float> &scales, int H, int N, auto offset) {
        std::vector<float> values(size_t(problem.B) * H * N * problem.d_head);
        for (float &value : values) value = normal();
        patterns.resize(values.size());
        const auto each_row = [&](int head, auto visit) {
            for (int n = 0; n < N; ++n)
                for (int x = 0; x < problem.d_head; ++x) visit(offset(head / H, head % H, n) + x);
        };
        for (int head = 0; head < problem.B * H; ++head) {
            float scale = 1;
            if (problem.dtype == FLASH_E4M3) {
                float largest = 0;
                each_row(head, [&](size_t i) { largest = std::max(largest, std::fabs(values[i])); });
                scale = largest / 448 * static_cast<float>(head % 3 + 1);
                scales.push_back(scale);
            }
            each_row(head, [&](size_t i) { patterns[i] = from_float(values[i] / scale, problem.dtype); });
        }
    };
    const auto q_offset = [&](int b, int h, int n) { return problem.q_offset(b, h, n); };
    const auto kv_offset = [&](int b, int h, int n) { return problem.kv_offset(b, h, n); };
    Inputs inputs;
    fill(inputs.Q, inputs.Q_scales, problem.Hq, problem.Nq, q_offset);
    fill(inputs.K, inputs.K_scales, problem.Hkv, problem.Nkv, kv_offset);
    fill(inputs.V, inputs.V_scales, problem.Hkv, problem.Nkv, kv_offset);
    return inputs;
}

}  // namespace flash
