// How rows of dK and dV leave wgmma's accumulators for global memory.
#pragma once

#include "attention_backward.h"
#include "numbers.cuh"
#include "ptx_hopper.cuh"

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

// The same by way of shared memory, as stage tma_store does with O: the lanes exchange nothing, and TMA stores the rows
// while the warp goes on. It writes no row past the end of dK or dV.
template <typename T, int panels, int panel>
__device__ __forceinline__ void send_rows(const CUtensorMap &map, T (&staging)[panels][16][panel],
                                          const float (&X)[panels * panel / 2], float scale, int first, int head,
                                          int batch, int lane) {
    if (lane == 0) ptx::tma_store_wait_read<0>();  // TMA has read what lay here before
    __syncwarp();
    const uint32_t row_address = ptx::shared_address(staging[0][lane % 16]);
#pragma unroll
    for (int n = 0; n < panels * panel / 8; n += 2) {  // 16 columns: lanes 0-15 give the row addresses of the first 8
        uint32_t pieces[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) pieces[k] = pack<T>(X[4 * n + 2 * k] * scale, X[4 * n + 2 * k + 1] * scale);
        const int chunk = (n % 8 + lane / 16) ^ lane % 8;  // TMA takes chunk c of row r from position c ^ (r % 8)
        ptx::stmatrix_x4(row_address + (n / 8 * 16 * panel + chunk * 8) * sizeof(T), pieces);
    }
    ptx::fence_proxy_async();  // makes this lane's writes visible to TMA
    __syncwarp();              // every lane has made its writes visible before lane 0 starts TMA
    if (lane == 0) {
        ptx::tma_store(&map, staging, 0, first, 0, head, batch);
        ptx::tma_store_commit();
    }
}
