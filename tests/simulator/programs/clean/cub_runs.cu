// CUB over runs of equal values: run-length encoding, the first of each run, and the first value of each key.
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

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

bool runs(int n) {
    int *in, *value, *first, *length, *count;
    CHECK(cudaMallocManaged(&in, n * sizeof(int)));
    CHECK(cudaMallocManaged(&value, n * sizeof(int)));
    CHECK(cudaMallocManaged(&first, n * sizeof(int)));
    CHECK(cudaMallocManaged(&length, n * sizeof(int)));
    CHECK(cudaMallocManaged(&count, sizeof(int)));
    struct Run {
        int value, first, length;
    };
    std::vector<Run> want;
    for (int i = 0, left = 0, run = -1; i < n; ++i) {
        if (left-- == 0) ++run, left = run * 5 % 9;
        in[i] = run * 3 % 17 + run;
        if (want.empty() || want.back().value != in[i]) want.push_back({in[i], i, 0});
        ++want.back().length;
    }
    const int found = want.size();
    with_storage(
        [&](void *s, size_t &b) { return cub::DeviceRunLengthEncode::Encode(s, b, in, value, length, count, n); });
    bool right = *count == found;
    for (int i = 0; i < found; ++i) right = right && value[i] == want[i].value && length[i] == want[i].length;

    with_storage([&](void *s, size_t &b) { return cub::DeviceSelect::Unique(s, b, in, value, count, n); });
    right = right && *count == found;
    for (int i = 0; i < found; ++i) right = right && value[i] == want[i].value;

    for (int i = 0; i < n; ++i) first[i] = i;
    with_storage(
        [&](void *s, size_t &b) { return cub::DeviceSelect::UniqueByKey(s, b, in, first, value, length, count, n); });
    right = right && *count == found;
    for (int i = 0; i < found; ++i) right = right && value[i] == want[i].value && length[i] == want[i].first;
    for (int *p : {in, value, first, length, count}) CHECK(cudaFree(p));
    return right;
}

int main() {
    for (int n : {1, 640, 5003})
        if (!runs(n)) return std::printf("%d elements\n", n), 1;
    std::printf("OK\n");
}
