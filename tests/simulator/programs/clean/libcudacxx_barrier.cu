// cuda::barrier of a block, which is an mbarrier from compute capability 8.0 on: arrivals with tokens, drops,
// completion by copies, a ring of two buffers, a pipeline between warps.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

#include "../check.h"

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
