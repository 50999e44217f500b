// What the launchers of stages with several kernels share: kernels with typed arguments, queued one after the other,
// and the choice of the template instance. Implemented in common/host/launch.cpp.
#pragma once

#include <type_traits>

#include "launch.h"

namespace flash {

// A kernel whose arguments are of the types `Arguments`, and how it is launched.
template <typename... Arguments>
struct TypedKernel {
    void (*entry)(Arguments...) = nullptr;
    dim3 grid;
    int threads = 0;
    size_t shared_bytes = 0;  // dynamic
};

// Queues the kernel on the stream, with its shared memory allowed; a launch error becomes a status with text.
FlashStatus launch_typed(const Launch &launch, void **arguments, cudaStream_t stream);

// As a Launch, which has no types: what describe() needs.
template <typename... Arguments>
Launch untyped(const TypedKernel<Arguments...> &kernel) {
    Kernel entry;
    entry.entry = reinterpret_cast<const void *>(kernel.entry);
    return {entry, kernel.grid, kernel.threads, kernel.shared_bytes};
}

// The kernels of one call, in their order on one stream; those after the first error are not launched.
class KernelQueue {
  public:
    explicit KernelQueue(cudaStream_t stream) : stream_(stream) {}

    template <typename... Arguments>
    KernelQueue &add(const TypedKernel<Arguments...> &kernel, std::type_identity_t<Arguments>... arguments) {
        if (status_ != FLASH_OK) return *this;
        void *pointers[] = {const_cast<std::remove_const_t<Arguments> *>(&arguments)...};
        status_ = launch_typed(untyped(kernel), pointers, stream_);
        return *this;
    }

    FlashStatus status() const { return status_; }

  private:
    cudaStream_t stream_;
    FlashStatus status_ = FLASH_OK;
};

// Calls instance.operator()<T, d_head>() for the problem's element type and head dim, which check_sizes() has admitted,
// and returns what it returns: of an instance that this build leaves out (launch.h) an empty one.
template <typename Params, typename Instance>
auto choose_instance(const Params &params, Instance instance) {
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

}  // namespace flash
