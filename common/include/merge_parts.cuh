// Stage ring teaches this merge: what the rows of a rank have come to with the keys of several ranks, put together.
#pragma once

#include "launch_ring.h"
#include "numbers.cuh"

constexpr int merge_threads = 256;
constexpr int most_parts = flash::most_ranks + 1;

// What attention to some of the keys has come to, for `rows` rows of a rank from `first` on.
struct Part {
    void *O;             // [B, Hq, rows, d_head], divided by its own sum
    float *log_sum_exp;  // [B, Hq, rows]
    int first, rows;

    __device__ bool has(int row) const { return row >= first && row < first + rows; }
    // The place of a row, given the number of its head among those of all batches.
    __device__ int64_t place(int64_t head, int row) const { return head * rows + row - first; }
};

struct Parts {
    Part part[most_parts];
    int count;
};

// O = sum of exp(l_p - l) O_p over the parts p, with l = log(sum of exp(l_p)): each part weighs as much as its keys'
// exponentials do among those of all keys. d_head / 8 threads have a row, 8 columns each.
template <typename T, int d_head>
__global__ void __launch_bounds__(merge_threads)
    merge_kernel(const Parts parts, const FlashTensor O, float *log_sum_exp, const int Hq, const int L,
                 const int64_t rows) {
    constexpr int lanes = d_head / 8;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * merge_threads + threadIdx.x;
    const int64_t number = thread / lanes, head = number / L;
    const int row = number % L, lane = thread % lanes;
    if (number >= rows) return;

    float largest = -INFINITY;  // exponentials are taken relative to it, so that none overflows
    for (int p = 0; p < parts.count; ++p) {
        const Part &part = parts.part[p];
        if (part.has(row)) largest = fmaxf(largest, part.log_sum_exp[part.place(head, row)]);
    }
    float sum = 0.0f, merged[8] = {};
    for (int p = 0; p < parts.count; ++p) {
        const Part &part = parts.part[p];
        if (!part.has(row)) continue;
        const int64_t place = part.place(head, row);
        const float weight = expf(part.log_sum_exp[place] - largest);
        sum += weight;
        const uint4 eight =
            *reinterpret_cast<const uint4 *>(static_cast<const T *>(part.O) + place * d_head + 8 * lane);
        const T *own = reinterpret_cast<const T *>(&eight);
#pragma unroll
        for (int x = 0; x < 8; x += 2) {
            const float2 two = to_float2(own + x);
            merged[x] += weight * two.x;
            merged[x + 1] += weight * two.y;
        }
    }
    uint32_t pairs[4];
#pragma unroll
    for (int x = 0; x < 8; x += 2) pairs[x / 2] = pack<T>(merged[x] / sum, merged[x + 1] / sum);
    T *to = static_cast<T *>(O.data) + head / Hq * O.stride_batch + head % Hq * O.stride_head + row * O.stride_row;
    *reinterpret_cast<uint4 *>(to + 8 * lane) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    if (log_sum_exp && lane == 0) log_sum_exp[number] = largest + logf(sum);
}

// Queues the kernel: into the rank's O and log-sum-exp, of L rows a head.
static void merge(const FlashRingParams &params, const FlashRank &rank, const Parts &parts, int L) {
    using Merge = flash::TypedKernel<const Parts, const FlashTensor, float *, const int, const int, const int64_t>;
    const int64_t rows = int64_t{params.B} * params.Hq * L, threads = rows * (params.d_head / 8);
    Merge kernel = flash::choose_instance(params, [&]<typename T, int d_head>() {
        const dim3 grid(static_cast<unsigned>((threads + merge_threads - 1) / merge_threads));
        return Merge{merge_kernel<T, d_head>, grid, merge_threads};
    });
    flash::must(
        flash::KernelQueue(rank.stream).add(kernel, parts, rank.O, rank.log_sum_exp, params.Hq, L, rows).status());
}
