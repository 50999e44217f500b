// CUB's radix sort as its documentation shows it: pairs, descending floats, a range of bits, and a double buffer.
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
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

bool pairs(int n) {
    unsigned *keys, *sorted;
    int *values, *moved;
    CHECK(cudaMallocManaged(&keys, n * sizeof *keys));
    CHECK(cudaMallocManaged(&sorted, n * sizeof *sorted));
    CHECK(cudaMallocManaged(&values, n * sizeof *values));
    CHECK(cudaMallocManaged(&moved, n * sizeof *moved));
    for (int i = 0; i < n; ++i) keys[i] = i * 2654435761u, values[i] = i;
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    with_storage(
        [&](void *s, size_t &b) { return cub::DeviceRadixSort::SortPairs(s, b, keys, sorted, values, moved, n); });
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    bool right = true;
    for (int i = 0; i < n; ++i) right = right && moved[i] == order[i] && sorted[i] == keys[order[i]];
    // Four bits of the key only: what they do not tell apart stays in order.
    with_storage([&](void *s, size_t &b) {
        return cub::DeviceRadixSort::SortPairs(s, b, keys, sorted, values, moved, n, 8, 12);
    });
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return (keys[a] >> 8) % 16 < (keys[b] >> 8) % 16; });
    for (int i = 0; i < n; ++i) right = right && moved[i] == order[i] && sorted[i] == keys[order[i]];
    for (void *p : {(void *)keys, (void *)sorted, (void *)values, (void *)moved}) CHECK(cudaFree(p));
    return right;
}

bool descending(int n) {
    float *a, *b;
    CHECK(cudaMallocManaged(&a, n * sizeof *a));
    CHECK(cudaMallocManaged(&b, n * sizeof *b));
    std::vector<float> want(n);
    for (int i = 0; i < n; ++i) want[i] = a[i] = (i * 7919 % 1013 - 500) * 0.125f;
    cub::DoubleBuffer<float> keys(a, b);
    with_storage([&](void *s, size_t &bytes) { return cub::DeviceRadixSort::SortKeysDescending(s, bytes, keys, n); });
    std::sort(want.begin(), want.end(), std::greater<float>());
    const bool right = std::equal(want.begin(), want.end(), keys.Current());
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return right;
}

int main() {
    for (int n : {1, 777, 4099}) {
        if (!pairs(n)) return std::printf("pairs of %d\n", n), 1;
        if (!descending(n)) return std::printf("descending, %d\n", n), 1;
    }
    std::printf("OK\n");
}
