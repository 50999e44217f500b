// A stage on the host (bf16) with the ABI of attention_backward.h, and the forward pass that it needs. PLANT plants an
// error that must be found: 1 no scale in dQ, 2 the last row of dK stays unwritten, 3 no D, 4 a workspace that the call
// does not leave zeroed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention_backward.h"

#ifndef PLANT
#define PLANT 0
#endif

static const char *error = "";

static int64_t place(const FlashTensor &t, int b, int h, int n, int x) {
    return b * t.stride_batch + h * t.stride_head + n * t.stride_row + x;
}

static double load(const FlashTensor &t, int b, int h, int n, int x) {
    const uint32_t wide = uint32_t(static_cast<const uint16_t *>(t.data)[place(t, b, h, n, x)]) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

static void store(const FlashTensor &t, int b, int h, int n, int x, float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    wide += 0x7fff + (wide >> 16 & 1);
    static_cast<uint16_t *>(t.data)[place(t, b, h, n, x)] = wide >> 16;
}

static double product(const FlashTensor &one, int h, int i, const FlashTensor &other, int kv, int j, int b, int d) {
    double sum = 0;
    for (int x = 0; x < d; ++x) sum += load(one, b, h, i, x) * load(other, b, kv, j, x);
    return sum;
}

template <typename Params>
static int keys(const Params &p, int row) {
    return p.causal ? std::max(0, std::min(p.Nkv, row + 1 + p.Nkv - p.Nq)) : p.Nkv;
}

extern "C" const char *flash_last_error() {
    return error;
}

extern "C" FlashStatus flash_forward(const FlashParams *p, cudaStream_t) {
    for (int b = 0; b < p->B; ++b)
        for (int h = 0; h < p->Hq; ++h)
            for (int i = 0; i < p->Nq; ++i) {
                const int kv = h / (p->Hq / p->Hkv);
                std::vector<double> weights;
                double sum = 0;
                for (int j = 0; j < keys(*p, i); ++j) {
                    weights.push_back(std::exp(p->scale * product(p->Q, h, i, p->K, kv, j, b, p->d_head)));
                    sum += weights.back();
                }
                p->log_sum_exp[(b * p->Hq + h) * p->Nq + i] = std::log(sum);
                for (int x = 0; x < p->d_head; ++x) {
                    double out = 0;
                    for (size_t j = 0; j < weights.size(); ++j) out += weights[j] / sum * load(p->V, b, kv, j, x);
                    store(p->O, b, h, i, x, out);
                }
            }
    return FLASH_OK;
}

extern "C" FlashStatus flash_describe(const FlashParams *, FlashDescription *description) {
    *description = {};
    return FLASH_OK;
}

extern "C" FlashStatus flash_describe_backward(const FlashBackwardParams *p, FlashBackwardDescription *description) {
    if (p->Nq % 8) return error = "Nq must be a multiple of 8", FLASH_UNSUPPORTED;
    *description = {};
    description->main.title = "fake";
    description->main.registers = 43;
    description->main.workspace_bytes = 64;
    description->zeroed_workspace = 1;
    return FLASH_OK;
}

extern "C" FlashStatus flash_backward(const FlashBackwardParams *p, cudaStream_t) {
    if (!p->workspace) return error = "no workspace", FLASH_INVALID_ARGUMENT;
    const int d = p->d_head, group = p->Hq / p->Hkv;
    const char *left = static_cast<const char *>(p->workspace);
    for (int i = 0; i < 64; ++i)
        if (left[i]) return error = "the workspace is not zero", FLASH_INVALID_ARGUMENT;
    for (int b = 0; b < p->B; ++b)
        for (int kv = 0; kv < p->Hkv; ++kv) {
            std::vector<double> dK(p->Nkv * d), dV(p->Nkv * d);
            for (int h = kv * group; h < (kv + 1) * group; ++h)
                for (int i = 0; i < p->Nq; ++i) {
                    const double D = PLANT == 3 ? 0 : product(p->dO, h, i, p->O, h, i, b, d);
                    std::vector<double> dQ(d);
                    for (int j = 0; j < keys(*p, i); ++j) {
                        const double S = p->scale * product(p->Q, h, i, p->K, kv, j, b, d);
                        const double P = std::exp(S - p->log_sum_exp[(b * p->Hq + h) * p->Nq + i]);
                        const double dS = P * (product(p->dO, h, i, p->V, kv, j, b, d) - D);
                        for (int x = 0; x < d; ++x) {
                            dQ[x] += (PLANT == 1 ? 1 : p->scale) * dS * load(p->K, b, kv, j, x);
                            dK[j * d + x] += p->scale * dS * load(p->Q, b, h, i, x);
                            dV[j * d + x] += P * load(p->dO, b, h, i, x);
                        }
                    }
                    for (int x = 0; x < d; ++x) store(p->dQ, b, h, i, x, dQ[x]);
                }
            for (int j = 0; j < p->Nkv; ++j)
                for (int x = 0; x < d; ++x) {
                    if (PLANT != 2 || j < p->Nkv - 1) store(p->dK, b, kv, j, x, dK[j * d + x]);
                    store(p->dV, b, kv, j, x, dV[j * d + x]);
                }
        }
    if (PLANT == 4) static_cast<char *>(p->workspace)[5] = 1;
    return FLASH_OK;
}
