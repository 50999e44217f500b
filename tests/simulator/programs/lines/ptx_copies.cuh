// One instruction to a function: its name makes this file a wrapper, whose code counts as its callers'.
#pragma once

namespace ptx {

__device__ inline void copy_16(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ inline void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left>
__device__ inline void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

}  // namespace ptx
