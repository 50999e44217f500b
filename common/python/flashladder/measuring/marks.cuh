// Marks: when a warpgroup comes to which place of its kernel, written into the workspace. query_tile_clocks.py puts
// them into kernels, and has nvcc include this file before the kernel's own (-include).
#pragma once

#include "ptx.cuh"

namespace marks {

constexpr int warpgroups = 4, most = 1024;  // of a block; marks of a warpgroup

__device__ inline uint32_t count_address() {
    __shared__ uint32_t counts[warpgroups];
    return ptx::shared_address(counts + threadIdx.x / 128);
}

// By one thread, before the others begin: nobody has a mark yet.
__device__ inline void begin() {
    const uint32_t first = count_address();
    for (int i = 0; i < warpgroups; ++i) asm volatile("st.shared.u32 [%0], 0;" ::"r"(first + 4 * i) : "memory");
}

// workspace: 2 numbers of 32 bits each for [blocks][warpgroups][most] marks, zeros so far: the place, above 0, and the
// low half of the multiprocessor's clock. The first lane of a warpgroup writes, with no branch: what the compiler knows
// of who goes where stays as it was. Without a workspace nothing is written.
__device__ inline void mark(void *workspace, uint32_t place) {
    const bool first = workspace && threadIdx.x % 128 == 0;
    const uint32_t before = (blockIdx.x * warpgroups + threadIdx.x / 128) * most;
    asm volatile(
        "{\n\t"
        ".reg .pred first, room;\n\t"
        ".reg .b32 now, count, more;\n\t"
        ".reg .b64 to;\n\t"
        "mov.u32 now, %%clock;\n\t"
        "setp.ne.s32 first, %3, 0;\n\t"
        "mov.u32 count, 0;\n\t"
        "@first ld.shared.u32 count, [%2];\n\t"
        "setp.lt.and.u32 room, count, %5, first;\n\t"
        "add.u32 more, count, %1;\n\t"
        "mad.wide.u32 to, more, 8, %0;\n\t"
        "add.u32 more, count, 1;\n\t"
        "@room st.global.v2.u32 [to], {%4, now};\n\t"
        "@first st.shared.u32 [%2], more;\n\t"
        "}" ::"l"(workspace),
        "r"(before), "r"(count_address()), "r"(int{first}), "r"(place), "n"(most)
        : "memory");
}

}  // namespace marks
