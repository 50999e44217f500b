// What TMA must know of a tensor before a kernel can ask for a box of it, or have one stored: the tensor map, 128 bytes
// that the driver writes. Those of Q, K, V and O go to the kernel as a parameter.
#pragma once

#include <cuda.h>

#include "launch.h"

// A kernel's parameter: `const __grid_constant__ TensorMaps maps`. TMA reads the maps where they lie, by address.
struct TensorMaps {
    CUtensorMap Q, K, V, O;
};

namespace flash {

constexpr int O_box_rows = 16;  // a warp's rows of wgmma's accumulators

// Fills in the maps for a problem that check() has admitted. Each tensor has five dimensions, from the innermost: 64
// elements, the rows, d_head / 64 panels of 64 columns, the heads, the batches. A box is all panels of Q_rows rows (of
// K and V KV_rows, of O O_box_rows) of one head, so it arrives as [d_head / 64][rows][64]: rows of 128 bytes, their
// chunks of 16 swizzled; and so a box of O leaves. Of e4m3 a panel is 128 columns, or all of d_head 64: rows of 64
// bytes, swizzled as such (O is of 16 bits there, too). FLASH_UNSUPPORTED: strides of 2^40 bytes and more.
// FLASH_CUDA_ERROR: the driver knows no tensor maps, or refuses.
FlashStatus make_tensor_maps(const FlashParams &params, int Q_rows, int KV_rows, TensorMaps &maps);

}  // namespace flash
