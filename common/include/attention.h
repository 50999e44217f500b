// The C ABI of every stage: one parameter struct, one entry, one description, one error text.
// A stage is a shared library that exports the three functions below, and nothing else of its own.
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Element type of Q, K, V and O. Softmax and accumulation are fp32 in every stage. FLASH_E4M3: Q, K and V have a byte
// an element (1 sign, 4 exponent, 3 fraction bits; up to 448) and a factor for each head; O is bf16.
typedef enum FlashDtype { FLASH_FP16 = 0, FLASH_BF16 = 1, FLASH_E4M3 = 2 } FlashDtype;

typedef enum FlashStatus {
    FLASH_OK = 0,
    FLASH_INVALID_ARGUMENT = 1,  // wrong for every stage: null or misaligned pointer, negative size, ...
    FLASH_UNSUPPORTED = 2,       // a limit of this stage: a tile edge, a head dim, causal, ...
    FLASH_DEVICE_TOO_OLD = 3,    // the GPU's compute capability is below the stage's minimum
    FLASH_CUDA_ERROR = 4,        // the CUDA runtime refused; flash_last_error() has its text
} FlashStatus;

// Where one of the four tensors lives: element (b, h, n, x) is at
// data[b * stride_batch + h * stride_head + n * stride_row + x]; strides count elements.
// (B,H,N,d) and (B,N,H,d) differ only in their strides. The head dimension is contiguous.
typedef struct FlashTensor {
    void *data;
    int64_t stride_batch, stride_head, stride_row;
} FlashTensor;

// O = softmax(scale * Q Kᵀ) V for every batch and head. Head h of Q uses head h / (Hq / Hkv) of K and V.
// Causal: query i sees keys 0 to i + Nkv - Nq, so that the last one sees all; a row of O that sees no key is 0.
typedef struct FlashParams {
    FlashTensor Q;  // [B, Hq,  Nq,  d_head]
    FlashTensor K;  // [B, Hkv, Nkv, d_head]
    FlashTensor V;  // [B, Hkv, Nkv, d_head]
    FlashTensor O;  // [B, Hq,  Nq,  d_head]
    // Lengths are at most 2^30.
    int32_t B, Hq, Hkv, Nq, Nkv, d_head;
    int32_t dtype;   // a FlashDtype
    int32_t causal;  // 0 or 1
    float scale;     // usually 1 / sqrt(d_head)
    // Null, or [B, Hq, Nq] without gaps in device memory whatever O's strides, 4-byte aligned: for each row the natural
    // logarithm of the sum of exp(scale * score) over the keys that it sees, -infinity if it sees none. A stage for
    // which flash_describe() says supports_log_sum_exp = 0 refuses anything but null.
    float *log_sum_exp;
    // Scratch in device memory, flash_describe() tells how much; null where it asks for none.
    void *workspace;
    size_t workspace_bytes;
    // Null: the stage chooses. Else the short form of an instance that is built in, e.g. "(BF16, 128, 128, 64, 4):
    // async+eager+swizzled+load_2_2_2_tiles". A stage for which flash_describe() gives no configuration refuses
    // anything but null.
    const char *configuration;
    // Of FLASH_E4M3: device memory without gaps, 4-byte aligned, [B, Hq], [B, Hkv] and [B, Hkv]: what the elements of a
    // batch's head are multiplied by, finite and above 0. Of the other types: null.
    const float *Q_scales, *K_scales, *V_scales;
} FlashParams;

// What a stage would do with a problem, and what it can do at all.
typedef struct FlashDescription {
    const char *title;     // never null
    int32_t min_compute;   // 80 for compute capability 8.0
    int32_t Br, Bc;        // rows of Q and of K/V that one block works on at a time; 0: no such tile
    int32_t threads;       // per block, of the (last) kernel
    int32_t shared_bytes;  // static and dynamic, per block
    int32_t grid[3];       // of the (last) kernel, for the problem given
    int32_t supports_log_sum_exp;
    int32_t multiple_Nq, multiple_Nkv;  // lengths must be multiples of these
    int32_t supports_causal, supports_gqa;
    int32_t positive_scale;     // 1: scale must be above 0
    int32_t registers;          // per thread, as the driver reports; 0 if unknown (no GPU)
    int32_t spill_bytes;        // local memory per thread
    int32_t resident_blocks;    // per multiprocessor
    size_t workspace_bytes;     // scratch that flash_forward needs for this problem
    const char *configuration;  // the short form of the instance that runs the problem; null: the stage has one kernel
} FlashDescription;

// Checks the parameters and queues the stage's kernels on `stream`; does not wait for them.
FlashStatus flash_forward(const FlashParams *params, cudaStream_t stream);

// Fills in `description` for the problem in `params` (pointers and strides are not looked at).
FlashStatus flash_describe(const FlashParams *params, FlashDescription *description);

// The text of this thread's last status other than FLASH_OK; never null.
const char *flash_last_error(void);

#ifdef __cplusplus
}
#endif
