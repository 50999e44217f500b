// Thrust picks and orders: stable_sort_by_key, unique, stable_partition, and remove_if over pairs.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <thrust/sort.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

bool same(const thrust::device_vector<int> &d, const std::vector<int> &want, const char *what) {
    const thrust::host_vector<int> h = d;
    if (h.size() == want.size() && std::equal(want.begin(), want.end(), h.begin())) return true;
    return std::printf("%s\n", what), false;
}

int main() {
    const int n = 1900;
    std::vector<int> key(n), order(n);
    for (int i = 0; i < n; ++i) key[i] = i * 31 % 257 - 100;
    std::iota(order.begin(), order.end(), 0);
    thrust::device_vector<int> keys(key.begin(), key.end()), values(order.begin(), order.end());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin());
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] < key[b]; });
    std::vector<int> sorted(n);
    for (int i = 0; i < n; ++i) sorted[i] = key[order[i]];
    if (!same(keys, sorted, "keys") || !same(values, order, "values")) return 1;

    thrust::device_vector<int> once = keys;
    once.resize(thrust::unique(once.begin(), once.end()) - once.begin());
    std::vector<int> want = sorted;
    want.erase(std::unique(want.begin(), want.end()), want.end());
    if (!same(once, want, "unique")) return 1;

    thrust::device_vector<int> split = keys;
    const auto is_odd = [] __device__(int x) { return x % 2 != 0; };
    const auto middle = thrust::stable_partition(split.begin(), split.end(), is_odd);
    want = sorted;
    const auto host_middle = std::stable_partition(want.begin(), want.end(), [](int x) { return x % 2 != 0; });
    if (middle - split.begin() != host_middle - want.begin() || !same(split, want, "partition")) return 1;

    // Pairs whose key is negative go; what is left stays in order.
    const auto pairs = thrust::make_zip_iterator(thrust::make_tuple(keys.begin(), values.begin()));
    const auto end = thrust::remove_if(
        pairs, pairs + n, [] __device__(const thrust::tuple<int, int> &t) { return thrust::get<0>(t) < 0; });
    const int left = end - pairs;
    keys.resize(left);
    values.resize(left);
    std::vector<int> kept_keys, kept_values;
    for (int i = 0; i < n; ++i)
        if (sorted[i] >= 0) kept_keys.push_back(sorted[i]), kept_values.push_back(order[i]);
    if (!same(keys, kept_keys, "kept keys") || !same(values, kept_values, "kept values")) return 1;
    std::printf("OK\n");
}
