// What a header with loops does is charged to its own lines.
#pragma once

#include "ptx_copies.cuh"

namespace tiles {

// A tile of 4 * 32 * rows floats.
template <int Rows>
__device__ inline void load_tile(float *to, const float *from, unsigned stride) {
    for (int row = 0; row < Rows; ++row)
        ptx::copy_16(to + 128 * row + 4 * threadIdx.x, from + stride * row + 4 * threadIdx.x);  // the copies
    ptx::commit();
}

struct Pair {
    float *low, *high;

    __device__ inline void load(const float *from, unsigned stride) {
        load_tile<3>(low, from, stride);  // the pair's low tile
        load_tile<3>(high, from + 384, stride);
        ptx::wait<0>();
    }
};

}  // namespace tiles
