#include "launch.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checks.h"
#include "kernel_queue.h"
#include "tensor_maps.h"

namespace flash {

static thread_local char last_error[4096] = "no error";

FlashStatus cuda_failure(const char *what, cudaError_t error) {
    return fail(FLASH_CUDA_ERROR, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

FlashStatus check_tensor(const char *name, const FlashTensor &tensor, int element_bytes) {
    const int multiple = 16 / element_bytes;
    if (!tensor.data) return fail(FLASH_INVALID_ARGUMENT, "%s is a null pointer", name);
    if (reinterpret_cast<uintptr_t>(tensor.data) % 16 != 0) {
        return fail(FLASH_INVALID_ARGUMENT, "%s must be 16-byte aligned; its address is %p", name, tensor.data);
    }
    const std::pair<const char *, int64_t> strides[] = {
        {"batch", tensor.stride_batch}, {"head", tensor.stride_head}, {"row", tensor.stride_row}};
    for (auto [which, stride] : strides) {
        if (stride < 0 || stride % multiple != 0) {
            return fail(FLASH_INVALID_ARGUMENT,
                        "%s's %s stride must be a non-negative multiple of %d elements (16 bytes); it is %lld", name,
                        which, multiple, static_cast<long long>(stride));
        }
    }
    return FLASH_OK;
}

// The factors of e4m3's heads, which the other types do not have.
static FlashStatus check_scales(const FlashParams &params) {
    const std::pair<const char *, const float *> scales[] = {
        {"Q_scales", params.Q_scales}, {"K_scales", params.K_scales}, {"V_scales", params.V_scales}};
    for (auto [name, pointer] : scales) {
        if (params.dtype != FLASH_E4M3 && pointer) {
            return fail(FLASH_INVALID_ARGUMENT, "%s must be null: scales go with e4m3 alone; dtype is %d", name,
                        params.dtype);
        }
        if (params.dtype == FLASH_E4M3 && !pointer) {
            return fail(FLASH_INVALID_ARGUMENT, "%s is a null pointer; e4m3 needs a scale for each head", name);
        }
        if (reinterpret_cast<uintptr_t>(pointer) % alignof(float) != 0) {
            return fail(FLASH_INVALID_ARGUMENT, "%s must be 4-byte aligned; its address is %p", name,
                        static_cast<const void *>(pointer));
        }
    }
    return FLASH_OK;
}

// FLASHLADDER_MULTIPROCESSORS: 0 where it is not set, -1 where it is no number from 1 on.
static int multiprocessors_asked_for() {
    const char *text = std::getenv("FLASHLADDER_MULTIPROCESSORS");
    if (!text || !*text) return 0;
    char *end = nullptr;
    const long count = std::strtol(text, &end, 10);
    return *end == '\0' && count >= 1 && count <= 1 << 20 ? static_cast<int>(count) : -1;
}

FlashStatus check_device(const Limits &limits) {
    // WARPSIM_DEVICE has the simulator play a device that is too old.
    const char *way = std::getenv("WARPSIM_DEVICE") ? "the simulator runs it without WARPSIM_DEVICE"
                                                    : "FLASHLADDER_DEVICE=sim runs it on the simulator";
    int device = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (error != cudaSuccess) return cuda_failure("no usable CUDA device", error);
    if (10 * major + minor < limits.min_compute) {
        return fail(FLASH_DEVICE_TOO_OLD,
                    "stage '%s' needs compute capability %d.%d or newer; this device has %d.%d (%s)", limits.title,
                    limits.min_compute / 10, limits.min_compute % 10, major, minor, way);
    }
    if (limits.specific && 10 * major + minor != limits.min_compute) {
        return fail(
            FLASH_UNSUPPORTED,
            "stage '%s' needs compute capability %d.%d and no other: it has instructions that no other GPU has; "
            "this device has %d.%d (%s)",
            limits.title, limits.min_compute / 10, limits.min_compute % 10, major, minor, way);
    }
    if (multiprocessors_asked_for() < 0) {
        return fail(FLASH_INVALID_ARGUMENT, "FLASHLADDER_MULTIPROCESSORS=%s: set a whole number from 1 to 1048576",
                    std::getenv("FLASHLADDER_MULTIPROCESSORS"));
    }
    return FLASH_OK;
}

FlashStatus check_scale(float scale, const Limits &limits) {
    if (!std::isfinite(scale)) return fail(FLASH_INVALID_ARGUMENT, "scale must be finite; it is %g", scale);
    if (scale <= 0.0f && limits.positive_scale) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs a scale above 0; it is %g", limits.title, scale);
    }
    return FLASH_OK;
}

FlashStatus check_log_sum_exp(const float *log_sum_exp) {
    if (reinterpret_cast<uintptr_t>(log_sum_exp) % alignof(float) != 0) {
        return fail(FLASH_INVALID_ARGUMENT, "log_sum_exp must be 4-byte aligned; its address is %p",
                    static_cast<const void *>(log_sum_exp));
    }
    return FLASH_OK;
}

FlashStatus check_workspace(const void *given, size_t given_bytes, size_t needed_bytes, const Limits &limits,
                            const char *described_by) {
    if (needed_bytes > 0 && (!given || given_bytes < needed_bytes)) {
        return fail(FLASH_INVALID_ARGUMENT,
                    "stage '%s' needs a workspace of %zu bytes for this problem (%s() tells); %zu given", limits.title,
                    needed_bytes, described_by, given ? given_bytes : size_t{0});
    }
    if (needed_bytes > 0 && reinterpret_cast<uintptr_t>(given) % 16 != 0) {
        return fail(FLASH_INVALID_ARGUMENT, "workspace must be 16-byte aligned; its address is %p", given);
    }
    return FLASH_OK;
}

FlashStatus fail(FlashStatus status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

FlashStatus check_sizes(const FlashParams *params, const Limits &limits) {
    if (!params) return fail(FLASH_INVALID_ARGUMENT, "params is a null pointer");
    const std::pair<const char *, int> sizes[] = {{"B", params->B},   {"Hq", params->Hq},   {"Hkv", params->Hkv},
                                                  {"Nq", params->Nq}, {"Nkv", params->Nkv}, {"d_head", params->d_head}};
    for (auto [name, size] : sizes) {
        if (size <= 0) return fail(FLASH_INVALID_ARGUMENT, "%s must be positive; it is %d", name, size);
    }
    if (params->dtype != FLASH_FP16 && params->dtype != FLASH_BF16 && params->dtype != FLASH_E4M3) {
        return fail(FLASH_INVALID_ARGUMENT, "dtype must be 0 (fp16), 1 (bf16) or 2 (e4m3); it is %d", params->dtype);
    }
    if (params->causal != 0 && params->causal != 1) {
        return fail(FLASH_INVALID_ARGUMENT, "causal must be 0 or 1; it is %d", params->causal);
    }
    if (params->Hq % params->Hkv != 0) {
        return fail(FLASH_INVALID_ARGUMENT, "Hq must be a multiple of Hkv; they are %d and %d", params->Hq,
                    params->Hkv);
    }
    // A grid's y and z dimensions end at 65535.
    if (params->Hq > 65535) return fail(FLASH_UNSUPPORTED, "Hq must be at most 65535; it is %d", params->Hq);
    if (params->B > 65535) return fail(FLASH_UNSUPPORTED, "B must be at most 65535; it is %d", params->B);
    // Kernels count rows and columns in int, and add up to a length and a tile to each other.
    for (auto [name, length] : {std::pair{"Nq", params->Nq}, {"Nkv", params->Nkv}}) {
        if (length > 1 << 30) return fail(FLASH_UNSUPPORTED, "%s must be at most 2^30; it is %d", name, length);
    }
    // A grid's x dimension ends at 2^31 - 1, and so do the numbers of a persistent kernel's query tiles.
    if (limits.Br &&
        static_cast<double>(params->B) * params->Hq * ((params->Nq + limits.Br - 1) / limits.Br) > 0x7fffffff) {
        return fail(FLASH_UNSUPPORTED,
                    "stage '%s' needs B * Hq * (Nq / %d rounded up) to be at most 2^31 - 1; they are %d, %d and %d",
                    limits.title, limits.Br, params->B, params->Hq, params->Nq);
    }
    // Beyond that the bytes of a score matrix in fp32 need not fit in size_t, and a workspace could look large enough.
    const double scores = static_cast<double>(params->B) * params->Hq * params->Nq * params->Nkv;
    if (scores > 0x1p60) {
        return fail(FLASH_UNSUPPORTED, "B * Hq * Nq * Nkv must be at most 2^60; it is %.3g", scores);
    }

    if (limits.e4m3 && params->dtype != FLASH_E4M3) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' takes e4m3 only; dtype is %d (%s)", limits.title, params->dtype,
                    params->dtype == FLASH_BF16 ? "bf16" : "fp16");
    }
    if (!limits.e4m3 && params->dtype == FLASH_E4M3) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' takes fp16 and bf16; dtype is 2 (e4m3)", limits.title);
    }
#ifdef FLASH_ONLY_BF16
    if (params->dtype == FLASH_FP16) return fail(FLASH_UNSUPPORTED, "this build has bf16 only");
#endif
#ifdef FLASH_ONLY_BF16_128
    if (params->dtype == FLASH_FP16 || params->d_head != 128) {
        return fail(FLASH_UNSUPPORTED, "this build has bf16 with d_head 128 only");
    }
#endif
    if (params->d_head != 64 && params->d_head != 128) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' supports d_head 64 and 128; it is %d", limits.title, params->d_head);
    }
    if (params->Nq % limits.multiple_Nq != 0) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs Nq to be a multiple of %d; it is %d", limits.title,
                    limits.multiple_Nq, params->Nq);
    }
    if (params->Nkv % limits.multiple_Nkv != 0) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs Nkv to be a multiple of %d; it is %d", limits.title,
                    limits.multiple_Nkv, params->Nkv);
    }
    if (params->Nq > limits.most_Nq) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs Nq to be at most %d; it is %d", limits.title, limits.most_Nq,
                    params->Nq);
    }
    if (params->causal && !limits.causal) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' has no causal masking; causal is 1", limits.title);
    }
    if (params->configuration && !limits.configuration) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' has one kernel and no configurations; configuration must be null",
                    limits.title);
    }
    if (params->Hq != params->Hkv && !limits.grouped_heads) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs as many K/V heads as Q heads; Hq is %d and Hkv is %d",
                    limits.title, params->Hq, params->Hkv);
    }
    return FLASH_OK;
}

FlashStatus check(const FlashParams *params, const Limits &limits, size_t workspace_bytes) {
    if (FlashStatus status = check_sizes(params, limits); status != FLASH_OK) return status;
    if (FlashStatus status = check_scale(params->scale, limits); status != FLASH_OK) return status;
    const std::pair<const char *, const FlashTensor *> tensors[] = {
        {"Q", &params->Q}, {"K", &params->K}, {"V", &params->V}, {"O", &params->O}};
    for (auto [name, tensor] : tensors) {
        const int element_bytes = params->dtype == FLASH_E4M3 && tensor != &params->O ? 1 : 2;
        if (FlashStatus status = check_tensor(name, *tensor, element_bytes); status != FLASH_OK) return status;
    }
    if (FlashStatus status = check_scales(*params); status != FLASH_OK) return status;
    if (params->log_sum_exp && !limits.log_sum_exp) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' does not write the log-sum-exp; log_sum_exp must be null",
                    limits.title);
    }
    FlashStatus status = check_log_sum_exp(params->log_sum_exp);
    if (status == FLASH_OK) {
        status = check_workspace(params->workspace, params->workspace_bytes, workspace_bytes, limits, "flash_describe");
    }
    return status == FLASH_OK ? check_device(limits) : status;
}

dim3 persistent(int works, int blocks) {
    int device = 0, multiprocessors = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);  // check() has used this device
    // As if there were so many: then blocks have several tiles of a small problem, which is enough under a slow tool.
    if (const int few = multiprocessors_asked_for(); few > 0) multiprocessors = few;
    return dim3(std::min(works, blocks * multiprocessors));
}

FlashStatus launch(const Launch &launch, const FlashParams &params, cudaStream_t stream) {
    const void *kernel = launch.kernel.entry;
    TensorMaps maps;
    if (launch.kernel.takes_maps) {
        const FlashStatus status = make_tensor_maps(params, launch.Q_box_rows, launch.KV_box_rows, maps);
        if (status != FLASH_OK) return status;
    }
    void *arguments[] = {const_cast<FlashParams *>(&params), &maps};  // as many as the kernel takes are read
    return launch_kernel(kernel, launch.grid, launch.threads, launch.shared_bytes, arguments, stream);
}

FlashStatus launch_typed(const Launch &launch, void **arguments, cudaStream_t stream) {
    return launch_kernel(launch.kernel.entry, launch.grid, launch.threads, launch.shared_bytes, arguments, stream);
}

FlashStatus launch_kernel(const void *kernel, dim3 grid, int threads, size_t shared_bytes, void **arguments,
                          cudaStream_t stream) {
    // Without this, a launch with more than 48 KB of dynamic shared memory is refused.
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return cuda_failure("shared memory for the kernel", error);
    error = cudaLaunchKernel(kernel, grid, dim3(threads), arguments, shared_bytes, stream);
    if (error != cudaSuccess) {
        cudaGetLastError();  // reported here: not again at the caller's next check
        return cuda_failure("kernel launch", error);
    }
    return FLASH_OK;
}

FlashStatus describe(const Limits &limits, const Launch &launch, size_t workspace_bytes,
                     FlashDescription *description) {
    if (!description) return fail(FLASH_INVALID_ARGUMENT, "description is a null pointer");
    if (FlashStatus status = check_device(limits); status != FLASH_OK) return status;
    const void *kernel = launch.kernel.entry;
    cudaFuncAttributes attributes{};
    int blocks = 0;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(launch.shared_bytes));
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, launch.threads, launch.shared_bytes);
    }
    if (error != cudaSuccess) return cuda_failure("description of the kernel", error);
    *description = FlashDescription{
        .title = limits.title,
        .min_compute = limits.min_compute,
        .Br = launch.Q_box_rows ? launch.Q_box_rows : limits.Br,  // one copy brings a query tile's rows
        .Bc = limits.Bc,
        .threads = launch.threads,
        .shared_bytes = static_cast<int32_t>(attributes.sharedSizeBytes + launch.shared_bytes),
        .grid = {static_cast<int32_t>(launch.grid.x), static_cast<int32_t>(launch.grid.y),
                 static_cast<int32_t>(launch.grid.z)},
        .supports_log_sum_exp = limits.log_sum_exp,
        .multiple_Nq = limits.multiple_Nq,
        .multiple_Nkv = limits.multiple_Nkv,
        .supports_causal = limits.causal,
        .supports_gqa = limits.grouped_heads,
        .positive_scale = limits.positive_scale,
        .registers = attributes.numRegs,
        .spill_bytes = static_cast<int32_t>(attributes.localSizeBytes),
        .resident_blocks = blocks,
        .workspace_bytes = workspace_bytes,
        .configuration = limits.configuration,
    };
    return FLASH_OK;
}

}  // namespace flash

extern "C" const char *flash_last_error(void) {
    return flash::last_error;
}
