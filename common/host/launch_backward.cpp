#include "launch_backward.h"

#include "checks.h"

namespace flash {

FlashStatus check_sizes(const FlashBackwardParams *params, const Limits &limits) {
    if (!params) return fail(FLASH_INVALID_ARGUMENT, "params is a null pointer");
    FlashParams sizes{};
    sizes.B = params->B;
    sizes.Hq = params->Hq;
    sizes.Hkv = params->Hkv;
    sizes.Nq = params->Nq;
    sizes.Nkv = params->Nkv;
    sizes.d_head = params->d_head;
    sizes.dtype = params->dtype;
    sizes.causal = params->causal;
    sizes.configuration = params->configuration;
    if (FlashStatus status = check_sizes(&sizes, limits); status != FLASH_OK) return status;
    // check_sizes() counts the tiles of Q; here a grid has a block for each tile of K and V, too.
    const double KV_tiles = limits.Bc ? (params->Nkv + limits.Bc - 1) / limits.Bc : 0;
    if (static_cast<double>(params->B) * params->Hkv * KV_tiles > 0x7fffffff) {
        return fail(FLASH_UNSUPPORTED,
                    "stage '%s' needs B * Hkv * (Nkv / %d rounded up) to be at most 2^31 - 1; they are %d, %d and %d",
                    limits.title, limits.Bc, params->B, params->Hkv, params->Nkv);
    }
    return FLASH_OK;
}

FlashStatus check(const FlashBackwardParams *params, const Limits &limits, const BackwardTraits &traits) {
    if (FlashStatus status = check_sizes(params, limits); status != FLASH_OK) return status;
    if (FlashStatus status = check_scale(params->scale, limits); status != FLASH_OK) return status;
    const std::pair<const char *, const FlashTensor *> tensors[] = {
        {"Q", &params->Q},   {"K", &params->K},   {"V", &params->V},   {"O", &params->O},
        {"dO", &params->dO}, {"dQ", &params->dQ}, {"dK", &params->dK}, {"dV", &params->dV}};
    for (auto [name, tensor] : tensors) {
        if (FlashStatus status = check_tensor(name, *tensor, 2); status != FLASH_OK) return status;
    }
    if (!params->log_sum_exp) {
        return fail(FLASH_INVALID_ARGUMENT,
                    "log_sum_exp is a null pointer; flash_forward() of a stage with supports_log_sum_exp writes it");
    }
    FlashStatus status = check_log_sum_exp(params->log_sum_exp);
    if (status == FLASH_OK) {
        status = check_workspace(params->workspace, params->workspace_bytes, traits.workspace_bytes, limits,
                                 "flash_describe_backward");
    }
    return status == FLASH_OK ? check_device(limits) : status;
}

FlashStatus describe(const Limits &limits, const BackwardTraits &traits, const Launch &main,
                     FlashBackwardDescription *description) {
    if (!description) return fail(FLASH_INVALID_ARGUMENT, "description is a null pointer");
    *description = {.main = {}, .zeroed_workspace = traits.zeroed_workspace, .deterministic = traits.deterministic};
    return describe(limits, main, traits.workspace_bytes, &description->main);
}

}  // namespace flash
