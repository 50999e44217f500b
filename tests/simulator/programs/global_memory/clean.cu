// Blocks and threads that meet in global memory and are right. "OK" if the numbers are.
#include <cuda_runtime.h>

#include <cuda/atomic>
#include <vector>

#include "../check.h"

constexpr unsigned kBlocks = 24, kThreads = 64, kAll = kBlocks * kThreads;

// Each thread fences its own write, one thread counts the block, and the last block sums; plain reads behind a barrier.
__global__ void last_block_sums(const unsigned *in, unsigned *partial, unsigned *count, unsigned *total) {
    __shared__ bool last;
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    partial[i] = in[i] + 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(count, kBlocks - 1) == kBlocks - 1;
    __syncthreads();
    if (!last) return;
    unsigned sum = 0;
    for (unsigned k = threadIdx.x; k < kAll; k += kThreads) sum += partial[k];
    atomicAdd(total, sum);
    if (threadIdx.x == 0) *count = 0;  // for the next launch: its own update came after all others
}

// A token goes from block to block; a fence by one thread speaks for all that the barrier ordered before it.
__global__ void in_turn(unsigned *row, unsigned *token) {
    if (threadIdx.x == 0) {
        while (*(volatile unsigned *)token != blockIdx.x) {
        }
        __threadfence();
    }
    __syncthreads();
    row[threadIdx.x] = row[threadIdx.x] * 3 + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *(volatile unsigned *)token = blockIdx.x + 1;
    }
}

// What is handed on is handed on by a third: A to B to C.
__global__ void passed_on(unsigned *data, unsigned *flags, unsigned *out) {
    if (threadIdx.x) return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> first(flags[0]), second(flags[1]);
    if (blockIdx.x == 0) {
        data[0] = 7;
        first.store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1) {
        while (first.load(cuda::memory_order_acquire) == 0) {
        }
        second.store(1, cuda::memory_order_release);
    } else {
        while (second.load(cuda::memory_order_acquire) == 0) {
        }
        out[blockIdx.x] = data[0];
    }
}

// What a block has added and stored comes back to another warp of its by the second block.
__global__ void passed_back(unsigned *sums, unsigned *flags, unsigned *out) {
    __shared__ unsigned doubled[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> there(flags[0]), back(flags[1]);
    if (blockIdx.x == 0 && warp == 0) {
        atomicAdd(sums + lane % 8, lane);
        sums[8 + lane] = lane * 3;
        doubled[lane] = lane * 2;
        __syncwarp();
        if (lane == 0) there.store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (there.load(cuda::memory_order_acquire) == 0) {
        }
        atomicAdd(sums, 100);
        back.store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 0) {
        while (back.load(cuda::memory_order_acquire) == 0) {
        }
        out[lane] = sums[lane % 8] + sums[8 + 31 - lane] + doubled[31 - lane];
    }
}

__global__ void locked(unsigned *sum, unsigned *lock) {
    if (threadIdx.x) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *sum = *sum + blockIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}

// A barrier of the grid whose count and sense are neighbours: the last block to arrive sets the count back by a plain
// store. Two rows in turn, so that a block may write the next one while others still read.
__global__ void rounds(unsigned *rows, unsigned *count, unsigned *out, unsigned times) {
    volatile unsigned *sense = count + 1;
    for (unsigned r = 0; r < times; ++r) {
        unsigned *row = rows + r % 2 * gridDim.x;
        if (threadIdx.x == 0) {
            row[blockIdx.x] = blockIdx.x * times + r;
            __threadfence();
            const unsigned before = *sense;
            if (atomicAdd(count, 1) == gridDim.x - 1) {
                *count = 0;
                __threadfence();
                *sense = before + 1;
            } else {
                while (*sense == before) {
                }
            }
            __threadfence();
        }
        __syncthreads();
        if (threadIdx.x < gridDim.x) out[blockIdx.x * kThreads + threadIdx.x] += row[threadIdx.x];
    }
}

// A loop around atomicCAS begins with a plain read, and atomicMax with a look whether it is worth it.
__global__ void checked_reads(double *sum, unsigned *most) {
    auto *bits = reinterpret_cast<unsigned long long *>(sum);
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) + 1.0));
    } while (old != assumed);
    const unsigned mine = blockIdx.x * 7 + threadIdx.x;
    if (mine > *most) atomicMax(most, mine);
}

// A step of a breadth-first search: each thread looks at the neighbours of its node and claims those that nobody has.
// So many meet in one line that the records of the first are gone when the last comes.
__global__ void claim(const unsigned *nodes, unsigned *owner, unsigned *next, unsigned *count) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    for (unsigned k = 0; k < 4; ++k) {
        const unsigned node = nodes[(4 * i + k) % 256];
        if (owner[node] == 0 && atomicCAS(owner + node, 0, i + 1) == 0) next[atomicAdd(count, 1)] = node;
    }
}

// Neighbouring bytes and halves of blocks are different places.
__global__ void bytes_side_by_side(unsigned char *bytes, unsigned short *halves) {
    const unsigned i = threadIdx.x * kBlocks + blockIdx.x;
    bytes[i] = static_cast<unsigned char>(i);
    halves[i] = static_cast<unsigned short>(i * 3);
}

// Rows of a block in global memory, read and written in turns with barriers between.
__global__ void rows_in_place(unsigned *rows) {
    unsigned *row = rows + blockIdx.x * kThreads;
    row[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (unsigned step = 1; step < kThreads; step *= 2) {
        const unsigned left = threadIdx.x >= step ? row[threadIdx.x - step] : 0;
        __syncthreads();
        row[threadIdx.x] += left;
        __syncthreads();
    }
}

int main() {
    unsigned *in, *partial, *words;
    unsigned char *bytes;
    unsigned short *halves;
    CHECK(cudaMalloc(&in, kAll * 4));
    CHECK(cudaMalloc(&partial, kAll * 4));
    CHECK(cudaMalloc(&words, 4096));
    CHECK(cudaMalloc(&bytes, kAll));
    CHECK(cudaMalloc(&halves, kAll * 2));
    CHECK(cudaMemset(in, 0, kAll * 4));
    CHECK(cudaMemset(words, 0, 4096));
    for (int twice = 0; twice < 2; ++twice) last_block_sums<<<kBlocks, kThreads>>>(in, partial, words, words + 1);
    in_turn<<<kBlocks, kThreads>>>(words + 64, words + 2);
    passed_on<<<8, 32>>>(words + 3, words + 4, words + 16);
    locked<<<kBlocks, 32>>>(words + 6, words + 7);
    checked_reads<<<kBlocks, kThreads>>>(reinterpret_cast<double *>(words + 8), words + 10);
    bytes_side_by_side<<<kBlocks, kThreads>>>(bytes, halves);
    rows_in_place<<<kBlocks, kThreads>>>(partial);
    rounds<<<4, kThreads>>>(words + 192, words + 200, words + 256, 5);
    passed_back<<<2, 64>>>(words + 520, words + 580, words + 600);
    std::vector<unsigned> w(1024), p(kAll), nodes(256);
    for (unsigned i = 0; i < 256; ++i) nodes[i] = i * 45 % 200;
    unsigned *graph;
    CHECK(cudaMalloc(&graph, 4096));
    CHECK(cudaMemset(graph, 0, 4096));
    CHECK(cudaMemcpy(graph, nodes.data(), 1024, cudaMemcpyHostToDevice));
    claim<<<kBlocks, kThreads>>>(graph, graph + 256, graph + 512, graph + 1000);
    unsigned claimed = 0;
    CHECK(cudaMemcpy(&claimed, graph + 1000, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(w.data(), words, 4096, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(p.data(), partial, kAll * 4, cudaMemcpyDeviceToHost));
    unsigned row = 0;
    for (unsigned b = 0; b < kBlocks; ++b) row = row * 3 + b;
    double sum;
    __builtin_memcpy(&sum, &w[8], 8);
    const unsigned distinct = 40;  // multiples of 5 below 200
    bool good = claimed == distinct && w[0] == 0 && w[1] == 2 * kAll && w[64] == row && w[127] == row &&
                w[6] == kBlocks * (kBlocks - 1) / 2;
    good = good && sum == double(kAll) && w[10] == (kBlocks - 1) * 7 + kThreads - 1;
    for (unsigned b = 2; b < 8; ++b) good = good && w[16 + b] == 7;
    for (unsigned i = 0; i < 256; ++i) good = good && w[256 + i] == (i % kThreads < 4 ? i % kThreads * 25 + 10 : 0);
    for (unsigned i = 0; i < 32; ++i) good = good && w[600 + i] == i % 8 * 4 + 48 + (i % 8 ? 0 : 100) + (31 - i) * 5;
    for (unsigned i = 0; i < kAll; ++i) good = good && p[i] == i % kThreads * (i % kThreads + 1) / 2;
    std::printf(good ? "OK\n" : "wrong numbers\n");
    return !good;
}
