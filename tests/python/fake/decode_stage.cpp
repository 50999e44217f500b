// A decode stage on the host (bf16) with the ABI of attention_decode.h, and the kernel that only reads. PLANT plants an
// error that verification must find: 1 no scale, 2 the last key is skipped, 3 pages are taken in their own order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention_decode.h"

#ifndef PLANT
#define PLANT 0
#endif

static float value(const FlashTensor &t, int b, int h, int n, int x) {
    const uint16_t bits =
        static_cast<const uint16_t *>(t.data)[b * t.stride_batch + h * t.stride_head + n * t.stride_row + x];
    const uint32_t wide = uint32_t(bits) << 16;
    float found;
    std::memcpy(&found, &wide, 4);
    return found;
}

static float cached(const FlashDecodeParams *p, const FlashTensor &t, int b, int h, int n, int x) {
    if (!p->block_table) return value(t, b, h, n, x);
    const int place = b * p->max_pages + n / p->page_size;
    return value(t, PLANT == 3 ? place % p->pages : p->block_table[place], h, n % p->page_size, x);
}

extern "C" FlashStatus flash_describe_decode(const FlashDecodeParams *, FlashDecodeDescription *description) {
    *description = {};
    description->main.title = "fake";
    description->main.registers = 42;
    description->main.workspace_bytes = 64;
    description->splits = 3;
    return FLASH_OK;
}

extern "C" const char *flash_last_error() {
    return "no workspace";
}

extern "C" FlashStatus flash_decode(const FlashDecodeParams *p, cudaStream_t) {
    if (!p->workspace) return FLASH_INVALID_ARGUMENT;
    for (int b = 0; b < p->B; ++b)
        for (int h = 0; h < p->Hq; ++h)
            for (int n = 0; n < p->Nq; ++n) {
                const int kv = h / (p->Hq / p->Hkv), keys = p->lengths[b] + 1 + n - p->Nq - (PLANT == 2);
                std::vector<double> weight(std::max(keys, 0));
                double top = -INFINITY, sum = 0;
                for (int m = 0; m < keys; ++m) {
                    for (int x = 0; x < p->d_head; ++x)
                        weight[m] += value(p->Q, b, h, n, x) * cached(p, p->K, b, kv, m, x);
                    top = std::max(top, weight[m] *= PLANT == 1 ? 1.0f : p->scale);
                }
                for (double &one : weight) sum += one = std::exp(one - top);
                for (int x = 0; x < p->d_head; ++x) {
                    double out = 0;
                    for (int m = 0; m < keys; ++m) out += weight[m] / sum * cached(p, p->V, b, kv, m, x);
                    const float rounded = static_cast<float>(out);
                    uint32_t wide;
                    std::memcpy(&wide, &rounded, 4);
                    wide += 0x7fff + (wide >> 16 & 1);
                    static_cast<uint16_t *>(
                        p->O.data)[b * p->O.stride_batch + h * p->O.stride_head + n * p->O.stride_row + x] = wide >> 16;
                }
            }
    return FLASH_OK;
}

extern "C" int read_cache(const void *K, const void *V, size_t bytes, void *sink, cudaStream_t) {
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; ++i)
        sum += static_cast<const unsigned char *>(K)[i] ^ static_cast<const unsigned char *>(V)[i];
    *static_cast<unsigned *>(sink) = sum;
    return 0;
}
