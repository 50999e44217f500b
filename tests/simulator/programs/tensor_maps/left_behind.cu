// Blocks that end while a bulk copy may still be reading or writing their shared memory, one way in each kernel, and
// the same kernel without the mistake. What a GPU makes of them is not recorded.
//
//     left_behind NAME 0|1        runs NAME's kernel, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "../tensor_map.h"

// clang-format off
// Matrices of 64 rows of 32 floats; boxes of 8 rows.
constexpr unsigned columns = 32, rows = 64, n = 8 * columns, bytes = n * sizeof(float);
#define REDUCE(to, from, bytes) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to), "r"(SHARED(from)), "r"(bytes) : "memory")
#define WAIT_GROUP_READ_BUT_ONE() asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory")
#define KERNEL(name) template <bool mended> __global__ void name(const __grid_constant__ CUtensorMap to, float *out)
#define BEGIN __shared__ alignas(1024) float buffer[n]; const unsigned t = threadIdx.x; \
    for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = 2.f * i; FENCE_PROXY(); __syncthreads();

KERNEL(copy_left) {
    BEGIN
    if (t == 0) {
        STORE(out, buffer, bytes);  //! copy_left async_pending: the block has ended while the bulk copy at | may still be reading its shared memory | thread 0 has executed no cp.async.bulk.wait_group since
        COMMIT();
        if constexpr (mended) WAIT_GROUP_READ();
    }
}

KERNEL(box_left) {
    BEGIN
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //! box_left async_pending: the block has ended while the TMA copy at | may still be reading its shared memory | thread 0 has executed no cp.async.bulk.wait_group since
        COMMIT();
        if constexpr (mended) WAIT_GROUP_READ();
    }
}

KERNEL(reduction_left) {
    BEGIN
    if (t == 0) {
        REDUCE(out, buffer, bytes);  //! reduction_left async_pending: the block has ended while the bulk | thread 0 has executed no cp.async.bulk.wait_group since
        COMMIT();
        if constexpr (mended) WAIT_GROUP();
    }
}

KERNEL(without_a_group) {
    BEGIN
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //! without_a_group async_pending: the block has ended while the TMA copy at | waits for committed groups
        if constexpr (mended) COMMIT();
        WAIT_GROUP_READ();
    }
}

KERNEL(waited_for_by_another) {
    BEGIN
    if (t == 33) {
        STORE(out, buffer, bytes);  //! waited_for_by_another async_pending: the block has ended while the bulk copy at | thread 33 has executed no cp.async.bulk.wait_group since
        COMMIT();
    }
    if (t == (mended ? 33 : 32)) WAIT_GROUP_READ();
}

KERNEL(all_but_the_last) {
    BEGIN
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);
        COMMIT();
        STORE_BOX(&to, 0, 16, buffer);  //! all_but_the_last async_pending: the block has ended while the TMA copy at
        COMMIT();
        if constexpr (mended) WAIT_GROUP_READ(); else WAIT_GROUP_READ_BUT_ONE();
    }
}

// The thread has ended long before its block has.
KERNEL(left_early) {
    BEGIN
    if (t == 0) {
        STORE(out, buffer, bytes);  //! left_early async_pending: the block has ended while the bulk copy at | thread 0 has executed no cp.async.bulk.wait_group since
        COMMIT();
        if constexpr (mended) WAIT_GROUP_READ();
        return;
    }
    for (unsigned i = 0; t >= 32 && i < 100; ++i) asm volatile("bar.sync 1, 32;" ::: "memory");
}

#define BEGIN_LOADS __shared__ alignas(1024) float buffer[2][n]; __shared__ uint64_t bar[2]; const unsigned t = threadIdx.x; \
    if (t == 0) { INIT(&bar[0], 1); INIT(&bar[1], 1); FENCE_INIT(); } __syncthreads();

KERNEL(load_left) {
    BEGIN_LOADS
    if (t == 0) {
        ARRIVE_EXPECT(&bar[0], bytes);
        LOAD(buffer[0], out + n, bytes, &bar[0]);  //! load_left async_pending: the block has ended while the bulk copy at | may still be writing its shared memory | nobody has waited for that phase
    }
    if constexpr (mended) WAIT(&bar[0], 0);
}

// One box more than is used, as a loop asks that does not look whether it is at its end.
KERNEL(one_box_too_many) {
    BEGIN_LOADS
    if (t == 0) {
        ARRIVE_EXPECT(&bar[0], bytes);
        LOAD_BOX(buffer[0], &to, 0, 8, &bar[0]);
        if (!mended) ARRIVE_EXPECT(&bar[1], bytes);
        if (!mended) LOAD_BOX(buffer[1], &to, 0, 16, &bar[1]);  //! one_box_too_many async_pending: the block has ended while the TMA copy at | may still be writing its shared memory | nobody has waited for that phase
    }
    WAIT(&bar[0], 0);
    out[t] = buffer[0][t];
}

// The phase before is no wait for this one.
KERNEL(waited_for_the_phase_before) {
    BEGIN_LOADS
    if (t == 0) {
        ARRIVE_EXPECT(&bar[0], bytes);
        LOAD(buffer[0], out + n, bytes, &bar[0]);
    }
    WAIT(&bar[0], 0);
    __syncthreads();
    if (t == 0) {
        ARRIVE_EXPECT(&bar[0], bytes);
        LOAD(buffer[1], out + 2 * n, bytes, &bar[0]);  //! waited_for_the_phase_before async_pending: the block has ended while the bulk copy at | may still be writing its shared memory | nobody has waited for that phase
    }
    WAIT(&bar[0], mended ? 1 : 0);
}
// clang-format on

using Kernel = void (*)(CUtensorMap, float *);
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
    CASE(copy_left),
    CASE(box_left),
    CASE(reduction_left),
    CASE(without_a_group),
    CASE(waited_for_by_another),
    CASE(all_but_the_last),
    CASE(left_early),
    CASE(load_left),
    CASE(one_box_too_many),
    CASE(waited_for_the_phase_before),
};

int main(int argc, char **argv) {
    constexpr size_t matrix = rows * columns * sizeof(float);
    float *out;
    cudaMalloc(&out, matrix);
    const CUtensorMap to = map_of(out, columns, rows, 128, columns, 8);
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, matrix, [&](bool) { cudaMemset(out, 0, matrix); },
                [&](bool mended) { it.kernel[mended]<<<1, 64>>>(to, out); });
    return 2;
}
