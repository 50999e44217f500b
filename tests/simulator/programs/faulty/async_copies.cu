// cp.async whose bytes are used too early or overwritten: a program with the fault, and without it by -DMENDED.
#include <cuda_runtime.h>

#include <cstdio>

#include "../programs.h"

#define COPY16(to, from)                                                                                              \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) \
                 : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

// The next copy starts while other warps still read its buffer.
namespace async_buffer_still_read {

__global__ void load(float *out, const float *in, int tiles) {
    __shared__ alignas(16) float s[256];
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < tiles; ++k) {
        COPY16(&s[4 * threadIdx.x], in + k * 256 + 4 * threadIdx.x);  //~ the copy
        COMMIT();
        WAIT(0);
        __syncthreads();
        sum += s[255 - threadIdx.x];  //! shared_race or async_pending: cp.async
#ifdef MENDED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = sum;
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 64>>>(b, a, 3);
    return ended();
}

}  // namespace async_buffer_still_read

// wait_group speaks for the calling thread only.
namespace async_no_barrier {

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[32];
    if (threadIdx.x < 8) COPY16(&s[4 * threadIdx.x], in + 4 * threadIdx.x);  //~ the copy
    COMMIT();
    WAIT(0);
#ifdef MENDED
    __syncwarp();
#endif
    // clang-format off
    out[threadIdx.x] = s[31 - threadIdx.x];  //! shared_race or async_pending: filled by the cp.async or cp.async | speaks for the copying thread only or may still be writing
    // clang-format on
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 32>>>(b, a);
    return ended();
}

}  // namespace async_no_barrier

// cp.async, a barrier, and nobody waited for the copies.
namespace async_no_wait {

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[256];
    COPY16(&s[4 * threadIdx.x], in + 4 * threadIdx.x);  //~ the copy
    COMMIT();
#ifdef MENDED
    WAIT(0);
#endif
    __syncthreads();
    // clang-format off
    out[threadIdx.x] = s[255 - threadIdx.x];  //! async_pending: read | bytes that cp.async at | may still be writing | has executed no cp.async.wait_group since; this read needs the newest of its groups
    // clang-format on
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace async_no_wait

// A plain store into bytes that a copy still fills.
namespace async_overwritten {

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[256];
    COPY16(&s[4 * threadIdx.x], in + 4 * threadIdx.x);  //~ the copy
    COMMIT();
#ifdef MENDED
    WAIT(0);
#endif
    s[4 * threadIdx.x] = 0;  //! async_pending: write | may still be writing | the same thread
    WAIT(0);
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace async_overwritten

// A wait that leaves more groups in flight than the reads behind it may miss.
namespace async_second_newest {

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[3][256];
    COPY16(&s[0][4 * threadIdx.x], in + 4 * threadIdx.x);
    COMMIT();
    COPY16(&s[1][4 * threadIdx.x], in + 256 + 4 * threadIdx.x);  //~ the copy
    COMMIT();
    COPY16(&s[2][4 * threadIdx.x], in + 512 + 4 * threadIdx.x);
    COMMIT();
#ifdef MENDED
    WAIT(1);
#else
    WAIT(2);  //~ the wait
#endif
    __syncthreads();
    // clang-format off
    out[threadIdx.x] = s[1][255 - threadIdx.x];  //! async_pending: `cp.async.wait_group 2` at | leaves the newest two groups of thread | in flight, and this read needs the second newest
    // clang-format on
    WAIT(0);
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace async_second_newest

// "wait_group 1 waits for one group": it leaves one in flight.
namespace async_wrong_group {

__global__ void load(float *out, const float *in) {
    __shared__ alignas(16) float s[2][256];
    COPY16(&s[0][4 * threadIdx.x], in + 4 * threadIdx.x);
    COMMIT();
    COPY16(&s[1][4 * threadIdx.x], in + 256 + 4 * threadIdx.x);  //~ the copy
    COMMIT();
    WAIT(1);
    __syncthreads();
    float v = s[0][threadIdx.x];
#ifdef MENDED
    WAIT(0);
    __syncthreads();
#endif
    out[threadIdx.x] = v + s[1][255 - threadIdx.x];  //! async_pending: in flight, and this read needs the newest
}

int main() {
    const auto [b, a] = arrays();
    load<<<1, 64>>>(b, a);
    return ended();
}

}  // namespace async_wrong_group

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(async_buffer_still_read),
                         PROGRAM(async_no_barrier),
                         PROGRAM(async_no_wait),
                         PROGRAM(async_overwritten),
                         PROGRAM(async_second_newest),
                         PROGRAM(async_wrong_group),
                     });
}
