// The C ABI of the decode stages: what attention.h is to the forward ones. A few query rows of each sequence against
// its cache of keys and values. Such a stage is a shared library that exports the two functions below and
// flash_last_error().
#pragma once

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// O = softmax(scale * Q Kᵀ) V for the first lengths[b] keys of sequence b. Head h of Q uses head h / (Hq / Hkv) of K
// and V. The rows of Q are the sequence's last ones: row i sees keys 0 to i + lengths[b] - Nq, so that the last row
// sees all. A row that sees no key has O = 0 and a log-sum-exp of -infinity. What K and V hold behind a length does not
// count.
typedef struct FlashDecodeParams {
    FlashTensor Q;     // [B, Hq,  Nq,   d_head]
    FlashTensor K, V;  // [B, Hkv, Nmax, d_head], or pages: [pages, Hkv, page_size, d_head]
    FlashTensor O;     // [B, Hq,  Nq,   d_head]
    // Null, or [B, max_pages] in device memory: key n of sequence b is row n % page_size of page
    // block_table[b * max_pages + n / page_size], and stride_batch of K and V leads from one page to the next. Only
    // the entries of keys before the length are read.
    const int32_t *block_table;
    int32_t pages, page_size, max_pages;  // with a table; else 0
    // [B] in device memory, each from 0 to Nmax. Null, which the description allows: all are Nmax.
    const int32_t *lengths;
    int32_t B, Hq, Hkv, Nq, Nmax, d_head;  // Nq is at most 8, Hq / Hkv at most 16
    int32_t dtype;                         // FLASH_FP16 or FLASH_BF16
    float scale;                           // usually 1 / sqrt(d_head)
    float *log_sum_exp;                    // as in FlashParams: null, or [B, Hq, Nq] without gaps
    // Scratch in device memory, flash_describe_decode() tells how much; null where it asks for none. A call finds in
    // it whatever it may be, but for the description's zeroed_bytes; calls of one stream can share it.
    void *workspace;
    size_t workspace_bytes;
    const char *configuration;  // as in FlashParams
} FlashDecodeParams;

typedef struct FlashDecodeDescription {
    FlashDescription main;     // of the kernel that reads K and V; workspace_bytes is the whole stage's
    int32_t splits;            // parts that a sequence is divided into
    int32_t page_multiple;     // page_size must be a multiple of it; 0: the stage takes no block_table
    int32_t optional_lengths;  // 1: lengths may be null
    // So many bytes at the beginning of the workspace are zeros before the first call; each call leaves zeros there.
    size_t zeroed_bytes;
} FlashDecodeDescription;

// Checks the parameters and queues the stage's kernels on `stream`; does not wait for them, so that a CUDA graph can
// capture the call. Sizes, pointers, strides and the scale are checked. What lies in device memory is not: a length
// above Nmax or below 0, and an entry of block_table that is no page, read or write what they must not.
FlashStatus flash_decode(const FlashDecodeParams *params, cudaStream_t stream);

// Fills in `description` for the problem in `params` (of pointers only whether block_table and lengths are null
// counts, strides do not). The splits are those of the device that is current.
FlashStatus flash_describe_decode(const FlashDecodeParams *params, FlashDecodeDescription *description);

#ifdef __cplusplus
}
#endif
