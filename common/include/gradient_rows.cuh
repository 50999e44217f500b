// How rows of dK and dV leave wgmma's accumulators for global memory.
#pragma once

#include "attention_backward.h"
#include "numbers.cuh"

template <typename T>
__device__ inline T *first_row(const FlashTensor &tensor, int batch, int head, int row) {
    return static_cast<T *>(tensor.data) + batch * tensor.stride_batch + head * tensor.stride_head +
           row * tensor.stride_row;
}

// Lane i of four holds piece k of each k in x[k]. Afterwards it holds in x[k] what lane k held in x[i].
__device__ __forceinline__ void transpose_quad(uint32_t (&x)[4], int lane) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & step) continue;
            const bool high = lane & step;
            const uint32_t received = __shfl_xor_sync(0xffffffff, high ? x[i] : x[i + step], step);
            x[i] = high ? received : x[i];
            x[i + step] = high ? x[i + step] : received;
        }
    }
}

// Stores the warp's 16 rows of dK, or of dV. Four lanes hold a row's columns in pairs; they exchange them, so that each
// stores 16 bytes.
template <typename T, int d_head>
__device__ __forceinline__ void store_rows(T *rows, int64_t stride_row, int count, const float (&X)[d_head / 2],
                                           float scale, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = half * 8 + lane / 4;
#pragma unroll
        for (int n = 0; n < d_head / 8; n += 4) {
            uint32_t pieces[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int x = 4 * (n + k) + 2 * half;
                pieces[k] = pack<T>(X[x] * scale, X[x + 1] * scale);
            }
            transpose_quad(pieces, lane);
            if (row < count) {
                T *const address = rows + row * stride_row + n * 8 + lane % 4 * 8;
                *reinterpret_cast<uint4 *>(address) = make_uint4(pieces[0], pieces[1], pieces[2], pieces[3]);
            }
        }
    }
}
