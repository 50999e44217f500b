// A kernel that reads each multiprocessor's clock, for sm_clocks.py: what a kernel between two such readings ran at.
#include <cstdint>

struct __align__(16) Reading {
    uint64_t clocks, nanoseconds;
};

// readings: [%nsmid]. Several blocks of a multiprocessor write the same place, each its own two numbers at once.
__global__ void read_clocks(Reading *readings) {
    uint32_t multiprocessor;
    Reading now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(now.clocks), "=l"(now.nanoseconds));
    if (threadIdx.x == 0) readings[multiprocessor] = now;
}

// In the default stream, without waiting; the CUDA runtime's status.
extern "C" int read_sm_clocks(Reading *readings, int multiprocessors) {
    read_clocks<<<4 * multiprocessors, 32>>>(readings);
    return cudaGetLastError();
}
