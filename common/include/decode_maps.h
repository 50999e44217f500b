// The tensor maps of a decode kernel that loads its cache by TMA. tensor_maps.h says how a box arrives.
#pragma once

#include "attention_decode.h"
#include "launch_backward.h"  // make_tensor_map()

struct CacheMaps {
    CUtensorMap K, V;
};

// Fills in the maps for a problem that check() has admitted, with boxes of `rows` keys of one head. The last dimension
// is the sequence, or the page where there is a block table. Keys past the end of either arrive as zeros. Each key is
// read once: were L2 to bring 256 bytes at a time, as it does for the other stages, a long cache would take an eighth
// longer on an H200 (docs/notes/decode.md).
inline FlashStatus make_cache_maps(const FlashDecodeParams &params, int rows, CacheMaps &maps) {
    const bool paged = params.block_table;
    const flash::TensorShape shape{paged ? params.pages : params.B,
                                   params.Hkv,
                                   paged ? params.page_size : params.Nmax,
                                   params.d_head,
                                   params.dtype,
                                   true};
    const FlashStatus status = flash::make_tensor_map("K", params.K, shape, rows, maps.K);
    return status == FLASH_OK ? flash::make_tensor_map("V", params.V, shape, rows, maps.V) : status;
}
