#include "problem.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
    return std::string(dtype == FLASH_FP16 ? "fp16" : "bf16") + " B=" + std::to_string(B) + " H=" + heads +
           " N=" + rows + " d=" + std::to_string(d_head) + (layout == Layout::bhnd ? " (B,H,N,d)" : " (B,N,H,d)") +
           (causal ? " causal" : "");
}

FlashParams Problem::params(void *Q, void *K, void *V, void *O) const {
    const auto tensor = [this](void *data, int H, int N) {
        const int64_t d = d_head;
        return layout == Layout::bhnd ? FlashTensor{data, H * N * d, N * d, d} : FlashTensor{data, N * H * d, d, H * d};
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
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t from_float(float value, FlashDtype dtype) {
    if (dtype == FLASH_FP16) return __half_raw(__float2half_rn(value)).x;
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

Inputs random_inputs(const Problem &problem, uint64_t seed) {
    Normal normal(seed);
    const auto fill = [&](size_t elements) {
        std::vector<uint16_t> values(elements);
        for (uint16_t &value : values) value = from_float(normal(), problem.dtype);
        return values;
    };
    Inputs inputs;
    inputs.Q = fill(problem.q_elements());
    inputs.K = fill(problem.kv_elements());
    inputs.V = fill(problem.kv_elements());
    return inputs;
}

}  // namespace flash
