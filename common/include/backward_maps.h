// The tensor maps of a kernel that computes gradients: what TMA loads from. tensor_maps.h says how a box arrives.
#pragma once

#include "launch_backward.h"

struct BackwardMaps {
    CUtensorMap Q, K, V, dO;
};

// Fills in the maps for a problem that check() has admitted, with boxes of Br rows of Q and dO, and of Bc of K and V.
inline FlashStatus make_backward_maps(const FlashBackwardParams &params, int Br, int Bc, BackwardMaps &maps) {
    const flash::TensorShape queries{params.B, params.Hq, params.Nq, params.d_head, params.dtype};
    const flash::TensorShape keys{params.B, params.Hkv, params.Nkv, params.d_head, params.dtype};
    FlashStatus status = flash::make_tensor_map("Q", params.Q, queries, Br, maps.Q);
    if (status == FLASH_OK) status = flash::make_tensor_map("K", params.K, keys, Bc, maps.K);
    if (status == FLASH_OK) status = flash::make_tensor_map("V", params.V, keys, Bc, maps.V);
    if (status == FLASH_OK) status = flash::make_tensor_map("dO", params.dO, queries, Br, maps.dO);
    return status;
}
