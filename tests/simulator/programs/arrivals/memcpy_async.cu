// cuda::memcpy_async of aligned sizes, cuda::barrier and cuda::pipeline on sm_90, where they are bulk copies and
// mbarriers: nothing but barriers of the block stands between an init and the first copy.
//
//     memcpy_async               all kernels that are right, with their numbers
//     memcpy_async NAME 0|1      NAME's kernel, as it is (with a mistake) or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

#include "../check.h"
#include "../fault_run.h"

#pragma nv_diag_suppress static_var_with_dynamic_init

// clang-format off
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr unsigned n = 128, tiles = 4, bytes = n * sizeof(int);
#define ALIGNED cuda::aligned_size_t<16>(bytes)
#define KERNEL(name) template <bool mended> __global__ void name(int *out, const int *in)
#define BEGIN(count) __shared__ Barrier bar; __shared__ alignas(16) int tile[n]; const unsigned t = threadIdx.x; const auto block = cg::this_thread_block(); if (t == 0) init(&bar, count); block.sync();

KERNEL(by_the_block) {
    BEGIN(n)
    int sum = 0;
    for (unsigned i = 0; i < tiles; ++i) {
        cuda::memcpy_async(block, tile, in + i * n, ALIGNED, bar);  //! by_the_block shared_race: nothing orders the two
        bar.arrive_and_wait();
        sum += tile[n - 1 - t];  //~ by_the_block
        if constexpr (mended) block.sync();
    }
    out[t] = sum;
}

KERNEL(by_each_thread) {
    BEGIN(n)
    int sum = 0;
    __shared__ alignas(16) int4 own[n];
    for (unsigned i = 0; i < tiles; ++i) {
        cuda::memcpy_async(&own[t], reinterpret_cast<const int4 *>(in + i % 2 * n) + t % 32, cuda::aligned_size_t<16>(16), bar);  //~ by_each_thread
        if constexpr (mended) bar.arrive_and_wait(); else (void)bar.arrive();
        sum += own[n - 1 - t].y;  //! by_each_thread shared_race or async_pending: nothing orders the two or may still be writing
        bar.arrive_and_wait();
    }
    out[t] = sum;
}

KERNEL(announced_by_hand) {
    BEGIN(n)
    Barrier::arrival_token token;
    if (t == 0) {
        cuda::device::memcpy_async_tx(tile, in, ALIGNED, bar);  //~ announced_by_hand
        token = cuda::device::barrier_arrive_tx(bar, 1, bytes);
    } else {
        token = bar.arrive(1);
    }
    if constexpr (mended) bar.wait(std::move(token));
    out[t] = tile[n - 1 - t];  //! announced_by_hand shared_race or async_pending: nothing orders the two or may still be writing
}

KERNEL(too_many_bytes_announced) {  // its wait looks at a clock between two tries
    BEGIN(n)
    Barrier::arrival_token token;
    if (t == 0) {
        cuda::device::memcpy_async_tx(tile, in, ALIGNED, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, mended ? bytes : bytes + 16);
    } else {
        token = bar.arrive(1);
    }
    bar.wait(std::move(token));  //! too_many_bytes_announced deadlock: 16 bytes
    out[t] = tile[n - 1 - t];
}

KERNEL(by_each_warp) {
    __shared__ Barrier bars[n / 32];
    __shared__ alignas(16) int tile[n];
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const unsigned w = warp.meta_group_rank(), t = threadIdx.x;
    if (warp.thread_rank() == 0) init(&bars[w], 32);
    warp.sync();
    cuda::memcpy_async(warp, tile + 32 * w, in + 32 * w, cuda::aligned_size_t<16>(128), bars[w]);  //~ by_each_warp
    bars[w].arrive_and_wait();
    out[t] = tile[mended ? t ^ 31 : (t + 32) % n];  //! by_each_warp shared_race or async_pending: nothing orders the two or may still be writing
}

KERNEL(one_arrival) {
    BEGIN(1)
    int sum = 0;
    for (unsigned i = 0; i < tiles; ++i) {
        if (t == 0) {
            cuda::memcpy_async(tile, in + i * n, ALIGNED, bar);  //~ one_arrival
            (void)bar.arrive();
        }
        bar.wait_parity(mended ? i % 2 : (i + 1) % 2);
        sum += tile[n - 1 - t];  //! one_arrival shared_race or async_pending: nothing orders the two or phase before the first
        block.sync();
    }
    out[t] = sum;
}

KERNEL(piped) {
    constexpr unsigned stages = 2;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ alignas(16) int buffer[stages][n];
    const unsigned t = threadIdx.x;
    const auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (unsigned i = 0, asked = 0; i < tiles; ++i) {
        for (; asked < tiles && asked < i + stages; ++asked) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, buffer[asked % stages], in + asked * n, ALIGNED, pipe);  //! piped shared_race: nothing orders the two
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        if constexpr (!mended) pipe.consumer_release();
        sum += buffer[i % stages][n - 1 - t];  //~ piped
        if constexpr (mended) pipe.consumer_release();
    }
    out[t] = sum;
}

KERNEL(by_a_group) {
    BEGIN(n)
    int sum = 0;
    for (unsigned i = 0; i < tiles; ++i) {
        cg::memcpy_async(block, tile, in + i * n, ALIGNED);  //~ by_a_group
        if constexpr (mended) cg::wait(block); else block.sync();
        sum += tile[n - 1 - t];  //! by_a_group async_pending: has executed no cp.async.wait_group or wait_all
        block.sync();
    }
    out[t] = sum;
}
// clang-format on

using Kernel = void (*)(int *, const int *);
#define CASE(name)                  \
    {                               \
        #name, {                    \
            name<false>, name<true> \
        }                           \
    }
const struct {
    const char *name;
    Kernel kernel[2];
} cases[] = {
    CASE(by_the_block),
    CASE(by_each_thread),
    CASE(announced_by_hand),
    CASE(too_many_bytes_announced),
    CASE(by_each_warp),
    CASE(one_arrival),
    CASE(piped),
    CASE(by_a_group),
};

// What thread t of the mended kernel writes.
int expected(const char *name, const std::vector<int> &in, unsigned t) {
    int sum = 0;
    if (!std::strcmp(name, "by_each_warp")) return in[t ^ 31];
    for (unsigned i = 0; i < tiles; ++i)
        sum += !std::strcmp(name, "by_each_thread") ? in[i % 2 * n + (n - 1 - t) % 32 * 4 + 1] : in[i * n + n - 1 - t];
    return std::strstr(name, "announced") ? in[n - 1 - t] : sum;
}

int main(int argc, char **argv) {
    int *in, *out;
    CHECK(cudaMalloc(&in, tiles * bytes));
    CHECK(cudaMalloc(&out, bytes));
    std::vector<int> values(tiles * n), found(n);
    for (unsigned i = 0; i < values.size(); ++i) values[i] = int(i * i % 1001);
    for (const auto &it : cases) {
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, bytes, [&](bool numbers) { put_numbers(in, tiles * bytes, numbers); },
                [&](bool mended) { it.kernel[mended]<<<1, n>>>(out, in); });
        if (argc > 1) continue;
        CHECK(cudaMemcpy(in, values.data(), tiles * bytes, cudaMemcpyHostToDevice));
        it.kernel[1]<<<1, n>>>(out, in);
        CHECK(cudaMemcpy(found.data(), out, bytes, cudaMemcpyDeviceToHost));
        for (unsigned t = 0; t < n; ++t)
            if (found[t] != expected(it.name, values, t)) return std::printf("%s: thread %u\n", it.name, t), 1;
    }
    std::printf("OK\n");
    return argc > 1 ? 2 : 0;
}
