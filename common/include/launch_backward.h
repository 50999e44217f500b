// What the launchers of backward stages share, as launch.h has it for the forward ones: argument checks and their
// texts, the choice of the template instance, a queue of kernels and the description. Implemented in
// common/host/launch_backward.cpp.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "attention_backward.h"
#include "launch.h"

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

// A kernel whose arguments are of the types `Arguments`, and how it is launched.
template <typename... Arguments>
struct BackwardKernel {
    void (*entry)(Arguments...) = nullptr;
    dim3 grid;
    int threads = 0;
    size_t shared_bytes = 0;  // dynamic
};

// Queues the kernel on the stream, with its shared memory allowed; a launch error becomes a status with text.
FlashStatus launch_backward(const Launch &launch, void **arguments, cudaStream_t stream);

// As a Launch, which has no types: what describe() needs.
template <typename... Arguments>
Launch untyped(const BackwardKernel<Arguments...> &kernel) {
    Kernel entry;
    entry.entry = reinterpret_cast<const void *>(kernel.entry);
    return {entry, kernel.grid, kernel.threads, kernel.shared_bytes};
}

// The kernels of one call, in their order on one stream; those after the first error are not launched.
class BackwardQueue {
  public:
    explicit BackwardQueue(cudaStream_t stream) : stream_(stream) {}

    template <typename... Arguments>
    BackwardQueue &add(const BackwardKernel<Arguments...> &kernel, std::type_identity_t<Arguments>... arguments) {
        if (status_ != FLASH_OK) return *this;
        void *pointers[] = {const_cast<std::remove_const_t<Arguments> *>(&arguments)...};
        status_ = launch_backward(untyped(kernel), pointers, stream_);
        return *this;
    }

    FlashStatus status() const { return status_; }

  private:
    cudaStream_t stream_;
    FlashStatus status_ = FLASH_OK;
};

// Fills in `description` from the limits, what the stage needs, the launch of the kernel that computes the products,
// and what the CUDA runtime knows of that kernel.
FlashStatus describe(const Limits &limits, const BackwardTraits &traits, const Launch &main,
                     FlashBackwardDescription *description);

// Calls instance.operator()<T, d_head>() for the problem's element type and head dim, which check_sizes() has admitted,
// and returns what it returns: of an instance that this build leaves out (launch.h) an empty one.
template <typename Instance>
auto choose_backward(const FlashBackwardParams &params, Instance instance) {
    using Result = decltype(instance.template operator()<__nv_bfloat16, 128>());
    const auto of_type = [&]<typename T, int d_head>() -> Result {
        if constexpr (built<T, d_head>)
            return instance.template operator()<T, d_head>();
        else
            return Result{};
    };
    if (params.dtype == FLASH_FP16) {
        return params.d_head == 64 ? of_type.template operator()<__half, 64>()
                                   : of_type.template operator()<__half, 128>();
    }
    return params.d_head == 64 ? of_type.template operator()<__nv_bfloat16, 64>()
                               : of_type.template operator()<__nv_bfloat16, 128>();
}

// The sizes of a tensor [B, heads, rows, d_head] and its type.
struct TensorShape {
    int B, heads, rows, d_head, dtype;
};

// The map of one tensor, laid out as tensor_maps.h says: a box is `box_rows` rows of one head, in panels of 64 columns
// (of 128 for e4m3) whose rows are swizzled. `name` is for messages.
FlashStatus make_tensor_map(const char *name, const FlashTensor &tensor, const TensorShape &shape, int box_rows,
                            CUtensorMap &map);

}  // namespace flash
