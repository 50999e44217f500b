// Thrust: transform, reduce, scan, sort of numbers, by_key, and iterators that are computed.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <cstdio>

int main() {
    const int n = 1500;
    thrust::host_vector<int> h(n);
    for (int i = 0; i < n; ++i) h[i] = i * 7919 % 1009;
    thrust::device_vector<int> d = h, keys = h, other(n);
    if (thrust::reduce(d.begin(), d.end()) != thrust::reduce(h.begin(), h.end())) return std::printf("reduce\n"), 1;
    const long squares = thrust::transform_reduce(
        thrust::make_counting_iterator(0), thrust::make_counting_iterator(n),
        [] __device__(int i) -> long { return long(i) * i; }, 0L, thrust::plus<long>());
    if (squares != long(n - 1) * n * (2 * n - 1) / 6) return std::printf("squares %ld\n", squares), 1;
    thrust::exclusive_scan(d.begin(), d.end(), other.begin());
    thrust::host_vector<int> scanned = other;
    for (int i = 0, sum = 0; i < n; sum += h[i++])
        if (scanned[i] != sum) return std::printf("scan %d\n", i), 1;
    thrust::sort(keys.begin(), keys.end());
    std::sort(h.begin(), h.end());
    thrust::host_vector<int> sorted = keys;
    if (!std::equal(h.begin(), h.end(), sorted.begin())) return std::printf("sort\n"), 1;
    thrust::transform(keys.begin(), keys.end(), keys.begin(), [] __device__(int x) -> int { return x / 100; });
    thrust::device_vector<int> ones(n, 1), found(n), counts(n);
    const auto end = thrust::reduce_by_key(keys.begin(), keys.end(), ones.begin(), found.begin(), counts.begin());
    const int groups = end.first - found.begin();
    for (int g = 0; g < groups; ++g)
        if (counts[g] != std::count_if(h.begin(), h.end(), [&](int x) { return x / 100 == found[g]; }))
            return std::printf("group %d\n", g), 1;
    std::printf("OK\n");
}
