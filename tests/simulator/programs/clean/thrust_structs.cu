// Thrust over structs and pairs: vectors of structs, zip iterators, gather, scatter, searches in a sorted range.
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

#include <cstdio>

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
}
