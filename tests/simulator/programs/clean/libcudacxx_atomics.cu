// libcu++: atomics of scopes, a spin lock with acquire and release, atomic_ref, spans and tuples.
#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/span>
#include <cuda/std/tuple>

#include <cstdio>

#include "../check.h"

struct Totals {
    cuda::atomic<int, cuda::thread_scope_device> sum, largest;
    cuda::atomic<unsigned, cuda::thread_scope_device> lock;
    int guarded;
};

__global__ void count(Totals *t, cuda::std::span<int> bins) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    t->sum.fetch_add(i, cuda::memory_order_relaxed);
    t->largest.fetch_max(i * 37 % 101);
    cuda::atomic_ref<int, cuda::thread_scope_device>(bins[i % bins.size()]).fetch_add(1);
    if (threadIdx.x == 0) {
        while (t->lock.exchange(1, cuda::memory_order_acquire)) {
        }
        t->guarded += 2;
        t->lock.store(0, cuda::memory_order_release);
    }
}

__global__ void tuples(int *out) {
    const cuda::std::array<int, 3> a = {1, 2, 3};
    const auto pair = cuda::std::make_tuple(int(threadIdx.x), 0.5f);
    out[threadIdx.x] = cuda::std::get<0>(pair) * a[threadIdx.x % a.size()] + int(2 * cuda::std::get<1>(pair));
}

int main() {
    Totals *t;
    int *bins;
    CHECK(cudaMallocManaged(&t, sizeof *t));
    CHECK(cudaMallocManaged(&bins, 64 * sizeof(int)));
    new (t) Totals{};
    for (int i = 0; i < 7; ++i) bins[i] = 0;
    count<<<4, 64>>>(t, cuda::std::span<int>(bins, 7));
    CHECK(cudaDeviceSynchronize());
    if (t->sum != 255 * 128 || t->largest != 100 || t->guarded != 8) return std::printf("totals\n"), 1;
    for (int i = 0; i < 7; ++i)
        if (bins[i] != 256 / 7 + (i < 256 % 7)) return std::printf("bin %d\n", i), 1;
    tuples<<<1, 64>>>(bins);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i)
        if (bins[i] != i * (i % 3 + 1) + 1) return std::printf("tuple %d\n", i), 1;
    std::printf("OK\n");
    return 0;
}
