// A stage on the host (bf16 only) with the ABI of attention.h. PLANT plants an error that verification must find:
// 1 no scale, 2 the last key is skipped, 3 the last row stays unwritten, 4 heads swapped, 5 a future key leaks in.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention.h"

#ifndef PLANT
#define PLANT 0
#endif

static const char *error = "";

static float load(const FlashTensor &t, int b, int h, int n, int x) {
    auto bits = static_cast<const uint16_t *>(t.data)[b * t.stride_batch + h * t.stride_head + n * t.stride_row + x];
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
    description->stage = 1;
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
    if (p->dtype != FLASH_BF16) return error = "this stage knows bf16 only", FLASH_UNSUPPORTED;
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
                    top = std::max(top, weight[m] *= scale);
                }
                for (double &w : weight) sum += w = std::exp(w - top);
                for (int x = 0; x < p->d_head; ++x) {
                    double out = 0;
                    for (int m = 0; m < keys; ++m) out += weight[m] / sum * load(p->V, b, kv, m, x);
                    store(p->O, b, h, n, x, float(out));
                }
            }
    return FLASH_OK;
}
