// The checks and the launch that forward and backward stages share, each with its message; for common/host alone.
#pragma once

#include "launch.h"

namespace flash {

FlashStatus cuda_failure(const char *what, cudaError_t error);

FlashStatus check_tensor(const char *name, const FlashTensor &tensor, int element_bytes);

FlashStatus check_scale(float scale, const Limits &limits);

// Null is 4-byte aligned.
FlashStatus check_log_sum_exp(const float *log_sum_exp);

// described_by: the function that tells how many bytes are needed, for the message.
FlashStatus check_workspace(const void *given, size_t given_bytes, size_t needed_bytes, const Limits &limits,
                            const char *described_by);

FlashStatus check_device(const Limits &limits);

FlashStatus launch_kernel(const void *kernel, dim3 grid, int threads, size_t shared_bytes, void **arguments,
                          cudaStream_t stream);

}  // namespace flash
