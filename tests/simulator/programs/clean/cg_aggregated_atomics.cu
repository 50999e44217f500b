// A filter whose warps add to the counter once: coalesced groups, and the same per bin by labeled and binary
// partitions.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "../check.h"

namespace cg = cooperative_groups;

__device__ int next(int *counter) {
    const auto active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}

__global__ void filter(int *out, int *count, const int *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (in[i] % 3 == 0) out[next(count)] = in[i];
}

__global__ void bins(int *counts, int *even, const int *in, int n) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int x = i < n ? in[i] % 6 : 6;
    const auto same = cg::labeled_partition(warp, x);
    if (same.thread_rank() == 0) atomicAdd(&counts[x], same.size());
    const auto half = cg::binary_partition(warp, x % 2 == 0);
    if (half.thread_rank() == 0 && x % 2 == 0) atomicAdd(even, half.size());
}

bool run(int n) {
    int *in, *out, *counts;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    CHECK(cudaMallocManaged(&counts, 9 * sizeof(int)));
    CHECK(cudaMemset(counts, 0, 9 * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 1009;
    filter<<<3, 96>>>(out, counts + 7, in, n);
    bins<<<(n + 95) / 96, 96>>>(counts, counts + 8, in, n);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> want, got(out, out + counts[7]);
    int by_value[7] = {};
    for (int i = 0; i < n; ++i) {
        if (in[i] % 3 == 0) want.push_back(in[i]);
        ++by_value[in[i] % 6];
    }
    by_value[6] = (n + 95) / 96 * 96 - n;
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    const bool right = got == want && std::equal(by_value, by_value + 7, counts) &&
                       counts[8] == by_value[0] + by_value[2] + by_value[4] + by_value[6];
    for (int *p : {in, out, counts}) CHECK(cudaFree(p));
    return right;
}

int main() {
    for (int n : {1, 96, 2001})
        if (!run(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
    return 0;
}
