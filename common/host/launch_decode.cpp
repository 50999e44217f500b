#include "launch_decode.h"

#include <algorithm>
#include <cstdint>

#include "checks.h"

namespace flash {

static FlashStatus check_pages(const FlashDecodeParams &params, const Limits &limits, int page_multiple) {
    if (!params.block_table) {
        if (params.pages || params.page_size || params.max_pages) {
            return fail(FLASH_INVALID_ARGUMENT,
                        "pages, page_size and max_pages are 0 where block_table is null; they are %d, %d and %d",
                        params.pages, params.page_size, params.max_pages);
        }
        return FLASH_OK;
    }
    if (page_multiple == 0) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' takes no pages; block_table must be null", limits.title);
    }
    const std::pair<const char *, int> sizes[] = {
        {"pages", params.pages}, {"page_size", params.page_size}, {"max_pages", params.max_pages}};
    for (auto [name, size] : sizes) {
        if (size <= 0) return fail(FLASH_INVALID_ARGUMENT, "%s must be positive; it is %d", name, size);
    }
    if (params.page_size % page_multiple != 0) {
        return fail(FLASH_UNSUPPORTED, "stage '%s' needs page_size to be a multiple of %d; it is %d", limits.title,
                    page_multiple, params.page_size);
    }
    if (int64_t{params.max_pages} * params.page_size < params.Nmax) {
        return fail(FLASH_INVALID_ARGUMENT, "max_pages * page_size must be at least Nmax; they are %d, %d and %d",
                    params.max_pages, params.page_size, params.Nmax);
    }
    return FLASH_OK;
}

FlashStatus check_sizes(const FlashDecodeParams *params, const Limits &limits, int page_multiple) {
    if (!params) return fail(FLASH_INVALID_ARGUMENT, "params is a null pointer");
    if (params->Nmax <= 0) return fail(FLASH_INVALID_ARGUMENT, "Nmax must be positive; it is %d", params->Nmax);
    FlashParams sizes{};
    sizes.B = params->B;
    sizes.Hq = params->Hq;
    sizes.Hkv = params->Hkv;
    sizes.Nq = params->Nq;
    sizes.Nkv = params->Nmax;
    sizes.d_head = params->d_head;
    sizes.dtype = params->dtype;
    sizes.configuration = params->configuration;
    if (FlashStatus status = check_sizes(&sizes, limits); status != FLASH_OK) return status;
    if (params->Nq > most_decode_rows) {
        return fail(FLASH_UNSUPPORTED, "decode needs Nq to be at most %d; it is %d", most_decode_rows, params->Nq);
    }
    if (params->Hq / params->Hkv > most_decode_group) {
        return fail(FLASH_UNSUPPORTED, "decode needs Hq / Hkv to be at most %d; they are %d and %d", most_decode_group,
                    params->Hq, params->Hkv);
    }
    return check_pages(*params, limits, page_multiple);
}

FlashStatus check(const FlashDecodeParams *params, const Limits &limits, const DecodeTraits &traits) {
    if (FlashStatus status = check_sizes(params, limits, traits.page_multiple); status != FLASH_OK) return status;
    if (FlashStatus status = check_scale(params->scale, limits); status != FLASH_OK) return status;
    const std::pair<const char *, const FlashTensor *> tensors[] = {
        {"Q", &params->Q}, {"K", &params->K}, {"V", &params->V}, {"O", &params->O}};
    for (auto [name, tensor] : tensors) {
        if (FlashStatus status = check_tensor(name, *tensor, 2); status != FLASH_OK) return status;
    }
    if (!params->lengths && !traits.optional_lengths) return fail(FLASH_INVALID_ARGUMENT, "lengths is a null pointer");
    const std::pair<const char *, const int32_t *> arrays[] = {{"lengths", params->lengths},
                                                               {"block_table", params->block_table}};
    for (auto [name, pointer] : arrays) {
        if (reinterpret_cast<uintptr_t>(pointer) % alignof(int32_t) != 0) {
            return fail(FLASH_INVALID_ARGUMENT, "%s must be 4-byte aligned; its address is %p", name,
                        static_cast<const void *>(pointer));
        }
    }
    FlashStatus status = check_log_sum_exp(params->log_sum_exp);
    if (status == FLASH_OK) {
        status = check_workspace(params->workspace, params->workspace_bytes, traits.workspace_bytes, limits,
                                 "flash_describe_decode");
    }
    return status == FLASH_OK ? check_device(limits) : status;
}

int splits_for(int64_t heads, int blocks, int Nmax, int least_keys) {
    const int64_t fill = persistent(1 << 30, blocks).x;
    return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(fill / heads, (Nmax - 1) / least_keys + 1)));
}

FlashStatus describe(const Limits &limits, const DecodeTraits &traits, const Launch &main,
                     FlashDecodeDescription *description) {
    if (!description) return fail(FLASH_INVALID_ARGUMENT, "description is a null pointer");
    *description = {.main = {},
                    .splits = traits.splits,
                    .page_multiple = traits.page_multiple,
                    .optional_lengths = traits.optional_lengths,
                    .zeroed_bytes = traits.zeroed_bytes};
    return describe(limits, main, traits.workspace_bytes, &description->main);
}

FlashStatus launch_early(const Launch &launch, void **arguments, cudaStream_t stream) {
    const int shared_bytes = static_cast<int>(launch.shared_bytes);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = launch.grid;
    config.blockDim = dim3(launch.threads);
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    // Without this, a launch with more than 48 KB of dynamic shared memory is refused.
    cudaError_t error =
        cudaFuncSetAttribute(launch.kernel.entry, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error == cudaSuccess) error = cudaLaunchKernelExC(&config, launch.kernel.entry, arguments);
    if (error == cudaSuccess) return FLASH_OK;
    cudaGetLastError();  // reported here: not again at the caller's next check
    return cuda_failure("kernel launch", error);
}

}  // namespace flash
