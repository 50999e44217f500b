// Addresses that are wrong, and reads of what no thread has written: a program with the fault, and without it by
// -DMENDED.
#include <cuda_runtime.h>

#include <stdlib.h>
#include <cstdio>

#include "../programs.h"

// A null pointer.
namespace address_null {

__global__ void fill(float *a) {
    a[threadIdx.x] = 1;  //! invalid_address: null
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    fill<<<1, 32>>>(a);
#else
    fill<<<1, 32>>>(nullptr);
#endif
    return ended();
}

}  // namespace address_null

// A pointer from malloc given to a kernel.
namespace address_of_host {

__global__ void fill(float *a) {
    a[threadIdx.x] = 1;  //! out_of_bounds or invalid_address: 0x or address
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    fill<<<1, 32>>>(a);
#else
    fill<<<1, 32>>>((float *)malloc(4096));
#endif
    return ended();
}

}  // namespace address_of_host

// The left neighbour of the first element.
namespace bounds_before_start {

__global__ void differences(float *out, const float *in, int n) {
    int i = threadIdx.x;
#ifdef MENDED
    if (i > 0)
#endif
        out[i] = in[i] - in[i - 1];  //! out_of_bounds: before
}

int main() {
    const auto [b, a] = arrays();
    float *first;
    cudaMalloc(&first, 64 * sizeof(float));
    cudaMemset(first, 0, 64 * sizeof(float));
    differences<<<1, 64>>>(b, first, 64);
    return ended();
}

}  // namespace bounds_before_start

// The launch asks for less dynamic shared memory than the kernel uses.
namespace bounds_dynamic_shared {

__global__ void use(float *out, const float *in) {
    extern __shared__ float s[];
    s[threadIdx.x] = in[threadIdx.x];  //! out_of_bounds: past the end
    __syncthreads();
    out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
#ifdef MENDED
constexpr int kBytes = 128 * sizeof(float);
#else
constexpr int kBytes = 128;
#endif

int main() {
    const auto [b, a] = arrays();
    use<<<1, 128, kBytes>>>(b, a);
    return ended();
}

}  // namespace bounds_dynamic_shared

// The kernel uses memory that has been freed.
namespace bounds_freed {

__global__ void fill(float *a) {
    a[threadIdx.x] = 1;  //! out_of_bounds or invalid_address: freed
}

int main() {
    const auto [b, a] = arrays();
    float *gone;
    cudaMalloc(&gone, 4096);
#ifndef MENDED
    cudaFree(gone);
#endif
    fill<<<1, 32>>>(gone);
    return ended();
}

}  // namespace bounds_freed

// No test against n: the last block runs past the allocation.
namespace bounds_one_too_many {

__global__ void increment(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i < n)
#endif
        a[i] += 1;  //! out_of_bounds: past the end
}

int main() {
    const auto [b, a] = arrays();
    float *exact;
    cudaMalloc(&exact, 1000 * sizeof(float));
    cudaMemset(exact, 0, 1000 * sizeof(float));
    increment<<<8, 128>>>(exact, 1000);
    return ended();
}

}  // namespace bounds_one_too_many

// Shared memory has no room for the halo.
namespace bounds_shared {

__global__ void halo(float *out, const float *in) {
#ifdef MENDED
    __shared__ float s[66];
#else
    __shared__ float s[64];
#endif
    for (int i = threadIdx.x; i < 66; i += 64) s[i] = in[i];  //! out_of_bounds: past the end
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}

int main() {
    const auto [b, a] = arrays();
    halo<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace bounds_shared

// A float4 from an address that is no multiple of 16.
namespace misaligned_vector {

__global__ void load(float *out, const float *in, int shift) {
    float4 v = *reinterpret_cast<const float4 *>(in + shift + 4 * threadIdx.x);  //! misaligned: 16
    out[threadIdx.x] = v.x + v.w;
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    load<<<1, 32>>>(b, a, 4);
#else
    load<<<1, 32>>>(b, a, 1);
#endif
    return ended();
}

}  // namespace misaligned_vector

// A shared counter that nobody set to zero.
namespace uninitialized_counter {

__global__ void count(float *out, const float *in) {
    __shared__ int counter;
#ifdef MENDED
    if (threadIdx.x == 0) counter = 0;
    __syncthreads();
#endif
    if (in[threadIdx.x] > 20) atomicAdd(&counter, 1);  //! uninitialized_shared: no thread has written
    __syncthreads();
    if (threadIdx.x == 0) *out = counter;
}

int main() {
    const auto [b, a] = arrays();
    count<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace uninitialized_counter

// The tile has 64 places, 50 are filled, all are added up.
namespace uninitialized_tail {

__global__ void sum_tile(float *out, const float *in, int n) {
    __shared__ float s[64];
#ifdef MENDED
    s[threadIdx.x] = threadIdx.x < n ? in[threadIdx.x] : 0;
#else
    if (threadIdx.x < n) s[threadIdx.x] = in[threadIdx.x];
#endif
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += s[i];  //! uninitialized_shared: read | no thread has written
    out[threadIdx.x] = sum;
}

int main() {
    const auto [b, a] = arrays();
    sum_tile<<<1, 64>>>(b, a, 50);
    return ended();
}

}  // namespace uninitialized_tail

// A product reads one column too many: behind the tile lies the next variable, in the block's memory as well.
namespace bounds_next_variable {

__global__ void products(float *out, const float *in, int columns) {
    __shared__ float a[64];
    __shared__ float b[64];
    const int t = threadIdx.x, row = t / 8 * 8;
    a[t] = in[t];
    b[t] = in[t];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < columns; ++k) sum += a[row + k];  //! out_of_bounds: 256-byte shared variable a, in b
    out[t] = sum * b[t];
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    products<<<1, 64>>>(b, a, 8);
#else
    products<<<1, 64>>>(b, a, 9);
#endif
    return ended();
}

}  // namespace bounds_next_variable

// The element before dynamic shared memory is the last of a variable.
namespace bounds_previous_variable {

__global__ void differences(float *out, const float *in) {
    __shared__ int bins[64];
    extern __shared__ float tile[];
    const int t = threadIdx.x;
    tile[t] = in[t];
    bins[t] = 0;
    __syncthreads();
    atomicAdd(bins + t / 2, 1);
    __syncthreads();
#ifdef MENDED
    if (t > 0)
#endif
        out[t] = tile[t] - tile[t - 1];  //! out_of_bounds: 4 bytes before the start | variable tile, in bins
    out[t] += bins[t];
}

int main() {
    const auto [b, a] = arrays();
    differences<<<1, 64, 256>>>(b, a);
    return ended();
}

}  // namespace bounds_previous_variable

// A tile for 64 threads and a block of 128. The launch brings dynamic shared memory, for which the kernel has no name:
// what is stored past the tile lies in the block's memory.
namespace bounds_unnamed_memory {

__global__ void reversed(float *out, const float *in) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[t];  //! out_of_bounds: 256-byte shared variable tile, where no variable is
    __syncthreads();
    if (t < 64) out[t] = tile[63 - t];
}

int main() {
    const auto [b, a] = arrays();
#ifdef MENDED
    reversed<<<1, 64, 1024>>>(b, a);
#else
    reversed<<<1, 128, 1024>>>(b, a);
#endif
    return ended();
}

}  // namespace bounds_unnamed_memory

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(address_null),
                         PROGRAM(address_of_host),
                         PROGRAM(bounds_before_start),
                         PROGRAM(bounds_dynamic_shared),
                         PROGRAM(bounds_freed),
                         PROGRAM(bounds_one_too_many),
                         PROGRAM(bounds_shared),
                         PROGRAM(misaligned_vector),
                         PROGRAM(uninitialized_counter),
                         PROGRAM(uninitialized_tail),
                         PROGRAM(bounds_next_variable),
                         PROGRAM(bounds_previous_variable),
                         PROGRAM(bounds_unnamed_memory),
                     });
}
