// What `make bench-sim` times on the simulator: kernels whose blocks meet in global memory, and many short launches.
// workloads NAME BLOCKS REPETITIONS: runs the workload with so many blocks, again and again, and prints the seconds of
// each repetition in a line.
#include <cooperative_groups.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        const cudaError_t error = (call);                                                  \
        if (error != cudaSuccess) {                                                        \
            std::fprintf(stderr, "workloads: %s: %s\n", #call, cudaGetErrorString(error)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

constexpr int kThreads = 128, kBins = 256, kEach = 64, kSteps = 16, kLaunches = 100;

__device__ unsigned mixed(unsigned x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    return x ^ x >> 15;
}

__global__ void histogram(unsigned *bins) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < kEach; ++i) {
        x = mixed(x + 1);
        atomicAdd(bins + x % kBins, 1u);
    }
}

// Each warp adds one float to the sum, after some work.
__global__ void float_sum(float *sum) {
    float x = 0, step = 1.0f / (1 + threadIdx.x);
    for (int i = 0; i < 40 * kEach; ++i) x = x * 0.5f + step;
    for (int offset = 16; offset; offset /= 2) x += __shfl_down_sync(~0u, x, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, x);
}

// Nothing but float additions: what keeps blocks in order.
__global__ void float_scatter(float *bins) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < kEach; ++i) {
        x = mixed(x + 1);
        atomicAdd(bins + x % kBins, 1.0f);
    }
}

__global__ void work_queue(unsigned *next, unsigned *done, unsigned items) {
    __shared__ unsigned item;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) item = atomicAdd(next, 1);
        __syncthreads();
        if (item >= items) return;
        unsigned x = item + threadIdx.x;
        for (unsigned i = 0; i < 200 + item % 7 * 100; ++i) x = mixed(x);
        if (__syncthreads_or(x == 12345)) continue;  // all of the work counts
        if (threadIdx.x == 0) done[item] = 1;
    }
}

// A smoothing step over a ring for each grid.sync().
__global__ void grid_sync(float *from, float *to, int each) {
    const auto grid = cooperative_groups::this_grid();
    const int size = gridDim.x * blockDim.x * each;
    for (int step = 0; step < kSteps; ++step) {
        for (int i = grid.thread_rank(); i < size; i += grid.size()) {
            to[i] = 0.25f * from[(i + size - 1) % size] + 0.5f * from[i] + 0.25f * from[(i + 1) % size];
        }
        grid.sync();
        float *const other = from;
        from = to;
        to = other;
    }
}

__global__ void short_launch(float *out) {
    __shared__ float tile[kThreads];
    float sum = 0;
    for (int i = 0; i < 8; ++i) {
        tile[threadIdx.x] = float(i + threadIdx.x % 3);
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += tile[(threadIdx.x + k) % kThreads];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] += sum;
}

void run(const char *name, unsigned blocks, std::byte *memory, size_t bytes) {
    const auto is = [&](const char *other) { return std::strcmp(name, other) == 0; };
    auto *const words = reinterpret_cast<unsigned *>(memory);
    auto *const floats = reinterpret_cast<float *>(memory);
    if (is("histogram")) {
        histogram<<<blocks, kThreads>>>(words);
    } else if (is("float_sum")) {
        float_sum<<<blocks, kThreads>>>(floats);
    } else if (is("float_scatter")) {
        float_scatter<<<blocks, kThreads>>>(floats);
    } else if (is("work_queue")) {
        work_queue<<<(blocks + 7) / 8, kThreads>>>(words, words + 1, blocks);
    } else if (is("grid_sync")) {
        float *from = floats, *to = floats + bytes / 8;
        int each = kEach / 4;
        void *arguments[] = {&from, &to, &each};
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_sync), blocks, kThreads, arguments));
    } else if (is("short_launches")) {
        for (int i = 0; i < kLaunches; ++i) short_launch<<<blocks, kThreads>>>(floats);
    } else {
        std::fprintf(stderr, "workloads: there is no workload %s\n", name);
        std::exit(2);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

int main(int count, char **arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: workloads NAME BLOCKS REPETITIONS\n");
        return 2;
    }
    const unsigned blocks = unsigned(std::atoi(arguments[2]));
    const size_t bytes = std::max<size_t>(kBins * 4 + 4, blocks * size_t(kThreads) * kEach * 2);
    std::byte *memory;
    CHECK(cudaMalloc(&memory, bytes));
    for (int i = std::atoi(arguments[3]); i; --i) {
        CHECK(cudaMemset(memory, 0, bytes));
        const auto begin = std::chrono::steady_clock::now();
        run(arguments[1], blocks, memory, bytes);
        std::printf("%.6f ", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::puts("");
    return 0;
}
