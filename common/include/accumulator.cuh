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

// What the epilogue needs of a query tile's softmax. Every array of two elements has one element for each of the
// thread's two rows.
struct RowStatistics {
    float shift[2];    // P = 2^(scale_log2 S - shift)
    float sum[2];      // of P over all columns
    float inverse[2];  // of the sum; 0 for a row that sees no key, so that its O is 0
};
