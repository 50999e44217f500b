// libcu++: correct programs, each of which prints OK as its last line.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/mdspan>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/utility>
#include <cuda/std/variant>

#include <cmath>
#include <complex>
#include <cstdio>
#include <utility>
#include <vector>

#include "../check.h"
#include "../programs.h"

// libcu++: atomics of scopes, a spin lock with acquire and release, atomic_ref, spans and tuples.
namespace libcudacxx_atomics {

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

}  // namespace libcudacxx_atomics

// cuda::barrier of a block, which is an mbarrier from compute capability 8.0 on: arrivals with tokens, drops,
// completion by copies, a ring of two buffers, a pipeline between warps.
namespace libcudacxx_barrier {

#pragma nv_diag_suppress static_var_with_dynamic_init

using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr unsigned kThreads = 128;

__global__ void rotate(int *out, const int *in) {
    __shared__ Barrier bar;
    __shared__ int values[kThreads];
    const unsigned t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    int mine = in[t];
    for (int i = 0; i < 5; ++i) {
        values[t] = mine;
        Barrier::arrival_token token = bar.arrive();
        bar.wait(std::move(token));
        mine = values[(t + 1) % kThreads] + i;
        bar.arrive_and_wait();
    }
    out[t] = mine;
}

__global__ void copied(int *out, const int *in) {
    __shared__ Barrier bar;
    __shared__ alignas(16) int buffer[2][kThreads];
    const unsigned t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    int sum = 0;
    for (unsigned i = 0; i < 4; ++i) {
        cuda::memcpy_async(&buffer[i % 2][t], in + i * kThreads + t, sizeof(int), bar);
        bar.arrive_and_wait();
        sum += buffer[i % 2][kThreads - 1 - t];
    }
    out[t] = sum;
}

__global__ void dropped(int *out) {
    __shared__ Barrier bar;
    __shared__ int values[kThreads];
    const unsigned t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    values[t] = int(t);
    if (t >= 32) {
        bar.arrive_and_drop();
        return;
    }
    bar.arrive_and_wait();
    out[t] = values[kThreads - 1 - t];
    values[t] = -int(t);
    bar.arrive_and_wait();
    out[t] += values[31 - t];
}

__global__ void handed_over(int *out, const int *in) {
    using State = cuda::pipeline_shared_state<cuda::thread_scope_block, 2>;
    __shared__ State state;
    __shared__ alignas(16) int buffer[2][32];
    auto block = cooperative_groups::this_thread_block();
    const bool produces = threadIdx.x < 32;
    auto pipeline =
        cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    int sum = 0;
    for (unsigned i = 0; i < 6; ++i) {
        if (produces) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&buffer[i % 2][threadIdx.x], in + i * 32 + threadIdx.x, sizeof(int), pipeline);
            pipeline.producer_commit();
        } else {
            pipeline.consumer_wait();
            sum += buffer[i % 2][63 - threadIdx.x];
            pipeline.consumer_release();
        }
    }
    if (!produces) out[threadIdx.x - 32] = sum;
}

int main() {
    std::vector<int> in(4 * kThreads), out(kThreads);
    for (unsigned i = 0; i < in.size(); ++i) in[i] = int(i * i % 1001);
    int *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, in.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
    int wrong = 0;
    const auto check = [&](unsigned count, auto expected) {
        CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(int), cudaMemcpyDeviceToHost));
        for (unsigned t = 0; t < count; ++t) wrong += out[t] != expected(t);
    };
    rotate<<<1, kThreads>>>(d_out, d_in);
    check(kThreads, [&](unsigned t) { return in[(t + 5) % kThreads] + 10; });
    copied<<<1, kThreads>>>(d_out, d_in);
    check(kThreads, [&](unsigned t) {
        int sum = 0;
        for (unsigned i = 0; i < 4; ++i) sum += in[i * kThreads + kThreads - 1 - t];
        return sum;
    });
    dropped<<<1, kThreads>>>(d_out);
    check(32, [&](unsigned t) { return int(kThreads - 1 - t) - int(31 - t); });
    handed_over<<<1, 64>>>(d_out, d_in);
    check(32, [&](unsigned t) {
        int sum = 0;
        for (unsigned i = 0; i < 6; ++i) sum += in[i * 32 + 31 - t];
        return sum;
    });
    CHECK(cudaDeviceSynchronize());
    puts(wrong ? "wrong" : "OK");
    return wrong != 0;
}

}  // namespace libcudacxx_barrier

// libcu++: a Jacobi step over mdspans of the row-major and the column-major kind, and a Fourier sum over complex
// numbers.
namespace libcudacxx_mdspan {

using Extents = cuda::std::dextents<int, 2>;
using Rows = cuda::std::mdspan<float, Extents>;
using Columns = cuda::std::mdspan<const float, Extents, cuda::std::layout_left>;
using Complex = cuda::std::complex<float>;

template <class In>
__global__ void jacobi(Rows out, In in) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= in.extent(0) || j >= in.extent(1)) return;
    const bool edge = i == 0 || j == 0 || i == in.extent(0) - 1 || j == in.extent(1) - 1;
    out(i, j) = edge ? in(i, j) : 0.25f * (in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
}

__global__ void fourier(Complex *out, const float *in, int n) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    Complex sum = 0;
    for (int i = 0; i < n; ++i) sum += in[i] * cuda::std::polar(1.0f, -6.2831853f * (i * k % n) / n);
    out[k] = sum;
}

bool step(int rows, int columns) {
    float *in, *out;
    CHECK(cudaMallocManaged(&in, rows * columns * sizeof(float)));
    CHECK(cudaMallocManaged(&out, rows * columns * sizeof(float)));
    for (int i = 0; i < rows * columns; ++i) in[i] = i * 37 % 64;
    const dim3 block(16, 4), grid((columns + 15) / 16, (rows + 3) / 4);
    bool right = true;
    for (bool by_columns : {false, true}) {
        if (by_columns)
            jacobi<<<grid, block>>>(Rows(out, rows, columns), Columns(in, rows, columns));
        else
            jacobi<<<grid, block>>>(Rows(out, rows, columns), Rows(in, rows, columns));
        CHECK(cudaDeviceSynchronize());
        const auto at = [&](int i, int j) { return by_columns ? in[j * rows + i] : in[i * columns + j]; };
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) {
                const bool edge = i == 0 || j == 0 || i == rows - 1 || j == columns - 1;
                const float want =
                    edge ? at(i, j) : 0.25f * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1));
                right = right && out[i * columns + j] == want;
            }
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return right;
}

bool transform(int n) {
    float *in;
    Complex *out;
    CHECK(cudaMallocManaged(&in, n * sizeof *in));
    CHECK(cudaMallocManaged(&out, n * sizeof *out));
    for (int i = 0; i < n; ++i) in[i] = i % 7 - 3;
    fourier<<<(n + 63) / 64, 64>>>(out, in, n);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int k = 0; k < n; ++k) {
        std::complex<double> want = 0;
        for (int i = 0; i < n; ++i) want += std::polar(double(in[i]), -2 * M_PI * (i * k % n) / n);
        right = right && std::abs(want - std::complex<double>(out[k].real(), out[k].imag())) < 1e-3;
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return right;
}

int main() {
    if (!step(3, 3) || !step(37, 50)) return std::printf("jacobi\n"), 1;
    if (!transform(5) || !transform(100)) return std::printf("fourier\n"), 1;
    std::printf("OK\n");
    return 0;
}

}  // namespace libcudacxx_mdspan

// libcu++'s vocabulary in kernels: optional, variant, pair, bit, limits, and a semaphore and a latch.
namespace libcudacxx_vocabulary {

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

}  // namespace libcudacxx_vocabulary

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(libcudacxx_atomics),
                         PROGRAM(libcudacxx_barrier),
                         PROGRAM(libcudacxx_mdspan),
                         PROGRAM(libcudacxx_vocabulary),
                     });
}
