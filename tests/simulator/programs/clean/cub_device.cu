// CUB's device-wide calls: correct programs, each of which prints OK as its last line.
#include <cub/cub.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"
#include "../programs.h"

// CUB's device-wide reduce, scan, select and histogram.
namespace cub_device {

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
    return 0;
}

}  // namespace cub_device

// CUB's partitions in two and three, by a predicate and by flags.
namespace cub_partition {

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
    return 0;
}

}  // namespace cub_partition

// CUB over runs of equal values: run-length encoding, the first of each run, and the first value of each key.
namespace cub_runs {

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
    return 0;
}

}  // namespace cub_runs

// CUB's segmented reductions (empty segments, too), arg-min and arg-max, and a reduction by key.
namespace cub_segments {

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
    return 0;
}

}  // namespace cub_segments

// cub::DeviceSegmentedRadixSort. Its scan takes each thread's count off the sums, also where a thread has no digit and
// its count is a variable that nothing wrote: what the others get does not depend on that.
namespace cub_segmented_sort {

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
    return 0;
}

}  // namespace cub_segmented_sort

// CUB's radix sort as its documentation shows it: pairs, descending floats, a range of bits, and a double buffer.
namespace cub_sort_pairs {

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
    return 0;
}

}  // namespace cub_sort_pairs

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(cub_device),
                         PROGRAM(cub_partition),
                         PROGRAM(cub_runs),
                         PROGRAM(cub_segments),
                         PROGRAM(cub_segmented_sort),
                         PROGRAM(cub_sort_pairs),
                     });
}
