// Mistakes with tensor maps and copies of boxes, one in each kernel, and the same kernel without it.
//
//     faults NAME 0|1        runs NAME's kernel, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "../tensor_map.h"

// clang-format off
// Matrices of 64 rows of 32 floats; boxes of 8 rows.
constexpr unsigned columns = 32, rows = 64, n = 8 * columns, bytes = n * sizeof(float);
struct Others { CUtensorMap good, zero, changed, small, host; unsigned char unaligned[256]; };
#define KERNEL(name) template <bool mended> __global__ void name(CUtensorMap by_value, const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap to, float *out, const Others *others, unsigned odd)
#define BUFFER __shared__ alignas(1024) float buffer[2 * n]; __shared__ uint64_t bar; const unsigned t = threadIdx.x;
#define BEGIN(count) BUFFER if (t == 0) { INIT(&bar, count); FENCE_INIT(); } __syncthreads();
#define COPY_IN(to, map, x, y) ARRIVE_EXPECT(&bar, bytes); LOAD_BOX(to, map, x, y, &bar)
#define END() WAIT(&bar, 0); out[t] = buffer[t];
#define FILL(value) for (unsigned i = t; i < n; i += blockDim.x) buffer[i] = (value);

KERNEL(read_too_early) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &map, 0, 8); }  //~ read_too_early
    if constexpr (mended) WAIT(&bar, 0);
    __syncthreads();
    out[t] = buffer[n - 1 - t];  //! read_too_early async_pending: read | of bytes that the TMA copy at | nobody has waited for the phase
}

KERNEL(read_without_having_waited) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &map, 0, 8); }  //~ read_without_having_waited
    if (mended || t < 32) WAIT(&bar, 0);
    out[t] = buffer[t];  //! read_without_having_waited shared_race or async_pending: TMA copy | for which this thread has not waited or It must wait for the copy's phase
}

KERNEL(wrong_parity) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &map, 0, 8); }  //~ wrong_parity
    WAIT(&bar, mended ? 0 : 1);
    out[t] = buffer[t];  //! wrong_parity async_pending or shared_race: TMA copy | was for the parity of the phase before the first or for which this thread has not waited
}

KERNEL(too_many_bytes_expected) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ too_many_bytes_expected
        FENCE_INIT();
        ARRIVE_EXPECT(&bar, bytes * (mended ? 1 : 2));
        LOAD_BOX(buffer, &map, 0, 8, &bar);
    }
    __syncthreads();
    WAIT(&bar, 0);  //! too_many_bytes_expected deadlock: nobody can complete phase 0 | 1,024 bytes outstanding, initialised at
    out[t] = buffer[t];
}

KERNEL(too_few_bytes_expected) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ too_few_bytes_expected
        FENCE_INIT();
        ARRIVE_EXPECT(&bar, bytes / (mended ? 1 : 2));
        LOAD_BOX(buffer, &map, 0, 8, &bar);
    }
    __syncthreads();
    WAIT(&bar, 0);  //! too_few_bytes_expected deadlock: nobody can complete phase 0 | the announcement of 512 bytes that have come outstanding
    out[t] = buffer[t];
}

KERNEL(only_the_inside_expected) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ only_the_inside_expected
        FENCE_INIT();
        ARRIVE_EXPECT(&bar, mended ? bytes : bytes - 3 * columns * 4);
        LOAD_BOX(buffer, &map, 0, rows - 5, &bar);
    }
    __syncthreads();
    WAIT(&bar, 0);  //! only_the_inside_expected deadlock: nobody can complete phase 0 | the announcement of 384 bytes that have come outstanding
    out[t] = buffer[t];
}

KERNEL(not_visible_to_the_proxy) {
    BUFFER
    if (t == 0) {
        INIT(&bar, 1);  //~ not_visible_to_the_proxy
        if constexpr (mended) FENCE_INIT();
        ARRIVE_EXPECT(&bar, bytes);
        LOAD_BOX(buffer, &map, 0, 8, &bar);  //! not_visible_to_the_proxy proxy_fence: has executed neither fence.mbarrier_init nor fence.proxy.async since
    }
    __syncthreads();
    END()
}

KERNEL(box_misaligned) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer + (mended ? 0 : 4 * odd), &map, 0, 8); }  //! box_misaligned misaligned: has its box at shared 0x | a multiple of 128
    END()
}

KERNEL(box_past_shared_memory) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer + (mended ? n : (n + 64) * odd), &map, 0, 8); }  //! box_past_shared_memory out_of_bounds: past the end of the block's
    WAIT(&bar, 0);
    out[t] = buffer[n + t];
}

KERNEL(box_written_on_its_way) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &map, 0, 8); }  //~ box_written_on_its_way
    if constexpr (mended) WAIT(&bar, 0);
    __syncthreads();
    buffer[t] = 1;  //! box_written_on_its_way async_pending: write | of bytes that the TMA copy at
    WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(refilled_while_read) {
    BEGIN(1)
    for (unsigned i = 0; i < 2; ++i) {
        if (t == 0) { COPY_IN(buffer, &map, 0, 8 * i); }  //! refilled_while_read shared_race: TMA copy's write | may still be reading
        WAIT(&bar, i & 1);
        out[t] = buffer[n - 1 - t];  //~ refilled_while_read
        if constexpr (mended) __syncthreads();
    }
}

KERNEL(two_boxes_overlap) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, 2 * bytes);
        LOAD_BOX(buffer, &map, 0, 8, &bar);  //~ two_boxes_overlap
        LOAD_BOX(buffer + (mended ? n : 32), &map, 0, 16, &bar);  //! two_boxes_overlap async_pending: TMA copy's write | of bytes that the TMA copy at
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];
}

KERNEL(every_thread_copies) {
    BEGIN(1)
    if (t == 0) ARRIVE_EXPECT(&bar, bytes);
    if (mended ? t == 0 : t < 32) LOAD_BOX(buffer, &map, 0, 8, &bar);  //! every_thread_copies async_pending: is issued by thread 0 | and by thread 1 | One thread must
    END()
}

KERNEL(fence_of_global_memory) {
    BUFFER
    (void)bar;
    FILL(2.f * i)  //~ fence_of_global_memory
    if constexpr (mended) FENCE_PROXY(); else asm volatile("fence.proxy.async.global;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //! fence_of_global_memory proxy_fence: without a fence.proxy.async behind it
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(no_proxy_fence) {
    BUFFER
    (void)bar;
    FILL(2.f * i)  //~ no_proxy_fence
    if constexpr (mended) FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //! no_proxy_fence proxy_fence: the TMA copy at | without a fence.proxy.async behind it | Each thread that writes
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(only_one_thread_fences) {
    BUFFER
    (void)bar;
    FILL(2.f * i)  //~ only_one_thread_fences
    if (mended) FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        FENCE_PROXY();
        STORE_BOX(&to, 0, 8, buffer);  //! only_one_thread_fences proxy_fence: without a fence.proxy.async behind it | Each thread that writes
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(store_without_a_barrier) {
    BUFFER
    (void)bar;
    FILL(2.f * i)  //~ store_without_a_barrier
    FENCE_PROXY();
    if constexpr (mended) __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //! store_without_a_barrier shared_race or uninitialized_shared: TMA copy
        COMMIT();
        WAIT_GROUP();
    }
    if constexpr (!mended) __syncthreads();
}

// Two lanes store one box: the same twice is one value, as that of one lane is.
KERNEL(lanes_store_different_boxes) {
    BUFFER
    (void)bar;
    FILL(float(i))
    for (unsigned i = t; i < n; i += blockDim.x) buffer[n + i] = -1;
    FENCE_PROXY();
    __syncthreads();
    if (t < 2) {
        STORE_BOX(&to, 0, 8, buffer + (mended ? 0 : t * n));  //! lanes_store_different_boxes global_race: TMA copy's write at | by thread 1 | that thread 0 | store different values to one place
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(source_rewritten) {
    BUFFER
    (void)bar;
    for (unsigned i = 0; i < 2; ++i) {
        for (unsigned j = t; j < n; j += blockDim.x) buffer[j] = i + 3.f * j;  //! source_rewritten async_pending: write | may still be reading: thread 0 | has executed no cp.async.bulk.wait_group since
        FENCE_PROXY();
        __syncthreads();
        if (t == 0) {
            STORE_BOX(&to, 0, 8 * i, buffer);  //~ source_rewritten
            COMMIT();
            if constexpr (mended) WAIT_GROUP_READ();
        }
        __syncthreads();
    }
    if (t == 0) WAIT_GROUP();
}

KERNEL(source_refilled) {
    BEGIN(1)
    if (t == 0) {
        COPY_IN(buffer, &map, 0, 0);
        WAIT(&bar, 0);
        STORE_BOX(&to, 0, 0, buffer);  //~ source_refilled
        COMMIT();
        if constexpr (mended) WAIT_GROUP_READ();
        COPY_IN(buffer, &map, 0, 8);  //! source_refilled async_pending: write | of shared memory that the TMA copy at | the same one
        WAIT(&bar, 1);
        WAIT_GROUP();
    }
}

KERNEL(results_read_too_early) {
    BUFFER
    (void)bar;
    FILL(2.f * i)
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 0, buffer);  //~ results_read_too_early
        COMMIT();
        if constexpr (mended) WAIT_GROUP(); else WAIT_GROUP_READ();
    }
    __syncthreads();
    buffer[t] = out[n - 1 - t];  //! results_read_too_early async_pending: global memory that the TMA copy at | waits for its source alone, not for its writes
    out[t] = buffer[t];
    if (t == 0) WAIT_GROUP();
}

KERNEL(results_loaded_too_early) {
    BEGIN(1)
    FILL(2.f * i)
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 8, buffer);  //~ results_loaded_too_early
        COMMIT();
        if constexpr (mended) WAIT_GROUP(); else WAIT_GROUP_READ();
        COPY_IN(buffer, &to, 0, 10);  //! results_loaded_too_early async_pending: global memory that the TMA copy at | may still be writing
    }
    WAIT(&bar, 0);
    out[t] = buffer[t];
    if (t == 0) WAIT_GROUP();
}

KERNEL(forgotten_commit) {
    BUFFER
    (void)bar;
    FILL(2.f * i)
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, 0, buffer);  //~ forgotten_commit
        if constexpr (mended) COMMIT();
        WAIT_GROUP();
    }
    __syncthreads();
    buffer[t] = out[n - 1 - t];  //! forgotten_commit async_pending: global memory that the TMA copy at | has executed no cp.async.bulk.commit_group
    out[t] = buffer[t];
}

KERNEL(negative_store) {
    BUFFER
    (void)bar;
    for (unsigned i = t; i < n / 2; i += blockDim.x) buffer[i] = 2.f * i;  // what is clipped need hold nothing
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, 0, mended ? 60 : -int(odd), buffer);  //! negative_store illegal_instruction: at coordinate -1 of dimension 1 | a negative coordinate
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(load_between_16_bytes) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &map, mended ? -4 : 2 + int(odd), 8); }  //! load_between_16_bytes illegal_instruction: loads a box at coordinate 3 of dimension 0 | a multiple of 16 bytes of the tensor's row, 4 elements of f32
    END()
}

KERNEL(store_between_16_bytes) {
    BUFFER
    (void)bar;
    FILL(i)
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        STORE_BOX(&to, mended ? 8 : 9 + int(odd), 0, buffer);  //! store_between_16_bytes illegal_instruction: stores a box at coordinate 10 of dimension 0 | 4 elements of f32, and anything between
        COMMIT();
        WAIT_GROUP();
    }
}

KERNEL(without_grid_constant) {
    BEGIN(1)
    if (t == 0) { if constexpr (mended) { COPY_IN(buffer, &map, 0, 8); } else { COPY_IN(buffer, &by_value, 0, 8); } }  //! without_grid_constant invalid_address: in the thread's local memory | without __grid_constant__
    END()
}

KERNEL(map_in_shared_memory) {
    BEGIN(1)
    __shared__ CUtensorMap copied;
    if (t == 0) {
        copied = others->good;
        COPY_IN(buffer, mended ? &others->good : &copied, 0, 8);  //! map_in_shared_memory invalid_address: in shared memory
    }
    END()
}

KERNEL(map_of_zeros) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, mended ? &others->good : &others->zero, 0, 8); }  //! map_of_zeros invalid_argument: finds no tensor map at 0x | all 0
    END()
}

KERNEL(map_changed) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, mended ? &others->good : &others->changed, 0, 8); }  //! map_changed invalid_argument: finds no tensor map at 0x | have been changed since
    END()
}

KERNEL(map_not_aligned) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, others->unaligned + (mended ? 128 : 16 * odd), 0, 8); }  //! map_not_aligned misaligned: no multiple of 64
    END()
}

KERNEL(map_at_null) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, mended ? &others->good : (const CUtensorMap *)(size_t)(odd - 1), 0, 8); }  //! map_at_null invalid_address: has its tensor map at 0x0 | null
    END()
}

KERNEL(map_past_the_allocation) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &others[mended ? 0 : odd].good, 0, 8); }  //! map_past_the_allocation out_of_bounds: has its tensor map at 0x | past the end
    END()
}

KERNEL(tensor_smaller_than_its_map) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, &others->small, 0, mended ? 16 : 28); }  //! tensor_smaller_than_its_map out_of_bounds: reads 128 bytes at 0x | a row of the box at {0, 28} | past the end
    END()
}

KERNEL(tensor_of_the_host) {
    BEGIN(1)
    if (t == 0) { COPY_IN(buffer, mended ? &others->good : &others->host, 0, 8); }  //! tensor_of_the_host out_of_bounds: as its map has it | host or never
    END()
}

KERNEL(wrong_dimensions) {
    BEGIN(1)
    if (t == 0) {
        ARRIVE_EXPECT(&bar, bytes);
        if constexpr (mended) LOAD_BOX(buffer, &map, 0, 8, &bar);
        else asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(SHARED(buffer)), "l"(&map), "r"(0), "r"(SHARED(&bar)) : "memory");  //! wrong_dimensions invalid_argument: is one of 1 dimension, and its tensor map has 2
    }
    END()
}
// clang-format on

using Kernel = void (*)(CUtensorMap, CUtensorMap, CUtensorMap, float *, const Others *, unsigned);
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
    CASE(read_without_having_waited),
    CASE(wrong_parity),
    CASE(too_many_bytes_expected),
    CASE(too_few_bytes_expected),
    CASE(only_the_inside_expected),
    CASE(not_visible_to_the_proxy),
    CASE(box_misaligned),
    CASE(box_past_shared_memory),
    CASE(box_written_on_its_way),
    CASE(refilled_while_read),
    CASE(two_boxes_overlap),
    CASE(every_thread_copies),
    CASE(fence_of_global_memory),
    CASE(no_proxy_fence),
    CASE(only_one_thread_fences),
    CASE(store_without_a_barrier),
    CASE(lanes_store_different_boxes),
    CASE(source_rewritten),
    CASE(source_refilled),
    CASE(results_read_too_early),
    CASE(results_loaded_too_early),
    CASE(forgotten_commit),
    CASE(negative_store),
    CASE(load_between_16_bytes),
    CASE(store_between_16_bytes),
    CASE(without_grid_constant),
    CASE(map_in_shared_memory),
    CASE(map_of_zeros),
    CASE(map_changed),
    CASE(map_not_aligned),
    CASE(map_at_null),
    CASE(map_past_the_allocation),
    CASE(tensor_smaller_than_its_map),
    CASE(tensor_of_the_host),
    CASE(wrong_dimensions),
};

int main(int argc, char **argv) {
    constexpr size_t matrix = rows * columns * sizeof(float);
    float *in, *out, *small;
    alignas(16) static float host[rows * columns];
    cudaMalloc(&in, matrix);
    cudaMalloc(&out, matrix);
    cudaMalloc(&small, matrix / 2);
    const CUtensorMap map = map_of(in, columns, rows, 128, columns, 8),
                      to = map_of(out, columns, rows, 128, columns, 8);
    Others others;
    std::memset(&others, 0, sizeof others);
    others.good = others.changed = map;
    ++reinterpret_cast<unsigned char *>(&others.changed)[20];
    others.small = map_of(small, columns, rows, 128, columns, 8);
    others.host = map_of(host, columns, rows, 128, columns, 8);
    std::memcpy(others.unaligned + 16, &map, sizeof map);
    std::memcpy(others.unaligned + 128, &map, sizeof map);
    Others *on_device;
    cudaMalloc(&on_device, sizeof others);
    cudaMemcpy(on_device, &others, sizeof others, cudaMemcpyHostToDevice);
    const auto prepare = [&](bool numbers) {
        put_numbers(in, matrix, numbers);
        put_numbers(small, matrix / 2, numbers);
        cudaMemset(out, 0, matrix);
    };
    for (const auto &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(argc, argv, out, matrix, prepare,
                             [&](bool mended) { it.kernel[mended]<<<1, 64>>>(map, map, to, out, on_device, 1); });
    return 2;
}
