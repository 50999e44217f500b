// What every stage's launcher shares, so that kernel.cu is about the kernel: argument checks and their texts, the
// choice of the template instance, the launch itself and the description. Implemented in common/host/launch.cpp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "attention.h"

struct TensorMaps;  // tensor_maps.h

namespace flash {

// What a stage supports. Anything else is refused with a message that names the limit and the value given.
struct Limits {
    const char *title;  // stage.toml's, by which messages call the stage
    int min_compute;    // 80 for compute capability 8.0
    int Br, Bc;         // tile; 0: none
    int multiple_Nq = 1, multiple_Nkv = 1;
    bool causal = false;
    bool grouped_heads = false;   // Hq != Hkv
    bool positive_scale = false;  // needed where the maximum is taken before scaling
    bool log_sum_exp = false;     // written where the caller asks for it
    // The short form of the instance chosen, of a stage with a table of them (configured.h).
    const char *configuration = nullptr;
    int most_Nq = 1 << 30;  // beyond it the grid has no room for the query tiles
    bool specific = false;  // min_compute and no other: sm_90a has instructions that no other GPU has
    bool e4m3 = false;      // Q, K and V are e4m3 with a scale for each head, and nothing else
};

// A kernel, which takes the parameters alone, or the tensor maps of Q, K and V as well.
struct Kernel {
    const void *entry = nullptr;
    bool takes_maps = false;

    Kernel() = default;
    Kernel(std::nullptr_t) {}
    Kernel(void (*kernel)(FlashParams)) : entry(reinterpret_cast<const void *>(kernel)) {}
    Kernel(void (*kernel)(FlashParams, TensorMaps)) : entry(reinterpret_cast<const void *>(kernel)), takes_maps(true) {}
    explicit operator bool() const { return entry; }
};

// One kernel launch for one problem.
struct Launch {
    Kernel kernel;
    dim3 grid;
    int threads;
    size_t shared_bytes = 0;              // dynamic
    int Q_box_rows = 0, KV_box_rows = 0;  // of a kernel that takes tensor maps: rows that one copy brings
};

// A grid of as many blocks as the device's multiprocessors hold, `blocks` each, or of one for each of `works` pieces of
// work if they are fewer.
dim3 persistent(int works, int blocks = 1);

// Records the text that flash_last_error() returns in this thread (printf-style); returns `status`.
FlashStatus fail(FlashStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// FLASH_OK, or why this problem is wrong (sizes, pointers, strides, scale) or beyond the stage's limits or the GPU's
// age. workspace_bytes: what the stage needs for this problem.
FlashStatus check(const FlashParams *params, const Limits &limits, size_t workspace_bytes = 0);

// The sizes alone: what flash_describe() needs.
FlashStatus check_sizes(const FlashParams *params, const Limits &limits);

// Queues the kernel on the stream, with its shared memory allowed; a launch error becomes a status with text.
FlashStatus launch(const Launch &launch, const FlashParams &params, cudaStream_t stream);

// Fills in `description` from the limits, the launch and what the CUDA runtime knows of the kernel.
FlashStatus describe(const Limits &limits, const Launch &launch, size_t workspace_bytes, FlashDescription *description);

// Whether this build has kernels for the type and head dim. FLASH_ONLY_BF16_128 builds that instance alone, for patched
// kernels: they compile in a quarter of the time. FLASH_ONLY_BF16 builds both head dims in bf16, which is what is timed
// of the ablations. FLASH_ONLY_ONE_EACH builds bf16 with d_head 128 and fp16 with d_head 64, which is what `make demo`
// runs.
#if defined(FLASH_ONLY_BF16_128)
template <typename T, int d_head>
constexpr bool built = std::is_same_v<T, __nv_bfloat16> && d_head == 128;
#elif defined(FLASH_ONLY_ONE_EACH)
template <typename T, int d_head>
constexpr bool built = std::is_same_v<T, __nv_bfloat16> == (d_head == 128);
#elif defined(FLASH_ONLY_BF16)
template <typename T, int d_head>
constexpr bool built = std::is_same_v<T, __nv_bfloat16>;
#else
template <typename T, int d_head>
constexpr bool built = true;
#endif

// Calls instance.operator()<T, d_head>() for the problem's element type and head dim, which check_sizes() has admitted.
template <typename Instance>
Launch choose(const FlashParams &params, Instance instance) {
    const auto of_type = [&]<typename T, int d_head>() {
        if constexpr (built<T, d_head>)
            return instance.template operator()<T, d_head>();
        else
            return Launch{};
    };
    if (params.dtype == FLASH_FP16) {
        return params.d_head == 64 ? of_type.template operator()<__half, 64>()
                                   : of_type.template operator()<__half, 128>();
    }
    return params.d_head == 64 ? of_type.template operator()<__nv_bfloat16, 64>()
                               : of_type.template operator()<__nv_bfloat16, 128>();
}

// The same by the head dim alone, for a stage that takes one type: instance.operator()<d_head>(). The ONLY settings
// leave the type as it is; FLASH_ONLY_BF16_128 builds d_head 128.
template <typename Instance>
Launch choose_d_head(const FlashParams &params, Instance instance) {
#if !defined(FLASH_ONLY_BF16_128)
    if (params.d_head == 64) return instance.template operator()<64>();
#endif
    return instance.template operator()<128>();
}

}  // namespace flash
