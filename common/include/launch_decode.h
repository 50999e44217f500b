// What the launchers of decode stages share, as launch.h has it for the forward ones: argument checks and their texts,
// and the description. Implemented in common/host/launch_decode.cpp.
#pragma once

#include <cstddef>

#include "attention_decode.h"
#include "kernel_queue.h"

namespace flash {

constexpr int most_decode_rows = 8;    // Nq
constexpr int most_decode_group = 16;  // Hq / Hkv

// What such a stage needs besides its Limits.
struct DecodeTraits {
    size_t workspace_bytes = 0;
    int splits = 1;
    int page_multiple = 1;          // of which page_size is a multiple; 0: no block_table
    bool optional_lengths = false;  // null where all are Nmax
    size_t zeroed_bytes = 0;  // at the beginning of the workspace: zeros before the first call, and again after each
};

// FLASH_OK, or why this problem is wrong (sizes, pointers, strides, scale) or beyond the stage's limits or the GPU's
// age.
FlashStatus check(const FlashDecodeParams *params, const Limits &limits, const DecodeTraits &traits);

// The sizes alone: what flash_describe_decode() needs.
FlashStatus check_sizes(const FlashDecodeParams *params, const Limits &limits, int page_multiple);

// Into how many parts each sequence is divided, so that `heads` times as many blocks fill the device with `blocks` on
// each multiprocessor; at most so many that a part of the longest sequence has least_keys keys.
int splits_for(int64_t heads, int blocks, int Nmax, int least_keys);

// Fills in `description` from the limits, what the stage needs, the launch of the kernel that reads K and V, and what
// the CUDA runtime knows of that kernel.
FlashStatus describe(const Limits &limits, const DecodeTraits &traits, const Launch &main,
                     FlashDecodeDescription *description);

// As KernelQueue::add() with one kernel, which may begin while the launch before it in the stream is ending
// (programmatic dependent launch): what that one may write the kernel touches after ptx::wait_for_launch_before() only.
FlashStatus launch_early(const Launch &launch, void **arguments, cudaStream_t stream);

template <typename... Arguments>
FlashStatus launch_early(const TypedKernel<Arguments...> &kernel, cudaStream_t stream,
                         std::type_identity_t<Arguments>... arguments) {
    void *pointers[] = {const_cast<std::remove_const_t<Arguments> *>(&arguments)...};
    return launch_early(untyped(kernel), pointers, stream);
}

}  // namespace flash
