// Mistakes with wgmma, one in each kernel, and the same kernel without it.
//
//     faults NAME 0|1        runs NAME's kernel, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//? NAME ...` the same of what is a note
// unless WARPSIM_HAZARDS=strict, `//~ NAME` the other line that is named.
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "wgmma.h"

// clang-format off
#define KERNEL(name) template <bool mended> __global__ void __launch_bounds__(256) name(float *out, const uint4 *in)
#define TILES __shared__ alignas(128) uint4 a[kBytesA / 16], b[kBytesB / 16]; __shared__ uint64_t bar; \
    const unsigned t = threadIdx.x; float d[4] = {}; (void)bar;
#define FILL if (t < 128) a[t] = in[t]; if (t < 16) b[t] = in[128 + t];
#define READY FENCE_PROXY(); __syncthreads();
#define BEGIN TILES FILL READY
#define STORE for (int i = 0; i < 4; ++i) out[t * 4 + i] = d[i];

KERNEL(results_read_early) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ results_read_early
    COMMIT();
    if constexpr (mended) WAIT(0);
    out[t] = d[0] + 1;  //? results_read_early async_pending: reads D's register | is in flight: no wgmma.wait_group has covered it
    if constexpr (!mended) WAIT(0);
}

KERNEL(one_group_too_many_in_flight) {
    BEGIN
    float e[4] = {};
    FENCE();
    MMA(d, describe(a), describe(b), 1);
    COMMIT();
    MMA(e, describe(a), describe(b), 1);  //~ one_group_too_many_in_flight
    COMMIT();
    WAIT(mended ? 0 : 1);
    out[t] = d[0] * 2;
    out[t] += e[0] * 2;  //? one_group_too_many_in_flight async_pending: reads D's register
}

KERNEL(results_written_in_flight) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ results_written_in_flight
    COMMIT();
    if constexpr (mended) WAIT(0);
    asm volatile("add.f32 %0, %0, 0f3f800000;" : "+f"(d[1]));  //? results_written_in_flight async_pending: D's register
    if constexpr (!mended) WAIT(0);
    STORE
}

KERNEL(factors_written_in_flight) {
    BEGIN
    unsigned r[4] = {t, t, t, t};
    asm volatile("" : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]));
    FENCE();
    MMA_REGISTERS(d, r, describe(b), 1);  //~ factors_written_in_flight
    COMMIT();
    if constexpr (mended) WAIT(0);
    asm volatile("add.u32 %0, %0, 1;" : "+r"(r[0]));  //? factors_written_in_flight async_pending: A's register
    if constexpr (!mended) WAIT(0);
    STORE
    out[t * 4] += r[0];  // a word of its own: who adds to another thread's races with its store
}

KERNEL(no_fence) {
    BEGIN
    if constexpr (mended) FENCE();
    MMA(d, describe(a), describe(b), 1);  //? no_fence wgmma: with no wgmma.fence behind the kernel's start
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(no_fence_after_an_access) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b), 1);
    COMMIT();
    WAIT(0);
    for (int i = 0; i < 4; ++i) asm volatile("mul.f32 %0, %0, 0f3f000000;" : "+f"(d[i]));  //~ no_fence_after_an_access
    if constexpr (mended) FENCE();
    MMA(d, describe(a), describe(b), 1);  //? no_fence_after_an_access wgmma: with no wgmma.fence behind its access by mul
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(no_commit) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ no_commit
    if constexpr (mended) COMMIT();
    WAIT(0);
    out[t] = d[0] + 1;  //! no_commit async_pending: D's register | no wgmma.commit_group stands between
}

KERNEL(operand_overwritten) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ operand_overwritten
    COMMIT();
    if constexpr (mended) WAIT(0);
    if constexpr (mended) __syncthreads();
    a[t] = in[t + 16];  //! operand_overwritten async_pending: may still be reading | wgmma.wait_group
    WAIT(0);
    STORE
}

KERNEL(operand_overwritten_by_a_copy) {
    TILES
    if (t == 0) { INIT(&bar, 1); FENCE_INIT(); }
    FILL READY
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //~ operand_overwritten_by_a_copy
    COMMIT();
    if constexpr (mended) WAIT(0);
    if constexpr (mended) __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar, kBytesB);
        LOAD(b, in, kBytesB, &bar);  //! operand_overwritten_by_a_copy async_pending: bulk copy's write | may still be reading
    }
    WAIT_PHASE(&bar, 0);
    WAIT(0);
    STORE
}

KERNEL(refilled_without_an_order) {
    BEGIN
    if (t < 128) {
        FENCE();
        MMA(d, describe(a), describe(b), 1);  //~ refilled_without_an_order
        COMMIT();
        WAIT(0);
        STORE
    }
    if constexpr (mended) __syncthreads();
    if (t >= 128) b[t % 16] = in[0];  //! refilled_without_an_order async_pending or shared_race: may still be reading or nothing orders the two
}

KERNEL(no_proxy_fence) {
    TILES
    FILL  //~ no_proxy_fence
    if constexpr (mended) FENCE_PROXY();
    __syncthreads();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! no_proxy_fence proxy_fence: the wgmma at | without a fence.proxy.async behind it
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(one_thread_fences_for_all) {
    TILES
    FILL  //~ one_thread_fences_for_all
    if (mended || t == 0) FENCE_PROXY();
    __syncthreads();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! one_thread_fences_for_all proxy_fence: without a fence.proxy.async behind it
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(fence_behind_the_barrier) {
    TILES
    FILL  //~ fence_behind_the_barrier
    if constexpr (mended) FENCE_PROXY();
    __syncthreads();
    if constexpr (!mended) FENCE_PROXY();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! fence_behind_the_barrier proxy_fence: comes too late, behind the barrier
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(no_barrier) {
    TILES
    FILL  //~ no_barrier
    FENCE_PROXY();
    if constexpr (mended) __syncthreads();
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! no_barrier shared_race: wgmma's read
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(operand_not_there_yet) {
    TILES
    if (t == 0) { INIT(&bar, 1); FENCE_INIT(); }
    FILL READY
    if (t == 0) {
        ARRIVE_EXPECT(&bar, kBytesB);
        LOAD(b, in, kBytesB, &bar);  //~ operand_not_there_yet
    }
    if (mended || t < 32) WAIT_PHASE(&bar, 0);
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! operand_not_there_yet async_pending or shared_race: wgmma's read
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(descriptor_out_of_range) {
    BEGIN
    FENCE();
    MMA(d, describe(a), describe(b) + (mended ? 0 : uint64_t(0x3000)), 1);  //! descriptor_out_of_range out_of_bounds: the descriptor of B | leads out of the block's
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(descriptor_off_its_row) {
    BEGIN
    FENCE();
    const uint64_t layout = mended ? 0 : uint64_t(3) << 62 | 1;
    MMA(d, describe(a) | layout, describe(b), 1);  //! descriptor_off_its_row misaligned: begins 16 bytes off
    COMMIT();
    WAIT(0);
    STORE
}

KERNEL(threads_missing) {
    BEGIN
    if (!mended && t % 128 >= 96) return;
    FENCE();
    MMA(d, describe(a), describe(b), 1);  //! threads_missing missing_lanes: needs all 128 threads of its warpgroup or waits for
    COMMIT();
    WAIT(0);
    STORE
}
// clang-format on

#define CASE(name) {#name, name<false>, name<true>}
struct Case {
    const char *name;
    void (*faulty)(float *, const uint4 *), (*mended)(float *, const uint4 *);
} const kCases[] = {
    CASE(results_read_early),
    CASE(one_group_too_many_in_flight),
    CASE(results_written_in_flight),
    CASE(factors_written_in_flight),
    CASE(no_fence),
    CASE(no_fence_after_an_access),
    CASE(no_commit),
    CASE(operand_overwritten),
    CASE(operand_overwritten_by_a_copy),
    CASE(refilled_without_an_order),
    CASE(no_proxy_fence),
    CASE(one_thread_fences_for_all),
    CASE(fence_behind_the_barrier),
    CASE(no_barrier),
    CASE(operand_not_there_yet),
    CASE(descriptor_out_of_range),
    CASE(descriptor_off_its_row),
    CASE(threads_missing),
};

int main(int argc, char **argv) {
    for (const Case &c : kCases) {
        if (argc < 3 || std::strcmp(argv[1], c.name)) continue;
        float *out;
        uint4 *in;
        cudaMalloc(&out, 256 * 4 * sizeof(float));
        cudaMalloc(&in, 256 * sizeof(uint4));
        const bool two = !std::strcmp(argv[1], "refilled_without_an_order");
        return run_fault(
            argc, argv, out, 256 * 4 * sizeof(float),
            [&](bool numbers) { put_numbers(in, 256 * sizeof(uint4), numbers); },
            [&](bool mended) { (mended ? c.mended : c.faulty)<<<1, two ? 256 : 128>>>(out, in); });
    }
    return 2;
}
