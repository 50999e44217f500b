// Waits that tell less than they seem to, one in each kernel, and the same kernel with one that tells enough.
//
//     waits NAME 0|1        runs NAME's kernel with two blocks of 64 threads, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "../mbarrier.h"

// clang-format off
constexpr unsigned n = 64, bytes = n * sizeof(float);
#define KERNEL(name) template <bool mended> __global__ void name(float *out, const float *in, unsigned *flag)
#define BUFFER __shared__ alignas(128) float buffer[n]; const unsigned t = threadIdx.x, b = blockIdx.x; (void)b; (void)flag;
#define FENCE() __threadfence()  // a macro, so that it has the line of its kernel
#define TRY_WAIT(bar, parity) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%0], %1; }" ::"r"(SHARED(bar)), "r"(parity) : "memory")

KERNEL(result_not_looked_at) {  // try_wait gives up after some time
    BUFFER
    __shared__ uint64_t bar;
    if (t == 0) { INIT(&bar, 1); FENCE_INIT(); }
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in, bytes, &bar);
    }
    if constexpr (mended) WAIT(&bar, 0);
    else TRY_WAIT(&bar, 0);  //! result_not_looked_at mbarrier: nothing looks at its result | ask again until it says true
    out[b * n + t] = buffer[t];
}

// What the first block has stored or added by a bulk copy, the other one reads once it is told.
#define TELL() FENCE(); atomicExch(flag, 1)
#define BE_TOLD() if (t == 0) { while (atomicAdd(flag, 0) == 0); FENCE(); } __syncthreads()
#define ADD(to, from, bytes) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(SHARED(from)), "r"(bytes) : "memory")

KERNEL(told_before_it_is_written) {
    BUFFER
    if (b == 0) {
        buffer[t] = in[t];
        FENCE_PROXY();
        __syncthreads();
        if (t) return;
        STORE(out, buffer, bytes);  //~ told_before_it_is_written
        COMMIT();
        if constexpr (mended) WAIT_GROUP();
        else WAIT_GROUP_READ();
        TELL();
    } else {
        BE_TOLD();
        out[n + t] = out[t];  //! told_before_it_is_written global_race: cp.async.bulk.wait_group without .read
    }
}

KERNEL(told_before_it_is_added) {
    BUFFER
    if (b == 0) {
        buffer[t] = in[t];
        FENCE_PROXY();
        __syncthreads();
        if (t) return;
        ADD(out, buffer, bytes);  //~ told_before_it_is_added
        COMMIT();
        if constexpr (mended) WAIT_GROUP();
        else WAIT_GROUP_READ();
        TELL();
    } else {
        BE_TOLD();
        out[n + t] = out[t];  //! told_before_it_is_added global_race: cp.async.bulk.wait_group without .read
    }
}
// clang-format on

using Kernel = void (*)(float *, const float *, unsigned *);
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
    CASE(result_not_looked_at),
    CASE(told_before_it_is_written),
    CASE(told_before_it_is_added),
};

int main(int argc, char **argv) {
    float *in, *out;
    unsigned *flag;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, 2 * bytes);
    cudaMalloc(&flag, sizeof *flag);
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, 2 * bytes,
                [&](bool numbers) {
                    put_numbers(in, bytes, numbers);
                    cudaMemset(out, 0, 2 * bytes);
                    cudaMemset(flag, 0, sizeof *flag);
                },
                [&](bool mended) { it.kernel[mended]<<<2, n>>>(out, in, flag); });
    return 2;
}
