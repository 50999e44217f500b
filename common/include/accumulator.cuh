// Stage wgmma teaches this layout: which elements of S or O a thread's accumulator registers hold. The reductions over
// a row are those of stage tensor_cores.
#pragma once

// A warp holds 16 rows, and each thread two of them: lane / 4 and lane / 4 + 8. Of every 8 columns a thread holds
// columns 2 (lane % 4) and 2 (lane % 4) + 1: in registers 4n and 4n + 1 for its first row, 4n + 2 and 4n + 3 for its
// second. These are the row of register x, among the warp's 16, and its column.
__device__ inline int accumulator_row(int x, int lane) {
    return x / 2 % 2 * 8 + lane / 4;
}
__device__ inline int accumulator_column(int x, int lane) {
    return x / 4 * 8 + lane % 4 * 2 + x % 2;
}

// The maximum and the sum of x over the four lanes that hold one row.
__device__ inline float row_reduce_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ inline float row_reduce_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}
