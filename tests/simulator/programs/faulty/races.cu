// Accesses that nothing orders: a program with the fault, and without it by -DMENDED.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>

#include "../programs.h"

// There is a barrier behind the write, and one behind the read: none that both threads pass in between.
namespace race_barrier_of_the_writer {

__global__ void swap(float *out, const float *in) {
    __shared__ float s[32];
    float x = in[threadIdx.x];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x;  //~ the write
        __syncthreads();     //~ the barrier of the writer
    } else {
#ifdef MENDED
        __syncthreads();
#endif
        // clang-format off
        x += s[63 - threadIdx.x];  //! shared_race: comes to the `__syncthreads()` at | after its write, but thread | passes none with it before its read. Both must pass one between
        // clang-format on
#ifndef MENDED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = x;
}

int main() {
    const auto [b, a] = arrays();
    swap<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_barrier_of_the_writer

// A warp writes behind its bar.arrive: the barrier does not order that, however late the others come to it.
namespace race_behind_arrival {

__global__ void handed_over(float *out, const float *in) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
#ifdef MENDED
        s[threadIdx.x] = in[threadIdx.x];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
#else
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        s[threadIdx.x] = in[threadIdx.x];  //~ the write
#endif
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = s[threadIdx.x - 32];  //! shared_race: read | nothing orders the two
    }
    __syncthreads();
}

int main() {
    const auto [b, a] = arrays();
    handed_over<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_behind_arrival

// Threads count before the last bin is zero.
namespace race_bins_not_cleared_yet {

__global__ void histogram(float *out, const float *in) {
    __shared__ int bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;  //~ the write
#ifdef MENDED
    __syncthreads();
#endif
    atomicAdd(&bins[int(in[threadIdx.x])], 1);  //! shared_race: atomic update or updated
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}

int main() {
    const auto [b, a] = arrays();
    histogram<<<1, 256>>>(b, a);
    return ended();
}

}  // namespace race_bins_not_cleared_yet

// What is not wanted goes to one slot behind the tile. Nobody reads it, but the lanes store different values there.
namespace race_discard_slot {

__global__ void odd_ones(int *out, const int *in) {
    __shared__ int kept[33];
    const int lane = threadIdx.x, x = in[lane];
    const unsigned odd = __ballot_sync(~0u, x % 2), before = odd & ((1u << lane) - 1);
    const int place = x % 2 ? __popc(before) : 32;
#ifdef MENDED
    if (place < 32) kept[place] = x;
#else
    kept[place] = x;  //! shared_race: write | wrote | different values | does no harm only where nobody reads it
#endif
    __syncwarp();
    out[lane] = lane < __popc(odd) ? kept[lane] : 0;
}

int main() {
    int in[32], out[32], *a, *b;
    for (int i = 0; i < 32; ++i) in[i] = i * 5 % 32;
    cudaMalloc(&a, sizeof in);
    cudaMalloc(&b, sizeof in);
    cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice);
    odd_ones<<<1, 32>>>(b, a);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    if (error != cudaSuccess) return 3;
    cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0, n = 0; i < 32; ++i)
        if (in[i] % 2 && out[n++] != in[i]) return printf("wrong at %d\n", i), 1;
    return 0;
}

}  // namespace race_discard_slot

// A warp writes and exits. A barrier for a number of threads waits for those who come to it, and orders what they did:
// nothing of what an exited warp has done. (A __syncthreads() would.)
namespace race_exited_warp {

__global__ void left_behind(float *out, const float *in) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];  //~ the write
        return;
    }
#ifdef MENDED
    __syncthreads();
#else
    asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
    out[threadIdx.x] = s[threadIdx.x % 32];  //! shared_race: read | nothing orders the two
}

int main() {
    const auto [b, a] = arrays();
    left_behind<<<1, 96>>>(b, a);
    return ended();
}

}  // namespace race_exited_warp

// A volatile flag tells that data is there, but no fence keeps data and flag in order.
namespace race_flag_without_fence {

__global__ void handshake(float *out, const float *in) {
    __shared__ float data;
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = in[5];  //~ the write
#ifdef MENDED
        __threadfence_block();
#endif
        ready = 1;
    }
    if (threadIdx.x == 0) {
        while (ready == 0) {
        }
#ifdef MENDED
        __threadfence_block();
#endif
        out[0] = data;  //! shared_race: read | wrote | nothing orders the two
    }
}

int main() {
    const auto [b, a] = arrays();
    handshake<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_flag_without_fence

// The bins are read before all threads have counted.
namespace race_histogram {

__global__ void histogram(float *out, const float *in) {
    __shared__ int bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[int(in[threadIdx.x])], 1);  //~ the update
#ifdef MENDED
    __syncthreads();
#endif
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];  //! shared_race: updated or may still be reading
}

int main() {
    const auto [b, a] = arrays();
    histogram<<<1, 256>>>(b, a);
    return ended();
}

}  // namespace race_histogram

// A plain look whether the maximum is to be raised, while others raise it.
namespace race_look_at_a_maximum {

__global__ void greatest(float *out, const float *in) {
    __shared__ int most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    const int x = int(in[threadIdx.x * 5 % 64]);
#ifdef MENDED
    if (x > *(volatile int *)&most) atomicMax(&most, x);
#else
    if (x > most) atomicMax(&most, x);  //! shared_race: atomic update or updated | only decides whether to update
#endif
    __syncthreads();
    out[threadIdx.x] = float(most);
}

int main() {
    const auto [b, a] = arrays();
    greatest<<<1, 128>>>(b, a);
    return ended();
}

}  // namespace race_look_at_a_maximum

// A warp exchanges values through shared memory and trusts that its lanes run in step.
namespace race_lockstep {

__global__ void rotate(float *out, const float *in) {
    __shared__ float s[32];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncwarp();
#endif
    out[threadIdx.x] =
        s[(threadIdx.x + 1) % 32];  //! shared_race: read | Lanes of a warp | __syncwarp() or __syncthreads() is missing
}

int main() {
    const auto [b, a] = arrays();
    rotate<<<1, 32>>>(b, a);
    return ended();
}

}  // namespace race_lockstep

// A tile is read before all threads have filled it.
namespace race_missing_barrier {

__global__ void reverse(float *out, const float *in) {
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncthreads();
#endif
    out[threadIdx.x] = s[127 - threadIdx.x];  //! shared_race: read | wrote or writes | __syncthreads() is missing
}

int main() {
    const auto [b, a] = arrays();
    reverse<<<1, 128>>>(b, a);
    return ended();
}

}  // namespace race_missing_barrier

// The last steps of a tree without barriers, and without volatile: "a warp runs in step".
namespace race_reduction_last_warp {

__global__ void reduce(float *out, const float *in) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        float v = s[t] + s[t + 32];
        for (int d = 16; d; d /= 2) {
            s[t] = v;  //! shared_race: __syncwarp() or __syncthreads() is missing
#ifdef MENDED
            __syncwarp();
#endif
            v += s[(t + d) % 32];  //~ the read
#ifdef MENDED
            __syncwarp();
#endif
        }
        if (t == 0) *out = v;
    }
}

int main() {
    const auto [b, a] = arrays();
    reduce<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_reduction_last_warp

// A shuffle between write and read is no barrier for shared memory.
namespace race_shuffle_orders_nothing {

__global__ void shuffled(float *out, const float *in) {
    __shared__ float s[32];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
    float v = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
#ifdef MENDED
    __syncwarp();
#endif
    out[threadIdx.x] = v + s[31 - threadIdx.x];  //! shared_race: read | __syncwarp() or __syncthreads() is missing
}

int main() {
    const auto [b, a] = arrays();
    shuffled<<<1, 32>>>(b, a);
    return ended();
}

}  // namespace race_shuffle_orders_nothing

// The tile of the next step is stored while slower warps still read this one.
namespace race_tile_overwritten {

__global__ void sums(float *out, const float *in, int tiles) {
    __shared__ float tile[64];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; ++k) {
        // clang-format off
        tile[threadIdx.x] = in[k * 64 + threadIdx.x];  //! shared_race: may still be reading or wrote | __syncthreads() is missing | next pass
        // clang-format on
        __syncthreads();
        sum += tile[63 - threadIdx.x];  //~ the read
#ifdef MENDED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = sum;
}

int main() {
    const auto [b, a] = arrays();
    sums<<<1, 64>>>(b, a, 4);
    return ended();
}

}  // namespace race_tile_overwritten

// Sixteen lanes synchronise, thirty-two exchange.
namespace race_tile_too_small {

__global__ void exchange(float *out, const float *in) {
    __shared__ float s[32];
#ifdef MENDED
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
#else
    auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
#endif
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 16];  //! shared_race: read | wrote or writes | Lanes of a warp
}

int main() {
    const auto [b, a] = arrays();
    exchange<<<1, 32>>>(b, a);
    return ended();
}

}  // namespace race_tile_too_small

// Two threads store different values at one address; who wins is chance.
namespace race_two_writers {

__global__ void neighbours(float *out, const float *in) {
    __shared__ float s[64];
    s[threadIdx.x] = 0;
    __syncthreads();
#ifdef MENDED
    if (threadIdx.x % 2 == 0) s[threadIdx.x / 2] = in[threadIdx.x];
#else
    s[threadIdx.x / 2] = in[threadIdx.x];  //! shared_race: write | wrote | Lanes of a warp | not meet at this address
#endif
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

int main() {
    const auto [b, a] = arrays();
    neighbours<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_two_writers

// Every thread adds to one sum without atomics.
namespace race_unlocked_sum {

__global__ void add_up(float *out, const float *in) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
#ifdef MENDED
    atomicAdd(&sum, in[threadIdx.x]);
#else
    sum += in[threadIdx.x];  //! shared_race: wrote or writes or reading
#endif
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}

int main() {
    const auto [b, a] = arrays();
    add_up<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace race_unlocked_sum

// The tile of sums is read before its warp has met.
namespace race_wmma_tile {

using namespace nvcuda;

__global__ void twice(float *out, const half *in) {
    __shared__ __align__(32) float tile[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, in, 16);
    wmma::load_matrix_sync(b, in, 16);
    wmma::fill_fragment(c, 0.0f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);  //~ the write
#ifdef MENDED
    __syncwarp();
#endif
    for (int i = threadIdx.x; i < 256; i += 32)
        out[i] = 2 * tile[i];  //! shared_race: read | wrote or writes | Lanes of a warp
}

int main() {
    half *in;
    float *out;
    cudaMalloc(&in, 256 * sizeof(half));
    cudaMalloc(&out, 256 * sizeof(float));
    cudaMemset(in, 0, 256 * sizeof(half));
    twice<<<1, 32>>>(out, in);
    return ended();
}

}  // namespace race_wmma_tile

// Pairs of warps meet at a barrier of their own, but read what the other pair wrote.
namespace race_wrong_named_barrier {

__global__ void pairs(float *out, const float *in) {
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];  //~ the write
#ifdef MENDED
    __syncthreads();
#else
    asm volatile("bar.sync %0, 64;" ::"r"(1 + threadIdx.x / 64) : "memory");
#endif
    out[threadIdx.x] = s[(threadIdx.x + 64) % 128];  //! shared_race: read | nothing orders the two
}

int main() {
    const auto [b, a] = arrays();
    pairs<<<1, 128>>>(b, a);
    return ended();
}

}  // namespace race_wrong_named_barrier

// The last steps of a sum as it was written before lanes had program counters of their own: volatile, and no barrier.
namespace race_volatile_sum {

__global__ void sum(float *out, const float *in) {
    __shared__ float partial[128];
    const int t = threadIdx.x;
    partial[t] = in[t];
    __syncthreads();
    if (t < 64) partial[t] += partial[t + 64];
    __syncthreads();
    if (t >= 32) return;
#ifdef MENDED
    float mine = partial[t] + partial[t + 32];
    for (int d = 16; d; d /= 2) mine += __shfl_down_sync(0xffffffff, mine, d);
    if (t == 0) *out = mine;
#else
    volatile float *p = partial;
    p[t] += p[t + 32];  //~ the write
    p[t] += p[t + 16];  //! shared_race: Lanes of a warp do not wait | volatile makes the compiler keep both accesses
    p[t] += p[t + 8];
    p[t] += p[t + 4];
    p[t] += p[t + 2];
    p[t] += p[t + 1];
    if (t == 0) *out = p[0];
#endif
}

int main() {
    const auto [b, a] = arrays();
    sum<<<1, 128>>>(b, a);
    return ended();
}

}  // namespace race_volatile_sum

// New weights come while a kernel in another stream still reads the old ones.
namespace race_constants {

__constant__ float weights[64];

__global__ void weighted(float *out, const float *in) {
    out[threadIdx.x] = in[threadIdx.x] * weights[threadIdx.x];  //! launch_race: cudaMemcpyToSymbolAsync | read at
}

int main() {
    const auto [b, a] = arrays();
    float *next;
    cudaMallocHost(&next, sizeof weights);
    for (int i = 0; i < 64; ++i) next[i] = 2;
    cudaMemcpyToSymbol(weights, next, sizeof weights);
    cudaStream_t work, copies;
    cudaStreamCreate(&work);
    cudaStreamCreate(&copies);
    weighted<<<1, 64, 0, work>>>(b, a);
#ifdef MENDED
    cudaStreamSynchronize(work);
#endif
    cudaMemcpyToSymbolAsync(weights, next, sizeof weights, 0, cudaMemcpyHostToDevice, copies);
    return ended();
}

}  // namespace race_constants

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(race_barrier_of_the_writer),
                         PROGRAM(race_behind_arrival),
                         PROGRAM(race_bins_not_cleared_yet),
                         PROGRAM(race_discard_slot),
                         PROGRAM(race_exited_warp),
                         PROGRAM(race_flag_without_fence),
                         PROGRAM(race_histogram),
                         PROGRAM(race_look_at_a_maximum),
                         PROGRAM(race_lockstep),
                         PROGRAM(race_missing_barrier),
                         PROGRAM(race_reduction_last_warp),
                         PROGRAM(race_shuffle_orders_nothing),
                         PROGRAM(race_tile_overwritten),
                         PROGRAM(race_tile_too_small),
                         PROGRAM(race_two_writers),
                         PROGRAM(race_unlocked_sum),
                         PROGRAM(race_wmma_tile),
                         PROGRAM(race_wrong_named_barrier),
                         PROGRAM(race_volatile_sum),
                         PROGRAM(race_constants),
                     });
}
