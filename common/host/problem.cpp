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

Inputs random_inputs(const Problem &problem, uint64_t seed) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](size_t elements) {
        std::vector<uint16_t> values(elements);
        for (uint16_t &value : values) value = from_float(normal(generator), problem.dtype);
        return values;
    };
    Inputs inputs;
    inputs.Q = fill(problem.q_elements());
    inputs.K = fill(problem.kv_elements());
    inputs.V = fill(problem.kv_elements());
    return inputs;
}

}  // namespace flash
