// CUB's partitions in two and three, by a predicate and by flags.
#include <cub/device/device_partition.cuh>

#include <cstdio>
#include <vector>

#include "../check.h"

struct Below {
    int limit;
    __host__ __device__ bool operator()(int x) const { return x < limit; }
};

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

bool partition(int n) {
    int *in, *out, *middle, *rest, *count;
    char *flags;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    CHECK(cudaMallocManaged(&middle, n * sizeof(int)));
    CHECK(cudaMallocManaged(&rest, n * sizeof(int)));
    CHECK(cudaMallocManaged(&count, 2 * sizeof(int)));
    CHECK(cudaMallocManaged(&flags, n));
    std::vector<int> low, mid, high;
    for (int i = 0; i < n; ++i) {
        in[i] = i * 7919 % 300;
        flags[i] = in[i] < 100;
        (in[i] < 100 ? low : in[i] < 200 ? mid : high).push_back(in[i]);
    }
    // Those that are not taken stand at the end, the last one first.
    const auto two = [&] {
        bool right = *count == int(low.size());
        for (int i = 0, taken = 0, left = n; i < n; ++i)
            right = right && (in[i] < 100 ? out[taken++] : out[--left]) == in[i];
        return right;
    };
    with_storage([&](void *s, size_t &b) { return cub::DevicePartition::If(s, b, in, out, count, n, Below{100}); });
    bool right = two();
    CHECK(cudaMemset(out, 0, n * sizeof(int)));
    with_storage([&](void *s, size_t &b) { return cub::DevicePartition::Flagged(s, b, in, flags, out, count, n); });
    right = right && two();
    with_storage([&](void *s, size_t &b) {
        return cub::DevicePartition::If(s, b, in, out, middle, rest, count, n, Below{100}, Below{200});
    });
    right = right && count[0] == int(low.size()) && count[1] == int(mid.size());
    for (size_t i = 0; i < low.size(); ++i) right = right && out[i] == low[i];
    for (size_t i = 0; i < mid.size(); ++i) right = right && middle[i] == mid[i];
    for (size_t i = 0; i < high.size(); ++i) right = right && rest[i] == high[i];
    for (int *p : {in, out, middle, rest, count}) CHECK(cudaFree(p));
    CHECK(cudaFree(flags));
    return right;
}

int main() {
    for (int n : {3, 1000, 4999})
        if (!partition(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
}
