// The C ABI of the stages that compute gradients: what attention.h is to the forward ones. Such a stage is a shared
// library that exports the two functions below and flash_last_error().
#pragma once

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// The gradients of a sum L of all that is made of O = softmax(scale * Q Kᵀ) V, for dO = dL/dO:
//   P = exp(scale * Q Kᵀ - log_sum_exp)      D = rowsum(dO * O)      dS = P * (dO Vᵀ - D)
//   dV = Pᵀ dO      dQ = scale * dS K        dK = scale * dSᵀ Q
// Head h of Q uses head h / (Hq / Hkv) of K and V, so dK and dV of a head are sums over a group's heads of Q.
// Masks, strides and alignments are those of FlashParams; a row of Q that sees no key has dQ = 0.
typedef struct FlashBackwardParams {
    FlashTensor Q;       // [B, Hq,  Nq,  d_head]
    FlashTensor K, V;    // [B, Hkv, Nkv, d_head]
    FlashTensor O, dO;   // [B, Hq,  Nq,  d_head]; O as flash_forward() wrote it
    FlashTensor dQ;      // [B, Hq,  Nq,  d_head], written
    FlashTensor dK, dV;  // [B, Hkv, Nkv, d_head], written
    int32_t B, Hq, Hkv, Nq, Nkv, d_head;
    int32_t dtype;             // FLASH_FP16 or FLASH_BF16, of all eight tensors
    int32_t causal;            // 0 or 1
    float scale;               // usually 1 / sqrt(d_head)
    const float *log_sum_exp;  // [B, Hq, Nq] without gaps, as flash_forward() wrote it for the same problem
    // Scratch in device memory, flash_describe_backward() tells how much; null where it asks for none.
    void *workspace;
    size_t workspace_bytes;
    const char *configuration;  // as in FlashParams
} FlashBackwardParams;

typedef struct FlashBackwardDescription {
    FlashDescription main;  // of the kernel that computes the products; workspace_bytes is the whole stage's
    // 1: the workspace must be all zeros before the first call, and each call leaves zeros behind, so that calls of one
    // stream can share it. 0: what lies in it does not matter.
    int32_t zeroed_workspace;
    int32_t deterministic;  // 1: the same inputs give the same bits in every run
} FlashBackwardDescription;

// Checks the parameters and queues the stage's kernels on `stream`; does not wait for them.
FlashStatus flash_backward(const FlashBackwardParams *params, cudaStream_t stream);

// Fills in `description` for the problem in `params` (pointers and strides are not looked at).
FlashStatus flash_describe_backward(const FlashBackwardParams *params, FlashBackwardDescription *description);

#ifdef __cplusplus
}
#endif
