// CUB's device-wide reduce, scan, select and histogram.
#include <cub/cub.cuh>

#include <cstdio>
#include <vector>

#include "../check.h"

template <class Call>
void with_storage(Call call) {
    size_t bytes = 0;
    void *storage = nullptr;
    CHECK(call(storage, bytes));
    CHECK(cudaMalloc(&storage, bytes));
    CHECK(call(storage, bytes));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(storage));
}

struct IsOdd {
    __host__ __device__ bool operator()(int x) const { return x % 2; }
};

int main() {
    const int n = 3001;
    int *in, *out, *count;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    CHECK(cudaMallocManaged(&count, 16 * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 64;
    with_storage([&](void *s, size_t &b) { return cub::DeviceReduce::Sum(s, b, in, count, n); });
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += in[i];
    if (*count != sum) return std::printf("sum %d, want %d\n", *count, sum), 1;
    with_storage([&](void *s, size_t &b) { return cub::DeviceScan::InclusiveSum(s, b, in, out, n); });
    sum = 0;
    for (int i = 0; i < n; ++i)
        if (out[i] != (sum += in[i])) return std::printf("scan %d\n", i), 1;
    with_storage([&](void *s, size_t &b) { return cub::DeviceSelect::If(s, b, in, out, count, n, IsOdd()); });
    int kept = 0;
    for (int i = 0; i < n; ++i)
        if (in[i] % 2 && out[kept++] != in[i]) return std::printf("select %d\n", i), 1;
    if (*count != kept) return std::printf("select kept %d, want %d\n", *count, kept), 1;
    with_storage(
        [&](void *s, size_t &b) { return cub::DeviceHistogram::HistogramEven(s, b, in, count, 17, 0, 64, n); });
    int bins[16] = {};
    for (int i = 0; i < n; ++i) ++bins[in[i] / 4];
    for (int i = 0; i < 16; ++i)
        if (count[i] != bins[i]) return std::printf("bin %d\n", i), 1;
    std::printf("OK\n");
}
