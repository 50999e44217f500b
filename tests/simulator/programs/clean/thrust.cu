// Thrust, and structures with padding: correct programs, each of which prints OK as its last line.
#include <cuda_runtime.h>
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>
#include <cub/cub.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"
#include "../programs.h"

// Thrust: transform, reduce, scan, sort of numbers, by_key, and iterators that are computed.
namespace thrust_numbers {

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
    return 0;
}

}  // namespace thrust_numbers

// Thrust orders structs by a comparison of its own: sort, stable_sort_by_key in descending order, merge, sets, and
// unique_by_key.
namespace thrust_ordered_structs {

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
    return 0;
}

}  // namespace thrust_ordered_structs

// Thrust picks and orders: stable_sort_by_key, unique, stable_partition, and remove_if over pairs.
namespace thrust_select {

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
    return 0;
}

}  // namespace thrust_select

// Thrust over structs and pairs: vectors of structs, zip iterators, gather, scatter, searches in a sorted range.
namespace thrust_structs {

struct Particle {
    float x, v;
    int cell;
};

int main() {
    const int n = 1337;
    thrust::host_vector<Particle> h(n);
    for (int i = 0; i < n; ++i) h[i] = {float(i % 101), float(i % 7) - 3, i};
    thrust::device_vector<Particle> particles = h;
    thrust::for_each(particles.begin(), particles.end(), [] __device__(Particle &p) {
        p.x += p.v;
        p.cell = int(p.x) / 10;
    });
    thrust::device_vector<float> x(n), v(n), energy(n);
    thrust::transform(particles.begin(), particles.end(),
                      thrust::make_zip_iterator(thrust::make_tuple(x.begin(), v.begin())),
                      [] __device__(const Particle &p) { return thrust::make_tuple(p.x, p.v); });
    const auto both = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), v.begin()));
    thrust::transform(both, both + n, energy.begin(), [] __device__(const thrust::tuple<float, float> &t) {
        return thrust::get<0>(t) + thrust::get<1>(t) * thrust::get<1>(t) / 2;
    });
    thrust::host_vector<float> found = energy;
    thrust::host_vector<Particle> moved = particles;
    for (int i = 0; i < n; ++i) {
        const float place = h[i].x + h[i].v;
        if (moved[i].cell != int(place) / 10) return std::printf("cell of %d\n", i), 1;
        if (found[i] != place + h[i].v * h[i].v / 2) return std::printf("energy of %d\n", i), 1;
    }
    thrust::device_vector<int> map(n), gathered(n), scattered(n), numbers(n);
    thrust::sequence(numbers.begin(), numbers.end(), 5, 3);
    thrust::transform(thrust::make_counting_iterator(0), thrust::make_counting_iterator(n), map.begin(),
                      [] __device__(int i) -> int { return i * 10 % 1337; });
    thrust::gather(map.begin(), map.end(), numbers.begin(), gathered.begin());
    thrust::scatter(gathered.begin(), gathered.end(), map.begin(), scattered.begin());
    thrust::host_vector<int> there = gathered, back = scattered;
    for (int i = 0; i < n; ++i) {
        if (there[i] != 5 + 3 * (i * 10 % n)) return std::printf("gather %d\n", i), 1;
        if (back[i] != 5 + 3 * i) return std::printf("scatter %d\n", i), 1;
    }
    thrust::device_vector<int> edges(40), positions(40);
    thrust::sequence(edges.begin(), edges.end(), 0, 101);
    thrust::lower_bound(numbers.begin(), numbers.end(), edges.begin(), edges.end(), positions.begin());
    thrust::host_vector<int> position = positions;
    for (int i = 0; i < 40; ++i) {
        int want = 0;
        while (want < n && 5 + 3 * want < 101 * i) ++want;
        if (position[i] != want) return std::printf("lower_bound of %d\n", i), 1;
    }
    std::printf("OK\n");
    return 0;
}

}  // namespace thrust_structs

// Structs with padding in shared memory: the compiler reads them with wider loads, padding included, though nobody
// wrote that.
namespace padded_structs {

struct alignas(16) Point {
    float x, y, z;
};

struct alignas(8) Pair {
    short first;
    float second;
};

__global__ void turn(Point *out, const Point *in) {
    __shared__ Point s[64];
    const int i = threadIdx.x;
    s[i].x = in[i].x;
    s[i].y = in[i].y;
    s[i].z = in[i].z;
    __syncthreads();
    const Point p = s[63 - i];
    out[i].x = p.y;
    out[i].y = p.z;
    out[i].z = p.x;
}

// z is read while the neighbour's thread writes the padding behind it.
__global__ void neighbours(float *out, const float *in) {
    __shared__ union {
        Point point;
        float word[4];
    } s[64];
    const int i = threadIdx.x;
    for (int k = 0; k < 3; ++k) s[i].word[k] = in[3 * i + k];
    __syncthreads();
    s[i].word[3] = in[i];
    const Point p = s[(i + 1) % 64].point;
    out[i] = p.x + p.y * p.z;
}

__global__ void pairs(float *out) {
    __shared__ Pair s[64];
    const int i = threadIdx.x;
    s[i].first = short(i);
    s[i].second = 0.5f * i;
    __syncthreads();
    const Pair p = s[i ^ 33];
    out[i] = p.first + p.second;
}

__global__ void sort(int *keys) {
    using Sort = cub::BlockRadixSort<int, 96, 2>;
    __shared__ typename Sort::TempStorage storage;
    int mine[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};
    Sort(storage).Sort(mine);
    keys[2 * threadIdx.x] = mine[0];
    keys[2 * threadIdx.x + 1] = mine[1];
}

int main() {
    Point *in, *out;
    float *numbers, *sums;
    int *keys;
    CHECK(cudaMallocManaged(&in, 64 * sizeof(Point)));
    CHECK(cudaMallocManaged(&out, 64 * sizeof(Point)));
    CHECK(cudaMallocManaged(&numbers, 192 * sizeof(float)));
    CHECK(cudaMallocManaged(&sums, 64 * sizeof(float)));
    CHECK(cudaMallocManaged(&keys, 192 * sizeof(int)));
    for (int i = 0; i < 64; ++i) in[i] = {i + 0.25f, i + 0.5f, i + 0.75f};
    for (int i = 0; i < 192; ++i) numbers[i] = i % 13, keys[i] = i * 97 % 192;
    turn<<<1, 64>>>(out, in);
    neighbours<<<1, 64>>>(sums, numbers);
    sort<<<1, 96>>>(keys);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i) {
        const Point &p = in[63 - i];
        if (out[i].x != p.y || out[i].y != p.z || out[i].z != p.x) return std::printf("turn %d\n", i), 1;
        const float *n = &numbers[3 * ((i + 1) % 64)];
        if (sums[i] != n[0] + n[1] * n[2]) return std::printf("neighbours %d\n", i), 1;
    }
    for (int i = 0; i < 192; ++i)
        if (keys[i] != i) return std::printf("sort %d\n", i), 1;
    pairs<<<1, 64>>>(sums);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i)
        if (sums[i] != 1.5f * (i ^ 33)) return std::printf("pairs %d\n", i), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace padded_structs

// Values that nobody wrote, read and never used: padding behind a tile, lanes without a partner, parts of structs.
namespace unwritten_padding {

struct Greater {
    __host__ __device__ bool operator()(int a, int b) const { return a > b; }
};

struct Pair {
    char tag;
    int value;
};

__global__ void lanes_without_partner(int *out, const int *in, int warps) {
    __shared__ int s[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int x = in[threadIdx.x];
    for (int d = 16; d; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);
    if (lane == 0) s[warp] = x;
    __syncthreads();
    int v = s[lane];
    if (lane >= warps) v = 0;
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) *out = v;
}

// Scan of the warps' sums in the style of the CUDA sample shfl_scan.
__global__ void shfl_scan(int *data, int *partial) {
    extern __shared__ int sums[];
    const int id = blockIdx.x * blockDim.x + threadIdx.x, lane = id % 32, warp = threadIdx.x / 32;
    int value = data[id];
    for (int i = 1; i <= 32; i *= 2) {
        const int n = __shfl_up_sync(0xffffffff, value, i, 32);
        if (lane >= i) value += n;
    }
    if (threadIdx.x % 32 == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0 && lane < blockDim.x / 32) {
        int sum = sums[lane];
        const unsigned mask = (1u << (blockDim.x / 32)) - 1;
        for (int i = 1; i <= blockDim.x / 32; i *= 2) {
            const int n = __shfl_up_sync(mask, sum, i, blockDim.x / 32);
            if (lane >= i) sum += n;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    if (warp > 0) value += sums[warp - 1];
    data[id] = value;
    if (threadIdx.x == blockDim.x - 1) partial[blockIdx.x] = value;
}

__global__ void masked(int *out, int n) {
    __shared__ int s[64];
    __shared__ unsigned char bytes[256];
    if (threadIdx.x < n) s[threadIdx.x] = threadIdx.x;
    bytes[4 * threadIdx.x] = threadIdx.x;
    __syncthreads();
    const int x = s[threadIdx.x];
    const unsigned word = reinterpret_cast<unsigned *>(bytes)[threadIdx.x];  // three of its bytes are unwritten
    const int y = threadIdx.x < n ? x : -1;
    const int none = x ^ x;
    out[threadIdx.x] = y + (word & 0xff) + none + (x & 0) + int(word << 24 >> 31) * 0;
}

__global__ void pairs(int *out, Pair *copies) {
    __shared__ Pair s[64];
    s[threadIdx.x].tag = char(threadIdx.x);
    s[threadIdx.x].value = 2 * threadIdx.x;
    __syncthreads();
    const Pair p = s[63 - threadIdx.x];  // padding comes along
    out[threadIdx.x] = p.tag + p.value;
    copies[threadIdx.x] = p;
}

template <class F>
void expect(const char *name, const std::vector<int> &got, F want) {
    for (size_t i = 0; i < got.size(); ++i) {
        if (got[i] == want(i)) continue;
        printf("%s: element %zu is %d, not %d\n", name, i, got[i], want(i));
        exit(1);
    }
}

int main() {
    int *out, *in;
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMalloc(&in, 4096));
    std::vector<int> ones(256, 1), got(64);
    CHECK(cudaMemcpy(in, ones.data(), 1024, cudaMemcpyHostToDevice));
    lanes_without_partner<<<1, 256>>>(out, in, 8);
    CHECK(cudaMemcpy(got.data(), out, 4, cudaMemcpyDeviceToHost));
    expect("sum", {got[0]}, [](size_t) { return 256; });
    shfl_scan<<<1, 256, 32 * sizeof(int)>>>(in, out);
    std::vector<int> scanned(256);
    CHECK(cudaMemcpy(scanned.data(), in, 1024, cudaMemcpyDeviceToHost));
    expect("shfl_scan", scanned, [](size_t i) { return int(i) + 1; });
    masked<<<1, 64>>>(out, 40);
    CHECK(cudaMemcpy(got.data(), out, 256, cudaMemcpyDeviceToHost));
    expect("masked", got, [](size_t i) { return (i < 40 ? int(i) : -1) + int(i); });
    pairs<<<1, 64>>>(out, reinterpret_cast<Pair *>(in));
    CHECK(cudaMemcpy(got.data(), out, 256, cudaMemcpyDeviceToHost));
    expect("pairs", got, [](size_t i) { return 3 * (63 - int(i)); });

    for (int n : {7, 1000, 5000}) {
        thrust::host_vector<int> a(n), b(n / 2);
        for (int i = 0; i < n; ++i) a[i] = int(i * 7919ll % 4001);
        for (int i = 0; i < n / 2; ++i) b[i] = int(i * 104729ll % 4001);
        thrust::device_vector<int> x = a, y = b, merged(a.size() + b.size()), both(a.size() + b.size());
        thrust::sort(x.begin(), x.end(), Greater());
        thrust::sort(a.begin(), a.end(), Greater());
        expect("thrust::sort", {x.begin(), x.end()}, [&](size_t i) { return a[i]; });
        thrust::sort(y.begin(), y.end(), Greater());
        thrust::sort(b.begin(), b.end(), Greater());
        thrust::merge(x.begin(), x.end(), y.begin(), y.end(), merged.begin(), Greater());
        std::vector<int> want(merged.size());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Greater());
        expect("thrust::merge", {merged.begin(), merged.end()}, [&](size_t i) { return want[i]; });
        const auto end = thrust::set_intersection(x.begin(), x.end(), y.begin(), y.end(), both.begin(), Greater());
        const auto want_end = std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Greater());
        if (end - both.begin() != want_end - want.begin()) return printf("set_intersection: another length\n"), 1;
        expect("thrust::set_intersection", {both.begin(), end}, [&](size_t i) { return want[i]; });

        thrust::device_vector<int> keys(n);
        thrust::host_vector<int> unsorted(n);
        for (int i = 0; i < n; ++i) unsorted[i] = int(i * 31337ll % 9973);
        keys = unsorted;
        size_t bytes = 0;
        CHECK(cub::DeviceMergeSort::SortKeys(nullptr, bytes, keys.data(), n, Greater()));
        thrust::device_vector<char> room(bytes);
        CHECK(cub::DeviceMergeSort::SortKeys(room.data().get(), bytes, keys.data(), n, Greater()));
        thrust::sort(unsorted.begin(), unsorted.end(), Greater());
        expect("cub::DeviceMergeSort", {keys.begin(), keys.end()}, [&](size_t i) { return unsorted[i]; });
    }
    printf("OK\n");
    return 0;
}

}  // namespace unwritten_padding

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(thrust_numbers),
                         PROGRAM(thrust_ordered_structs),
                         PROGRAM(thrust_select),
                         PROGRAM(thrust_structs),
                         PROGRAM(padded_structs),
                         PROGRAM(unwritten_padding),
                     });
}
