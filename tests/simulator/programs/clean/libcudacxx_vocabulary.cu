// libcu++'s vocabulary in kernels: optional, variant, pair, bit, limits, and a semaphore and a latch.
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/utility>
#include <cuda/std/variant>

#include <cstdio>

#include "../check.h"

struct Shared {
    cuda::counting_semaphore<cuda::thread_scope_device> turnstile{2};
    cuda::latch<cuda::thread_scope_device> arrived;
    cuda::atomic<int, cuda::thread_scope_device> inside, most;
    explicit Shared(int blocks) : arrived(blocks), inside(0), most(0) {}
};

// At most two blocks at a time between acquire and release; nobody goes on before all have been there.
__global__ void rooms(Shared *s, int *out) {
    if (threadIdx.x) return;
    s->turnstile.acquire();
    s->most.fetch_max(s->inside.fetch_add(1) + 1);
    s->inside.fetch_sub(1);
    s->turnstile.release();
    s->arrived.arrive_and_wait();
    out[blockIdx.x] = s->inside.load();
}

__device__ cuda::std::optional<int> root(int x) {
    for (int i = 0; i * i <= x; ++i)
        if (i * i == x) return i;
    return cuda::std::nullopt;
}

__global__ void words(int *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::std::variant<int, float, cuda::std::pair<int, int>> value;
    if (i % 3 == 0) value = i;
    if (i % 3 == 1) value = i * 0.5f;
    if (i % 3 == 2) value = cuda::std::make_pair(i, i + 1);
    int result = 0;
    if (const auto *p = cuda::std::get_if<0>(&value)) result = *p;
    if (const auto *p = cuda::std::get_if<1>(&value)) result = int(*p * 2) + 1000;
    if (const auto *p = cuda::std::get_if<2>(&value)) result = p->first * p->second;
    cuda::std::array<int, 5> a = {i % 7, i % 5, i % 3, i % 11, i % 2};
    cuda::std::swap(a[0], a[4]);
    out[i] = result + 7 * root(i).value_or(-1) + 31 * cuda::std::popcount(unsigned(i)) + 5 * a[0] + a[4] +
             cuda::std::countl_zero(unsigned(i) | 1u) + cuda::std::numeric_limits<short>::max();
}

int main() {
    for (int n : {1, 64, 333}) {
        int *out;
        CHECK(cudaMallocManaged(&out, n * sizeof(int)));
        words<<<(n + 63) / 64, 64>>>(out, n);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < n; ++i) {
            const int result = i % 3 == 0 ? i : i % 3 == 1 ? i + 1000 : i * (i + 1);
            int whole = -1;
            for (int r = 0; r * r <= i; ++r)
                if (r * r == i) whole = r;
            const int want =
                result + 7 * whole + 31 * __builtin_popcount(i) + 5 * (i % 2) + i % 7 + __builtin_clz(i | 1) + 32767;
            if (out[i] != want) return std::printf("%d: %d, want %d\n", i, out[i], want), 1;
        }
        CHECK(cudaFree(out));
    }
    for (int blocks : {1, 9}) {
        Shared *s;
        int *out;
        CHECK(cudaMallocManaged(&s, sizeof *s));
        CHECK(cudaMallocManaged(&out, blocks * sizeof(int)));
        new (s) Shared(blocks);
        rooms<<<blocks, 32>>>(s, out);
        CHECK(cudaDeviceSynchronize());
        if (s->most > 2 || s->most < 1) return std::printf("%d inside\n", s->most.load()), 1;
        for (int i = 0; i < blocks; ++i)
            if (out[i]) return std::printf("block %d went on with %d inside\n", i, out[i]), 1;
        CHECK(cudaFree(s));
        CHECK(cudaFree(out));
    }
    std::printf("OK\n");
    return 0;
}
