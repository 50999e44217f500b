// One documented function per PTX instruction that only the stages for several GPUs use.
#pragma once

#include <cstdint>

namespace ptx {

// ld.acquire.sys: reads a flag that another device or the copy engine writes. Where it reads what these wrote last, the
// thread sees all that they had written before.
__device__ inline uint32_t load_acquire_system(const uint32_t *flag) {
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

// fence.proxy.async.global: what this thread has seen written to global memory, TMA sees too, which reads it through
// another path than threads.
__device__ inline void fence_proxy_async_global() {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace ptx
