// PTX instructions that only decode stages use, one documented function each, as in ptx.cuh.
#pragma once

#include <cstdint>

namespace ptx {

// movmatrix.trans: transposes an 8x8 matrix of 16-bit elements that lies across the warp's registers. Lane l gives
// elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1), and gets (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
__device__ inline uint32_t movmatrix_trans(uint32_t two) {
    uint32_t transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(two));
    return transposed;
}

}  // namespace ptx
