// cub::DeviceSegmentedRadixSort. Its scan takes each thread's count off the sums, also where a thread has no digit and
// its count is a variable that nothing wrote: what the others get does not depend on that.
#include <algorithm>
#include <cstdio>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <vector>
#include "../check.h"
template <class Sort>
void sorted(const std::vector<int> &keys, const std::vector<int> &offsets, bool down, Sort sort) {
    const int n = int(keys.size()), segments = int(offsets.size()) - 1;
    int *in, *out, *at;
    CHECK(cudaMalloc(&in, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMalloc(&at, offsets.size() * sizeof(int)));
    CHECK(cudaMemcpy(in, keys.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(at, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    void *room = nullptr;
    size_t bytes = 0;
    CHECK(sort(room, bytes, in, out, n, segments, at));
    CHECK(cudaMalloc(&room, bytes));
    CHECK(sort(room, bytes, in, out, n, segments, at));
    std::vector<int> found(n), wanted(keys);
    CHECK(cudaMemcpy(found.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int s = 0; s < segments; ++s) {
        std::sort(wanted.begin() + offsets[s], wanted.begin() + offsets[s + 1]);
        if (down) std::reverse(wanted.begin() + offsets[s], wanted.begin() + offsets[s + 1]);
    }
    if (found != wanted) {
        std::printf("wrong\n");
        std::exit(1);
    }
}

int main() {
    std::vector<int> keys(5000);
    for (int i = 0; i < int(keys.size()); ++i) keys[i] = int(i * 2654435761u) >> 4;
    const std::vector<int> offsets = {0, 1, 40, 40, 700, 3000, 5000};
    sorted(keys, offsets, false, [](void *room, size_t &bytes, int *in, int *out, int n, int segments, int *at) {
        return cub::DeviceSegmentedRadixSort::SortKeys(room, bytes, in, out, n, segments, at, at + 1);
    });
    sorted(keys, offsets, true, [](void *room, size_t &bytes, int *in, int *out, int n, int segments, int *at) {
        return cub::DeviceSegmentedRadixSort::SortKeysDescending(room, bytes, in, out, n, segments, at, at + 1);
    });
    std::printf("OK\n");
}
