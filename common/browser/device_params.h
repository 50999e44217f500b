// FlashParams (attention.h) as a kernel reads it: with pointers and sizes of 64 bits, whatever the host's have.
#pragma once

#include <attention.h>

#include <cstddef>
#include <cstdint>

namespace browser {

struct DeviceTensor {
    uint64_t data;
    int64_t stride_batch, stride_head, stride_row;  // elements
};

struct DeviceParams {
    DeviceTensor Q, K, V, O;
    int32_t B, Hq, Hkv, Nq, Nkv, d_head, dtype, causal;
    float scale;
    uint64_t log_sum_exp, workspace, workspace_bytes, configuration, Q_scales, K_scales, V_scales;
};

// Where the host has 64 bits, too, both are the same; a change of one is a change of the other.
static_assert(sizeof(void *) != 8 || sizeof(DeviceParams) == sizeof(FlashParams));
static_assert(sizeof(void *) != 8 || offsetof(DeviceParams, B) == offsetof(FlashParams, B));
static_assert(sizeof(void *) != 8 || offsetof(DeviceParams, scale) == offsetof(FlashParams, scale));
static_assert(sizeof(void *) != 8 || offsetof(DeviceParams, log_sum_exp) == offsetof(FlashParams, log_sum_exp));
static_assert(sizeof(void *) != 8 || offsetof(DeviceParams, configuration) == offsetof(FlashParams, configuration));
static_assert(sizeof(void *) != 8 || offsetof(DeviceParams, V_scales) == offsetof(FlashParams, V_scales));

inline DeviceTensor device_tensor(const FlashTensor &tensor) {
    return {reinterpret_cast<uintptr_t>(tensor.data), tensor.stride_batch, tensor.stride_head, tensor.stride_row};
}

inline DeviceParams device_params(const FlashParams &p) {
    return {.Q = device_tensor(p.Q),
            .K = device_tensor(p.K),
            .V = device_tensor(p.V),
            .O = device_tensor(p.O),
            .B = p.B,
            .Hq = p.Hq,
            .Hkv = p.Hkv,
            .Nq = p.Nq,
            .Nkv = p.Nkv,
            .d_head = p.d_head,
            .dtype = p.dtype,
            .causal = p.causal,
            .scale = p.scale,
            .log_sum_exp = reinterpret_cast<uintptr_t>(p.log_sum_exp),
            .workspace = reinterpret_cast<uintptr_t>(p.workspace),
            .workspace_bytes = p.workspace_bytes,
            .configuration = 0,
            .Q_scales = reinterpret_cast<uintptr_t>(p.Q_scales),
            .K_scales = reinterpret_cast<uintptr_t>(p.K_scales),
            .V_scales = reinterpret_cast<uintptr_t>(p.V_scales)};
}

}  // namespace browser
