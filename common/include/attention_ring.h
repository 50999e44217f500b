// The C ABI of the stages for several GPUs: what attention.h is to the forward ones. One sequence is divided over P
// ranks, each of which has its rows of Q, K, V and O on a GPU of this process. Such a stage is a shared library that
// exports the two functions below and flash_last_error().
#pragma once

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// A piece of work of which a caller may want the time: copies of another rank's K and V, attention, or the merge of
// partial results.
typedef enum FlashRingWork { FLASH_RING_PULL = 0, FLASH_RING_ATTENTION = 1, FLASH_RING_MERGE = 2 } FlashRingWork;

// Is called before (end = 0) and after (end = 1) each piece of work is queued on `stream`, while that stream's device
// is current: the place to record an event. source: the rank whose K and V it is about; -1: those of several ranks.
typedef void (*FlashRingMark)(void *context, int32_t rank, int32_t work, int32_t source, int32_t end,
                              cudaStream_t stream);

// O = softmax(scale * Q Kᵀ) V for every batch and head of the whole sequence, as in FlashParams with Nq = Nkv = N.
typedef struct FlashRingParams {
    int32_t ranks;                  // P
    int32_t B, Hq, Hkv, N, d_head;  // N: rows of the whole sequence, at least one for each piece
    int32_t dtype;                  // FLASH_FP16 or FLASH_BF16
    int32_t causal;                 // 0 or 1: query i sees keys 0 to i
    float scale;                    // usually 1 / sqrt(d_head)
    // Of a stage that lets another stage's library compute attention: that library's file. Null: libstage_23.so beside
    // the stage's own. Stages with an attention kernel of their own refuse anything but null.
    const char *forward;
    const char *configuration;  // as in FlashParams, for that library or the stage's own kernel
    FlashRingMark mark;         // null: nothing is called
    void *mark_context;
} FlashRingParams;

// One rank. Its tensors lie in memory of its device and have the L rows that flash_describe_ring() names, in that
// order. Several ranks may have the same device; with different devices each must reach the memory of all others.
typedef struct FlashRank {
    int32_t device;
    cudaStream_t stream;       // kernels; the call takes its place in the order of this stream
    cudaStream_t copy_stream;  // another stream of the device, for copies from other ranks: no other rank's
    FlashTensor Q;             // [B, Hq,  L, d_head]
    FlashTensor K, V;          // [B, Hkv, L, d_head], without gaps: strides Hkv * L * d_head, L * d_head and d_head
    FlashTensor O;             // [B, Hq,  L, d_head]
    float *log_sum_exp;        // as in FlashParams: null, or [B, Hq, L] without gaps
    // Scratch on the device, flash_describe_ring() tells how much; null where it asks for none. A call finds in it
    // whatever it may be, unless the description says zeroed_workspace. Calls on the same streams can share it.
    void *workspace;
    size_t workspace_bytes;
} FlashRank;

typedef struct FlashRingPiece {
    int32_t first, rows;  // of the whole sequence
} FlashRingPiece;

// What one rank has and does.
typedef struct FlashRingDescription {
    const char *title;    // never null
    int32_t min_compute;  // 80 for compute capability 8.0
    FlashRingPiece
        pieces[2];  // L = pieces[0].rows + pieces[1].rows; of a stage with one piece a rank the second is empty
    size_t workspace_bytes;
    int32_t zeroed_workspace;  // 1: all zeros before the first call; what a call leaves there is right for the next
    int64_t pulled_bytes;      // of K and V that the rank copies from other ranks
    int64_t scores;            // numbers of S that the rank needs, for one head of Q of one batch
} FlashRingDescription;

// Checks the parameters and queues the work of all ranks; waits for none of it. `ranks` has params->ranks elements.
// Each rank's inputs are ready when its `stream` reaches the call, whichever of the streams is first, and when a
// `stream` has passed the call the rank's O is there, and no other rank reads its inputs and its workspace any more.
// The device that was current is so again at the return. Where it fails after the checks, a part of the work may be
// queued.
FlashStatus flash_ring(const FlashRingParams *params, const FlashRank *ranks);

// Fills in `description` for one of the ranks (pointers are not looked at). The kernels are those for the device that
// is current.
FlashStatus flash_describe_ring(const FlashRingParams *params, int32_t rank, FlashRingDescription *description);

#ifdef __cplusplus
}
#endif
