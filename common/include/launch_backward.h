// What the launchers of backward stages share, as launch.h has it for the forward ones: argument checks and their
// texts, and the description. Implemented in common/host/launch_backward.cpp.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "attention_backward.h"
#include "kernel_queue.h"

namespace flash {

// What such a stage needs besides its Limits, and says of its results.
struct BackwardTraits {
    size_t workspace_bytes = 0;
    bool zeroed_workspace = false;  // all zeros before the first call, and again after each
    bool deterministic = false;
};

// FLASH_OK, or why this problem is wrong (sizes, pointers, strides, scale) or beyond the stage's limits or the GPU's
// age.
FlashStatus check(const FlashBackwardParams *params, const Limits &limits, const BackwardTraits &traits);

// The sizes alone: what flash_describe_backward() needs.
FlashStatus check_sizes(const FlashBackwardParams *params, const Limits &limits);

// Fills in `description` from the limits, what the stage needs, the launch of the kernel that computes the products,
// and what the CUDA runtime knows of that kernel.
FlashStatus describe(const Limits &limits, const BackwardTraits &traits, const Launch &main,
                     FlashBackwardDescription *description);

// The sizes of a tensor [B, heads, rows, d_head] and its type.
struct TensorShape {
    int B, heads, rows, d_head, dtype;
    bool read_once = false;  // then L2 brings the bytes that are asked for, else 256 where a part of them is
};

// The map of one tensor, laid out as tensor_maps.h says: a box is `box_rows` rows of one head, in panels of 64 columns
// (of 128 for e4m3) whose rows are swizzled. `name` is for messages.
FlashStatus make_tensor_map(const char *name, const FlashTensor &tensor, const TensorShape &shape, int box_rows,
                            CUtensorMap &map);

}  // namespace flash
