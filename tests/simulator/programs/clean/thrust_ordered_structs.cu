// Thrust orders structs by a comparison of its own: sort, stable_sort_by_key in descending order, merge, sets, and
// unique_by_key.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/merge.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <vector>

struct Event {
    float time;
    int id;
};

struct Earlier {
    __host__ __device__ bool operator()(const Event &a, const Event &b) const {
        return a.time < b.time || (a.time == b.time && a.id < b.id);
    }
};

bool same(const thrust::device_vector<Event> &d, const std::vector<Event> &want, const char *what) {
    const thrust::host_vector<Event> h = d;
    const auto equal = [](const Event &a, const Event &b) { return a.time == b.time && a.id == b.id; };
    if (h.size() == want.size() && std::equal(want.begin(), want.end(), h.begin(), equal)) return true;
    return std::printf("%s\n", what), false;
}

int main() {
    const int n = 1111;
    std::vector<Event> a(n), b(n / 2);
    for (int i = 0; i < n; ++i) a[i] = {float(i * 37 % 101), i};
    for (int i = 0; i < n / 2; ++i) b[i] = {float(i * 37 % 101), i * 2 % n};
    thrust::device_vector<Event> da(a.begin(), a.end()), db(b.begin(), b.end()), both(n + n / 2), common(n / 2);
    thrust::sort(da.begin(), da.end(), Earlier());
    thrust::sort(db.begin(), db.end(), Earlier());
    std::sort(a.begin(), a.end(), Earlier());
    std::sort(b.begin(), b.end(), Earlier());
    if (!same(da, a, "sort") || !same(db, b, "the other sort")) return 1;

    std::vector<Event> want(n + n / 2);
    std::merge(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Earlier());
    thrust::merge(da.begin(), da.end(), db.begin(), db.end(), both.begin(), Earlier());
    if (!same(both, want, "merge")) return 1;

    want.resize(n / 2);
    want.erase(std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Earlier()), want.end());
    const auto end = thrust::set_intersection(da.begin(), da.end(), db.begin(), db.end(), common.begin(), Earlier());
    common.resize(end - common.begin());
    if (!same(common, want, "intersection")) return 1;

    std::vector<int> key(n), order(n);
    for (int i = 0; i < n; ++i) key[i] = i * 31 % 57, order[i] = i;
    thrust::device_vector<int> keys(key.begin(), key.end()), values(order.begin(), order.end());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin(), thrust::greater<int>());
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return key[x] > key[y]; });
    const thrust::host_vector<int> sorted = values;
    if (!std::equal(order.begin(), order.end(), sorted.begin())) return std::printf("descending\n"), 1;
    const auto once = thrust::unique_by_key(keys.begin(), keys.end(), values.begin());
    const thrust::host_vector<int> left(values.begin(), once.second), kept(keys.begin(), once.first);
    for (int i = 0, at = 0; i < n; ++i) {
        if (i && key[order[i]] == key[order[i - 1]]) continue;
        if (at >= int(left.size()) || left[at] != order[i] || kept[at] != key[order[i]])
            return std::printf("unique %d\n", at), 1;
        ++at;
    }
    std::printf("OK\n");
}
