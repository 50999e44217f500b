// CUB's segmented reductions (empty segments, too), arg-min and arg-max, and a reduction by key.
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>

#include <algorithm>
#include <climits>
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

bool segments(const std::vector<int> &lengths) {
    const int count = lengths.size();
    int *offsets, *in, *out;
    CHECK(cudaMallocManaged(&offsets, (count + 1) * sizeof(int)));
    CHECK(cudaMallocManaged(&out, 2 * count * sizeof(int)));
    offsets[0] = 0;
    for (int i = 0; i < count; ++i) offsets[i + 1] = offsets[i] + lengths[i];
    const int n = offsets[count];
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 2003 - 1000;
    with_storage([&](void *s, size_t &b) {
        return cub::DeviceSegmentedReduce::Sum(s, b, in, out, count, offsets, offsets + 1);
    });
    with_storage([&](void *s, size_t &b) {
        return cub::DeviceSegmentedReduce::Max(s, b, in, out + count, count, offsets, offsets + 1);
    });
    bool right = true;
    for (int i = 0; i < count; ++i) {
        int sum = 0, most = INT_MIN;
        for (int j = offsets[i]; j < offsets[i + 1]; ++j) sum += in[j], most = std::max(most, in[j]);
        right = right && out[i] == sum && out[count + i] == most;
    }
    cub::KeyValuePair<int, int> *pair;
    CHECK(cudaMallocManaged(&pair, sizeof *pair));
    with_storage([&](void *s, size_t &b) { return cub::DeviceReduce::ArgMin(s, b, in, pair, n); });
    const int *least = std::min_element(in, in + n), *most = std::max_element(in, in + n);
    right = right && pair->key == least - in && pair->value == *least;
    with_storage([&](void *s, size_t &b) { return cub::DeviceReduce::ArgMax(s, b, in, pair, n); });
    right = right && pair->key == most - in && pair->value == *most;
    for (void *p : {(void *)offsets, (void *)in, (void *)out, (void *)pair}) CHECK(cudaFree(p));
    return right;
}

bool by_key(int n) {
    int *keys, *values, *found, *sums, *count;
    for (int **p : {&keys, &values, &found, &sums, &count}) CHECK(cudaMallocManaged(p, n * sizeof(int)));
    std::vector<std::pair<int, int>> want;
    for (int i = 0; i < n; ++i) {
        keys[i] = i / 7 * 5 % 11;
        values[i] = i % 23 - 11;
        if (want.empty() || want.back().first != keys[i]) want.emplace_back(keys[i], 0);
        want.back().second += values[i];
    }
    with_storage([&](void *s, size_t &b) {
        return cub::DeviceReduce::ReduceByKey(s, b, keys, found, values, sums, count, cuda::std::plus<>{}, n);
    });
    bool right = *count == int(want.size());
    for (size_t i = 0; i < want.size(); ++i) right = right && found[i] == want[i].first && sums[i] == want[i].second;
    for (int *p : {keys, values, found, sums, count}) CHECK(cudaFree(p));
    return right;
}

int main() {
    if (!segments({5, 0, 1, 31, 33, 300, 0, 1025})) return std::printf("segments\n"), 1;
    if (!segments({257})) return std::printf("one segment\n"), 1;
    if (!by_key(100) || !by_key(3001)) return std::printf("by key\n"), 1;
    std::printf("OK\n");
}
