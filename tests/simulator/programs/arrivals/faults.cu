// Mistakes with mbarriers and bulk copies, one in each kernel, and the same kernel without it.
//
//     faults NAME 0|1        runs NAME's kernel, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "../mbarrier.h"

// clang-format off
#define COPY4(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(SHARED(to)), "l"(from) : "memory")
#define COPIES_ARRIVE(bar) asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(SHARED(bar)) : "memory")

constexpr unsigned n = 256, bytes = n * sizeof(float);
#define KERNEL(name) template <bool mended> __global__ void name(float *out, const float *in, unsigned odd)
#define BUFFER __shared__ alignas(128) float buffer[n]; __shared__ uint64_t bar; const unsigned t = threadIdx.x;
#define BEGIN(count) BUFFER if (t == 0) { INIT(&bar, count); FENCE_INIT(); } __syncthreads();

KERNEL(read_too_early) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in, bytes, &bar);  //~ read_too_early
    }
    if constexpr (mended) WAIT(&bar, 0);
    __syncthreads();
    out[t] = buffer[n - 1 - t];  //! read_too_early async_pending: read | may still be writing: nobody has waited for the phase | for which this thread has not waited
}

KERNEL(wrong_parity) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in, bytes, &bar);  //~ wrong_parity
    }
    WAIT(&bar, mended ? 0 : 1);
    out[t] = buffer[t];  //! wrong_parity async_pending or shared_race: may still be writing or fills by the bulk copy | was for the parity of the phase before the first or for which this thread has not waited
}

KERNEL(forgotten_arrive) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 2);  //~ forgotten_arrive
        FENCE_INIT();
    }
    __syncthreads();
    if (t == 0) buffer[0] = in[0];
    if (t == 0 || (mended && t == 32)) ARRIVE(&bar);
    WAIT(&bar, 0);  //! forgotten_arrive deadlock: nobody can complete phase 0 of the mbarrier at shared 0x | 1 arrival outstanding, initialised at
    out[t] = buffer[0];
}

KERNEL(too_many_bytes_expected) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ too_many_bytes_expected
        FENCE_INIT();
        ARRIVE_EXPECT(&bar, bytes + (mended ? 0 : 4096));
        LOAD(buffer, in, bytes, &bar);
    }
    __syncthreads();
    WAIT(&bar, 0);  //! too_many_bytes_expected deadlock: nobody can complete phase 0 | 4,096 bytes outstanding, initialised at
    out[t] = buffer[t];
}

KERNEL(too_few_bytes_expected) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ too_few_bytes_expected
        FENCE_INIT();
        ARRIVE_EXPECT(&bar, mended ? bytes : bytes / 2);
        LOAD(buffer, in, bytes, &bar);
    }
    __syncthreads();
    WAIT(&bar, 0);  //! too_few_bytes_expected deadlock: nobody can complete phase 0 | the announcement of 512 bytes that have come outstanding
    out[t] = buffer[t];
}

KERNEL(no_bytes_expected) {
    BEGIN(1)
    if (t == 0) {
        if constexpr (mended) ARRIVE_EXPECT(&bar, bytes); else ARRIVE(&bar);
        LOAD(buffer, in, bytes, &bar);  //~ no_bytes_expected
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];  //! no_bytes_expected async_pending: may still be writing | was for phase 0 and the copy belongs to a later one
}

KERNEL(never_initialised) {
    BUFFER
    if (mended && t == 0) INIT(&bar, blockDim.x);
    __syncthreads();
    buffer[t] = in[t];
    ARRIVE(&bar);  //! never_initialised mbarrier: mbarrier.arrive | which no mbarrier.init has initialised
    if constexpr (mended) WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(initialised_twice) {
    BUFFER
    if (t == 0) INIT(&bar, 1);  //~ initialised_twice
    if (t == 0 && !mended) INIT(&bar, blockDim.x);  //! initialised_twice mbarrier: again: a live mbarrier must be ended by mbarrier.inval
    __syncthreads();
    if (t == 0) { buffer[0] = in[0]; ARRIVE(&bar); }
    WAIT(&bar, 0);
    out[t] = buffer[0];
}

KERNEL(not_made_visible) {
    BUFFER
    if (t == 0) INIT(&bar, blockDim.x);  //~ not_made_visible
    if constexpr (mended) __syncthreads();
    buffer[t] = in[t];
    ARRIVE(&bar);  //! not_made_visible mbarrier: mbarrier.arrive | which no mbarrier.init has initialised or __syncthreads() is missing
    WAIT(&bar, 0);
    out[t] = buffer[n / 4 - 1 - t];
}

KERNEL(not_visible_to_the_proxy) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ not_visible_to_the_proxy
        if constexpr (mended) FENCE_INIT();
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in, bytes, &bar);  //! not_visible_to_the_proxy proxy_fence: has executed neither fence.mbarrier_init nor fence.proxy.async since
    }
    __syncthreads();
    WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(read_as_a_number) {
    BUFFER
    if (t == 0) INIT(&bar, blockDim.x);  //~ read_as_a_number
    __syncthreads();
    buffer[t] = in[t];
    ARRIVE(&bar);
    WAIT(&bar, 0);
    out[t] = buffer[n / 4 - 1 - t] + (mended ? 0 : float(*(volatile unsigned *)&bar));  //! read_as_a_number mbarrier: reads | only mbarrier instructions may touch it
}

KERNEL(too_many_arrivals) {
    BUFFER
    if (t == 0) INIT(&bar, 2);  //~ too_many_arrivals
    __syncthreads();
    buffer[t] = in[t];
    if (t == 0) ARRIVE_TIMES(&bar, mended ? 2u : odd * 3u);  //! too_many_arrivals mbarrier: arrives | 3 times | it was initialised for 2
    if (t == 0) WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(plain_arrival_behind_copies) {
    BEGIN(blockDim.x)
    COPY4(&buffer[t], in + t);  //~ plain_arrival_behind_copies
    if constexpr (mended) COPIES_ARRIVE(&bar); else ARRIVE(&bar);
    WAIT(&bar, 0);
    out[t] = buffer[n / 4 - 1 - t];  //! plain_arrival_behind_copies async_pending: may still be writing
}

KERNEL(refilled_while_read) {
    BEGIN(1)
    for (unsigned i = 0; i < 2; ++i) {
        if (t == 0) {
            ARRIVE_EXPECT(&bar, bytes);
            LOAD(buffer, in + i * n, bytes, &bar);  //! refilled_while_read shared_race: bulk copy's write | may still be reading
        }
        WAIT(&bar, i & 1);
        out[t] = buffer[n - 1 - t];  //~ refilled_while_read
        if constexpr (mended) __syncthreads();
    }
}

KERNEL(read_without_having_waited) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in, bytes, &bar);  //~ read_without_having_waited
    }
    if (mended || t < 32) WAIT(&bar, 0);
    out[t] = buffer[t];  //! read_without_having_waited shared_race or async_pending: bulk copy | for which this thread has not waited or It must wait for the copy's phase
}

KERNEL(no_proxy_fence) {
    BUFFER
    (void)bar;
    for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = 2 * in[i];  //~ no_proxy_fence
    if constexpr (mended) FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE(out, buffer, bytes);  //! no_proxy_fence proxy_fence: without a fence.proxy.async behind it | Each thread that writes
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(fence_before_the_writes) {
    BUFFER
    (void)bar;
    if (!mended) FENCE_PROXY();
    for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = 2 * in[i];  //~ fence_before_the_writes
    if (mended) FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE(out, buffer, bytes);  //! fence_before_the_writes proxy_fence: without a fence.proxy.async behind it
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(store_without_a_barrier) {
    BUFFER
    (void)bar;
    for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = 2 * in[i];  //~ store_without_a_barrier
    FENCE_PROXY();
    if constexpr (mended) __syncthreads();
    if (t == 0) {
        STORE(out, buffer, bytes);  //! store_without_a_barrier shared_race or uninitialized_shared: bulk copy
        COMMIT();
        WAIT_GROUP();
    }
    if constexpr (!mended) __syncthreads();
}

KERNEL(source_rewritten) {
    BUFFER
    (void)bar;
    for (unsigned i = 0; i < 2; ++i) {
        for (unsigned j = t; j < n; j += blockDim.x) buffer[j] = i + in[j];  //! source_rewritten async_pending: write | may still be reading: thread 0 | has executed no cp.async.bulk.wait_group since
        FENCE_PROXY();
        __syncthreads();
        if (t == 0) {
            STORE(out, buffer, bytes);  //~ source_rewritten
            COMMIT();
            if constexpr (mended) WAIT_GROUP_READ();
        }
        __syncthreads();
    }
    if (t == 0) WAIT_GROUP();
}

KERNEL(results_read_too_early) {
    BUFFER
    (void)bar;
    for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = 2 * in[i];
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE(out, buffer, bytes);  //~ results_read_too_early
        COMMIT();
        if constexpr (mended) WAIT_GROUP(); else WAIT_GROUP_READ();
    }
    __syncthreads();
    buffer[t] = out[n - 1 - t];  //! results_read_too_early async_pending: global memory that the bulk copy at | waits for its source alone, not for its writes
    out[t] = buffer[t];
    if (t == 0) WAIT_GROUP();
}

KERNEL(misaligned) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes / 2);
        LOAD(buffer + (mended ? 0 : 2 * odd), in, bytes / 2, &bar);  //! misaligned misaligned: the shared address | no multiple of 16
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(odd_size) {
    BEGIN(1)
    if (t == 0) {
        const unsigned size = mended ? 1024 : 1000 * odd;
        ARRIVE_EXPECT(&bar, size);
        LOAD(buffer, in, size, &bar);  //! odd_size misaligned: the size 1000 | no multiple of 16
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(past_the_end) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        LOAD(buffer, in + (mended ? 0 : 2 * n * odd), bytes, &bar);  //! past_the_end out_of_bounds: reads 1024 bytes
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];
}
// clang-format on

using Kernel = void (*)(float *, const float *, unsigned);
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
    CASE(read_too_early),
    CASE(wrong_parity),
    CASE(forgotten_arrive),
    CASE(too_many_bytes_expected),
    CASE(too_few_bytes_expected),
    CASE(no_bytes_expected),
    CASE(never_initialised),
    CASE(initialised_twice),
    CASE(not_made_visible),
    CASE(not_visible_to_the_proxy),
    CASE(read_as_a_number),
    CASE(too_many_arrivals),
    CASE(plain_arrival_behind_copies),
    CASE(refilled_while_read),
    CASE(read_without_having_waited),
    CASE(no_proxy_fence),
    CASE(fence_before_the_writes),
    CASE(store_without_a_barrier),
    CASE(source_rewritten),
    CASE(results_read_too_early),
    CASE(misaligned),
    CASE(odd_size),
    CASE(past_the_end),
};

int main(int argc, char **argv) {
    float *in, *out;
    cudaMalloc(&in, 2 * bytes);
    cudaMalloc(&out, bytes);
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, bytes, [&](bool numbers) { put_numbers(in, 2 * bytes, numbers); },
                [&](bool mended) { it.kernel[mended]<<<1, 64>>>(out, in, 1); });
    return 2;
}
