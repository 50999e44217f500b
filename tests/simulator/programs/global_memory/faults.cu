// Mistakes with global memory between threads of a block and between blocks, one in each kernel, and the same kernel
// without it.
//
//     faults NAME 0|1        runs NAME's kernel with 8 blocks of 64 threads, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` other lines that may be named.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <cuda/atomic>

#include "../fault_run.h"

// clang-format off
#define KERNEL(name) template <bool mended> __global__ void name(unsigned *out, const unsigned *in, unsigned *flags)
#define PLACE const unsigned t = threadIdx.x, b = blockIdx.x, i = b * 64 + t; (void)t; (void)b; (void)i; (void)in; (void)flags;
// Macros, so that each has the line of its kernel.
#define FENCE() __threadfence()
#define VOLATILE(p) (*(volatile unsigned *)(p))

// ---- blocks that update one place ----

KERNEL(one_counter) {
    PLACE
    if constexpr (mended) { if (t == 0) atomicAdd(out, 1); }
    else if (t == 0) out[0] += 1;  //! one_counter global_race: nothing orders the two blocks | atomic operation | byte 0 of the 4,096 bytes
}

KERNEL(histogram) {
    PLACE
    const unsigned bin = (in[i] + i) % 16;
    if constexpr (mended) atomicAdd(out + bin, 1);
    else out[bin]++;  //! histogram global_race: nothing orders the two
}

KERNEL(gradient_of_a_shared_row) {  // as dQ that several blocks of keys add to
    PLACE
    float *dq = reinterpret_cast<float *>(out);
    if constexpr (mended) atomicAdd(dq + t, float(b));
    else dq[t] += float(b);  //! gradient_of_a_shared_row global_race: of block | Each reads the old value and stores a new one
}

KERNEL(append) {
    PLACE
    if (t) return;
    const unsigned at = mended ? atomicAdd(flags, 1) : (*flags)++;  //! append global_race: nothing orders the two blocks | byte 0 of the 64 bytes
    if (at < 64) out[at] = b;  //~ append
}

KERNEL(minimum) {
    PLACE
    if constexpr (mended) atomicMin(out, in[i] + 1000 - i);
    else if (in[i] + 1000 - i < *out) out[0] = in[i] + 1000 - i;  //! minimum global_race: nothing orders the two
}

KERNEL(atomics_of_one_block) {  // .cta orders nothing between blocks
    PLACE
    if (t) return;
    if constexpr (mended) atomicAdd(out, 1);
    else atomicAdd_block(out, 1);  //! atomics_of_one_block global_race: nothing orders the two blocks | is atomic for its own block only
}

KERNEL(atomic_here_plain_there) {
    PLACE
    if (t) return;
    if (b < 4) atomicAdd(out, 1);  //! atomic_here_plain_there global_race: nothing orders the two blocks
    else if constexpr (mended) atomicAdd(out, 2);
    else out[0] = 2;  //! atomic_here_plain_there global_race: nothing orders the two blocks
}

// ---- tiles that overlap ----

KERNEL(tiles_overlap) {
    PLACE
    const unsigned at = b * (mended ? 64 : 63) + t;
    out[at] = at + b;  //! tiles_overlap global_race: Which value stays is chance
}

KERNEL(halo_written_too) {
    PLACE
    out[i + 1] = i + b;  //! halo_written_too global_race: nothing orders the two
    if constexpr (!mended) if (t == 0) out[i] = 7;  //! halo_written_too global_race: nothing orders the two
}

KERNEL(bytes_of_one_word) {  // a word with a byte of each block
    PLACE
    unsigned char *bytes = reinterpret_cast<unsigned char *>(out);
    if (t) return;
    if constexpr (mended) bytes[b] = 1;
    else out[b / 4] |= 1u << b % 4 * 8;  //! bytes_of_one_word global_race: nothing orders the two blocks
}

KERNEL(stencil_in_place) {
    PLACE
    unsigned *to = mended ? out + 1024 - 512 : out;
    const unsigned left = i ? out[i - 1] : 0;  //! stencil_in_place global_race: nothing orders the two
    __syncthreads();
    to[i] = left + i;  //! stencil_in_place global_race: nothing orders the two
}

KERNEL(reads_the_neighbours_result) {
    PLACE
    out[i] = in[i];  //~ reads_the_neighbours_result
    __syncthreads();
    const unsigned from = mended ? i : (i + 64) % 512;
    out[i + 512] = out[from];  //! reads_the_neighbours_result global_race: of block | Blocks of one launch run in any order
}

KERNEL(transposed_in_place) {
    PLACE
    const unsigned row = i / 16, column = i % 16;
    if (row >= 16) return;
    const unsigned value = out[column * 16 + row];  //! transposed_in_place global_race: nothing orders the two
    const unsigned at = mended ? 512 + i : i;
    out[at] = value + i;  //! transposed_in_place global_race: nothing orders the two
}

// ---- the non-coherent cache ----

KERNEL(neighbour_by_ldg) {
    PLACE
    const unsigned before = __ldg(out + i);  // it may be written afterwards
    out[i] = before + in[i] + t;  //~ neighbour_by_ldg
    __syncthreads();
    const unsigned *from = out + b * 64 + (t + 1) % 64;
    if constexpr (mended) out[i + 512] = *from;
    else out[i + 512] = __ldg(from);  //! neighbour_by_ldg noncoherent_read: ld.global.nc | no barrier or fence makes it see | another launch
}

KERNEL(own_word_by_ldg) {
    PLACE
    out[i] = in[i] + 7;  //~ own_word_by_ldg
    __threadfence();
    if constexpr (mended) out[i + 512] = out[i];
    else out[i + 512] = __ldg(out + i);  //! own_word_by_ldg noncoherent_read: that cache holds what nobody writes
}

KERNEL(last_block_by_ldg) {
    PLACE
    __shared__ bool last;
    if (t == 0) {
        out[b + 1] = in[i] + b;  //~ last_block_by_ldg
        FENCE();
        last = atomicAdd(flags, 1) == gridDim.x - 1;
        FENCE();
    }
    __syncthreads();
    if (!last || t) return;
    unsigned sum = 0;
    for (unsigned k = 0; k < gridDim.x; ++k) {
        if (k == b) continue;
        if constexpr (mended) sum += out[k + 1];
        else sum += __ldg(out + k + 1);  //! last_block_by_ldg noncoherent_read: of block | no barrier or fence makes it see
    }
    out[0] = sum;
}

KERNEL(seen_before_the_flag) {  // what the cache holds since the first read is old at the second
    PLACE
    if (t || b > 1) return;
    if (b == 0) {
        while (VOLATILE(flags + 1) == 0) {}
        FENCE();
        out[1] = 5;  //~ seen_before_the_flag
        FENCE();
        VOLATILE(flags) = 1;
    } else {
        unsigned first, second;
        asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(first) : "l"(out + 1) : "memory");
        FENCE();
        VOLATILE(flags + 1) = 1 + (first == 1);
        while (VOLATILE(flags) == 0) {}
        FENCE();
        if constexpr (mended) second = VOLATILE(out + 1);
        else asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(second) : "l"(out + 1) : "memory");  //! seen_before_the_flag noncoherent_read: of block (0,0,0)
        out[2] = second;
    }
}

KERNEL(two_words_of_four_by_ldg) {
    PLACE
    out[i] = in[i] + t;  //~ two_words_of_four_by_ldg
    __syncthreads();
    const uint4 *from = reinterpret_cast<const uint4 *>(out + b * 64) + t % 16;
    uint4 four;
    if constexpr (mended) four = *from;
    else four = __ldg(from);  //! two_words_of_four_by_ldg noncoherent_read: ld.global.nc
    out[i + 512] = four.x + four.w;
}

// ---- flags and counters ----

KERNEL(last_block_sums_without_a_fence) {
    PLACE
    __shared__ bool last;
    if (t == 0) {
        out[b + 1] = in[i] + b;  //~ last_block_sums_without_a_fence
        if constexpr (mended) FENCE();
        last = atomicAdd(flags, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t) return;
    unsigned sum = 0;
    for (unsigned k = 0; k < gridDim.x; ++k) sum += out[k + 1];  //! last_block_sums_without_a_fence global_race: needs a release after it (__threadfence()
    out[0] = sum;
}

KERNEL(fence_before_the_write) {
    PLACE
    __shared__ bool last;
    if (t == 0) {
        if constexpr (!mended) FENCE();
        out[b + 1] = in[i] + b;  //~ fence_before_the_write
        if constexpr (mended) FENCE();
        last = atomicAdd(flags, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t) return;
    unsigned sum = 0;
    for (unsigned k = 0; k < gridDim.x; ++k) sum += out[k + 1];  //! fence_before_the_write global_race: nothing orders the two blocks
    out[0] = sum;
}

KERNEL(fence_of_one_block) {  // __threadfence_block() says nothing to other blocks
    PLACE
    __shared__ bool last;
    out[i + 1] = in[i] + b;  //~ fence_of_one_block
    if constexpr (mended) FENCE(); else __threadfence_block();
    __syncthreads();
    if (t == 0) last = atomicAdd(flags, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last || t) return;
    unsigned sum = 0;
    for (unsigned k = 0; k < gridDim.x * 64; ++k) sum += out[k + 1];  //! fence_of_one_block global_race: nothing orders the two blocks | A __threadfence_block() orders nothing for other blocks
    out[0] = sum;
}

KERNEL(no_barrier_before_the_count) {  // the fence speaks for thread 0's own write only
    PLACE
    __shared__ bool last;
    out[i + 1] = in[i] + b;  //~ no_barrier_before_the_count
    if constexpr (mended) __syncthreads();
    if (t == 0) {
        FENCE();
        last = atomicAdd(flags, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t) return;
    unsigned sum = 0;
    for (unsigned k = 0; k < gridDim.x * 64; ++k) sum += out[k + 1];  //! no_barrier_before_the_count global_race: nothing orders the two blocks
    out[0] = sum;
}

KERNEL(flag_without_a_fence) {
    PLACE
    if (t) return;
    if (b == 0) {
        out[0] = 42;  //~ flag_without_a_fence
        if constexpr (mended) FENCE();
        VOLATILE(flags) = 1;
    } else {
        while (VOLATILE(flags) == 0) {}
        FENCE();
        out[b] = out[0];  //! flag_without_a_fence global_race: nothing orders the two blocks
    }
}

KERNEL(flag_not_acquired) {
    PLACE
    if (t) return;
    if (b == 0) {
        out[0] = 42;  //~ flag_not_acquired
        FENCE();
        VOLATILE(flags) = 1;
    } else {
        while (VOLATILE(flags) == 0) {}
        if constexpr (mended) FENCE();
        out[b] = out[0];  //! flag_not_acquired global_race: an acquire before it | The write has been released
    }
}

KERNEL(relaxed_flag) {
    PLACE
    if (t) return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(*flags);
    if (b == 0) {
        out[0] = 42;  //~ relaxed_flag
        flag.store(1, mended ? cuda::memory_order_release : cuda::memory_order_relaxed);
    } else {
        while (flag.load(cuda::memory_order_acquire) == 0) {}
        out[b] = out[0];  //! relaxed_flag global_race: nothing orders the two blocks
    }
}

KERNEL(flag_of_the_wrong_scope) {
    PLACE
    if (t) return;
    constexpr auto scope = mended ? cuda::thread_scope_device : cuda::thread_scope_block;
    cuda::atomic_ref<unsigned, scope> flag(*flags);
    if (b == 0) {
        out[0] = 42;  //~ flag_of_the_wrong_scope
        flag.store(1, cuda::memory_order_release);  //! flag_of_the_wrong_scope global_race: of block
    } else {
        while (flag.load(cuda::memory_order_acquire) == 0) {}  //! flag_of_the_wrong_scope global_race: of block
        out[b] = out[0];  //! flag_of_the_wrong_scope global_race: nothing orders the two blocks
    }
}

KERNEL(flag_that_is_plain) {
    PLACE
    if (t) return;
    if (b == 0) {
        out[0] = 42;
        FENCE();
        if constexpr (mended) VOLATILE(flags) = 1; else *flags = 1;  //! flag_that_is_plain global_race: of block
    } else {
        while (VOLATILE(flags) == 0) {}  //! flag_that_is_plain global_race: of block
        FENCE();
        out[b] = out[0];  //! flag_that_is_plain global_race: of block
    }
}

KERNEL(flag_before_the_data) {
    PLACE
    if (t) return;
    if (b == 0) {
        if constexpr (!mended) { FENCE(); VOLATILE(flags) = 1; }
        out[0] = 42;  //! flag_before_the_data global_race: nothing orders the two blocks
        if constexpr (mended) { FENCE(); VOLATILE(flags) = 1; }
    } else {
        while (VOLATILE(flags) == 0) {}
        FENCE();
        out[b] = out[0];  //! flag_before_the_data global_race: nothing orders the two blocks
    }
}

KERNEL(count_reset_behind_the_barrier) {  // the others may have counted again by then
    PLACE
    if (t) return;
    for (unsigned round = 0; round < 3; ++round) {
        const unsigned before = VOLATILE(flags + 1);
        if (atomicAdd(flags, 1) == gridDim.x - 1) {  //! count_reset_behind_the_barrier global_race: nothing orders the two blocks
            if constexpr (mended) *flags = 0;
            FENCE();
            VOLATILE(flags + 1) = before + 1;
            if constexpr (!mended) *flags = 0;  //! count_reset_behind_the_barrier global_race: nothing orders the two blocks
        } else {
            while (VOLATILE(flags + 1) == before) {}
        }
        FENCE();
    }
    out[b] = 1;
}

KERNEL(arrives_and_does_not_wait) {  // the next block's number may not be there yet
    PLACE
    if (t) return;
    out[b] = in[b] + b;  //! arrives_and_does_not_wait global_race: nothing orders the two blocks
    FENCE();
    atomicAdd(flags, 1);
    if constexpr (mended) while (VOLATILE(flags) < gridDim.x) {}
    FENCE();
    out[64 + b] = out[(b + 1) % gridDim.x];  //! arrives_and_does_not_wait global_race: nothing orders the two blocks
}

KERNEL(one_thread_waits_for_all) {  // the others read before it has seen the flag
    PLACE
    if (b == 0) {
        if (t == 0) {
            out[0] = 42;  //~ one_thread_waits_for_all
            FENCE();
            VOLATILE(flags) = 1;
        }
    } else {
        if (t == 0) {
            while (VOLATILE(flags) == 0) {}
            FENCE();
        }
        if constexpr (mended) __syncthreads();
        out[i] = out[0];  //! one_thread_waits_for_all global_race: nothing orders the two blocks
    }
}

KERNEL(lock_without_fences) {
    PLACE
    if (t) return;
    while (atomicCAS(flags, 0, 1) != 0) {}
    if constexpr (mended) FENCE();
    out[0] = out[0] + b;  //! lock_without_fences global_race: nothing orders the two blocks
    if constexpr (mended) FENCE();
    atomicExch(flags, 0);
}

KERNEL(unlocked_by_a_plain_store) {
    PLACE
    if (t) return;
    while (atomicCAS(flags, 0, 1) != 0) {}  //! unlocked_by_a_plain_store global_race: nothing orders the two blocks
    FENCE();
    out[0] = out[0] + b;  //~ unlocked_by_a_plain_store
    FENCE();
    if constexpr (mended) atomicExch(flags, 0); else *flags = 0;  //! unlocked_by_a_plain_store global_race: nothing orders the two blocks
}

// ---- threads of one block ----

KERNEL(barrier_missing) {
    PLACE
    out[i] = t;  //~ barrier_missing
    if constexpr (mended) __syncthreads();
    out[i + 512] = out[b * 64 + (t + 32) % 64];  //! barrier_missing global_race: __syncthreads() that both threads pass
}

KERNEL(warp_barrier_missing) {
    PLACE
    out[i] = t;  //~ warp_barrier_missing
    if constexpr (mended) __syncwarp();
    out[i + 512] = out[i ^ 1];  //! warp_barrier_missing global_race: __syncwarp()
}

KERNEL(barrier_missing_before_the_next_write) {
    PLACE
    unsigned *row = out + b * 64;
    row[t] = t;  //~ barrier_missing_before_the_next_write
    __syncthreads();
    for (unsigned step = 1; step < 3; ++step) {
        const unsigned value = row[(t + 33) % 64];  //! barrier_missing_before_the_next_write global_race: __syncthreads()
        if constexpr (mended) __syncthreads();
        row[t] = value + 1;  //! barrier_missing_before_the_next_write global_race: __syncthreads()
        __syncthreads();
    }
}

KERNEL(summed_while_others_add) {  // in the branch that stands first in the machine's order
    PLACE
    unsigned *sums = out + b * 128;
    if (t < 32) atomicAdd(sums + t % 16, in[i] + 1);  //! summed_while_others_add global_race: A __syncthreads() that both threads pass
    if constexpr (mended) __syncthreads();
    if (t >= 32) sums[64 + t] = sums[t % 16];  //! summed_while_others_add global_race: nothing orders the two
}

KERNEL(sum_read_behind_each_addition) {  // unrolled, so that each read has additions of its thread behind it
    PLACE
    unsigned *sum = out + b * 128;
    for (unsigned k = 0; k < 4; ++k) {
        atomicAdd(sum, in[i] + k);  //! sum_read_behind_each_addition global_race: nothing orders the two
        if constexpr (mended) __syncthreads();
        if (k == 3 || !mended) sum[64 + t] = *sum;  //! sum_read_behind_each_addition global_race: nothing orders the two
    }
}

KERNEL(passed_back_without_a_fence) {  // what the block wrote comes back to it by another block
    PLACE
    if (b == 0 && t < 32) {
        out[t] = in[t] + 1;  //~ passed_back_without_a_fence
        __syncwarp();
        if (t == 0) { FENCE(); VOLATILE(flags) = 1; }
    } else if (b == 1 && t == 0) {
        while (VOLATILE(flags) == 0) {}
        if constexpr (mended) FENCE();
        VOLATILE(flags + 1) = 1;
    } else if (b == 0) {
        while (VOLATILE(flags + 1) == 0) {}
        FENCE();
        out[t] = out[t - 32];  //! passed_back_without_a_fence global_race: nothing orders the two
    }
}

KERNEL(freed_while_others_read) {
    PLACE
    __shared__ unsigned *list;
    if (t == 0) list = static_cast<unsigned *>(malloc(256));
    __syncthreads();
    list[t] = in[i];
    __syncthreads();
    out[i] = list[63 - t];  //! freed_while_others_read global_race: nothing orders the two
    if constexpr (mended) __syncthreads();
    if (t == 0) free(list);  //! freed_while_others_read global_race: freed at or free at | nothing orders the two
}

KERNEL(lanes_store_to_one_place) {
    PLACE
    const unsigned at = mended ? i : b * 64 + t / 2;
    out[at] = t;  //! lanes_store_to_one_place global_race: The lanes store different values
}

KERNEL(counter_of_the_block) {
    PLACE
    if constexpr (mended) atomicAdd_block(out + b, 1);
    else out[b] += 1;  //! counter_of_the_block global_race: of global memory that thread
}

KERNEL(copied_while_it_is_written) {  // cp.async reads global memory by itself
    PLACE
    __shared__ unsigned tile[64];
    out[i] = t;  //! copied_while_it_is_written global_race: nothing orders the two
    if constexpr (mended) __syncthreads();
    const unsigned from = b * 64 + (t + 32) % 64;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(tile + t)), "l"(out + from) : "memory");  //! copied_while_it_is_written global_race: nothing orders the two
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i + 512] = tile[t];
}

struct Case {
    const char *name;
    void (*kernel[2])(unsigned *, const unsigned *, unsigned *);
};
#define CASE(name) {#name, {name<false>, name<true>}}
const Case cases[] = {
    CASE(one_counter),
    CASE(histogram),
    CASE(gradient_of_a_shared_row),
    CASE(append),
    CASE(minimum),
    CASE(atomics_of_one_block),
    CASE(atomic_here_plain_there),
    CASE(tiles_overlap),
    CASE(halo_written_too),
    CASE(bytes_of_one_word),
    CASE(stencil_in_place),
    CASE(reads_the_neighbours_result),
    CASE(transposed_in_place),
    CASE(neighbour_by_ldg),
    CASE(own_word_by_ldg),
    CASE(last_block_by_ldg),
    CASE(seen_before_the_flag),
    CASE(two_words_of_four_by_ldg),
    CASE(last_block_sums_without_a_fence),
    CASE(fence_before_the_write),
    CASE(fence_of_one_block),
    CASE(no_barrier_before_the_count),
    CASE(flag_without_a_fence),
    CASE(flag_not_acquired),
    CASE(relaxed_flag),
    CASE(flag_of_the_wrong_scope),
    CASE(flag_that_is_plain),
    CASE(flag_before_the_data),
    CASE(count_reset_behind_the_barrier),
    CASE(arrives_and_does_not_wait),
    CASE(one_thread_waits_for_all),
    CASE(lock_without_fences),
    CASE(unlocked_by_a_plain_store),
    CASE(barrier_missing),
    CASE(warp_barrier_missing),
    CASE(barrier_missing_before_the_next_write),
    CASE(summed_while_others_add),
    CASE(sum_read_behind_each_addition),
    CASE(passed_back_without_a_fence),
    CASE(freed_while_others_read),
    CASE(lanes_store_to_one_place),
    CASE(counter_of_the_block),
    CASE(copied_while_it_is_written),
};

int main(int argc, char **argv) {
    unsigned *in, *out, *flags;
    cudaMalloc(&in, 4096);
    cudaMalloc(&out, 4096);
    cudaMalloc(&flags, 64);
    for (const Case &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, out, 4096,
                [&](bool numbers) {
                    put_numbers(in, 4096, numbers);
                    cudaMemset(flags, 0, 64);
                },
                [&](bool mended) { it.kernel[mended]<<<8, 64>>>(out, in, flags); });
    return 2;
}
