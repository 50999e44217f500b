// A stage on the host (bf16, or e4m3 with scales) with the ABI of attention.h. PLANT plants an error that verification
// must find: 1 no scale, 2 the last key is skipped, 3 the last row stays unwritten, 4 heads swapped, 5 a future key
// leaks in.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention.h"

#ifndef PLANT
#define PLANT 0
#endif

static const char *error = "";

static bool bytes = false;  // Q, K and V are e4m3

static float load(const FlashTensor &t, int b, int h, int n, int x) {
    int64_t at = b * t.stride_batch + h * t.stride_head + n * t.stride_row + x;
    if (bytes) {
        int code = static_cast<const uint8_t *>(t.data)[at], exponent = code >> 3 & 15, fraction = code & 7;
        float size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
        return code & 128 ? -size : size;
    }
    auto bits = static_cast<const uint16_t *>(t.data)[at];
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

static void store(const FlashTensor &t, int b, int h, int n, int x, float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    wide += 0x7fff + (wide >> 16 & 1);
    static_cast<uint16_t *>(t.data)[b * t.stride_batch + h * t.stride_head + n * t.stride_row + x] = wide >> 16;
}

extern "C" FlashStatus flash_describe(const FlashParams *p, FlashDescription *description) {
    *description = {};
    description->title = "fake";
    description->Br = description->Bc = 16;
    description->threads = 128;
    description->grid[0] = p->Nq / 16;
    description->multiple_Nq = description->multiple_Nkv = 16;
    description->registers = 42;
    description->workspace_bytes = 64;
    return FLASH_OK;
}

extern "C" const char *flash_last_error() {
    return error;
}

extern "C" FlashStatus flash_forward(const FlashParams *p, cudaStream_t) {
    if (p->dtype == FLASH_FP16) return error = "this stage knows bf16 and e4m3 only", FLASH_UNSUPPORTED;
    bytes = p->dtype == FLASH_E4M3;
    if (p->Nq % 16) return error = "Nq must be a multiple of 16", FLASH_UNSUPPORTED;
    if (!p->workspace) return error = "no workspace", FLASH_INVALID_ARGUMENT;
    float scale = PLANT == 1 ? 1.0f : p->scale;
    for (int b = 0; b < p->B; ++b)
        for (int h = 0; h < p->Hq; ++h)
            for (int n = 0; n < p->Nq - (PLANT == 3); ++n) {
                int kv = h / (p->Hq / p->Hkv);
                if (PLANT == 4) kv = p->Hkv - 1 - kv;
                int keys = p->causal ? std::min(p->Nkv, n + 1 + p->Nkv - p->Nq + (PLANT == 5)) : p->Nkv;
                if (PLANT == 2) keys -= 1;
                std::vector<double> weight(keys);
                double top = -INFINITY, sum = 0;
                for (int m = 0; m < keys; ++m) {
                    for (int x = 0; x < p->d_head; ++x) weight[m] += load(p->Q, b, h, n, x) * load(p->K, b, kv, m, x);
                    if (bytes) weight[m] *= p->Q_scales[b * p->Hq + h] * p->K_scales[b * p->Hkv + kv];
                    top = std::max(top, weight[m] *= scale);
                }
                for (double &w : weight) sum += w = std::exp(w - top);
                for (int x = 0; x < p->d_head; ++x) {
                    double out = 0;
                    for (int m = 0; m < keys; ++m) out += weight[m] / sum * load(p->V, b, kv, m, x);
                    if (bytes) out *= p->V_scales[b * p->Hkv + kv];
                    store(p->O, b, h, n, x, float(out));
                }
            }
    return FLASH_OK;
}
