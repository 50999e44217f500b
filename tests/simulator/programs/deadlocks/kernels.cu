// Kernels whose threads wait for each other, and twins in which somebody waits for ever.
// tests/simulator/test_deadlocks.py runs them and finds lines by their text.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// ---- flags ----

extern "C" __global__ void flag_nobody_sets(volatile int *p) {
    if (blockIdx.x == 1 && threadIdx.x == 5) {
        while (p[3] == 0) {  // in vain
        }
    }
}

// Each block waits for the one before it.
extern "C" __global__ void chain(volatile int *p, int first) {
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0 || first) {
            while (p[0] != (int)blockIdx.x) {  // the turn of this block
                __nanosleep(20);
            }
        }
        __threadfence();
        p[0] = blockIdx.x + 1;
    }
}

extern "C" __global__ void producer(int *p, int n, int forgets) {
    int *data = p + 1;
    if (blockIdx.x == gridDim.x - 1) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = 3 * i;
        __syncthreads();
        __threadfence();
        if (threadIdx.x == 0 && !forgets) atomicExch(p, 1);
        return;
    }
    if (threadIdx.x == 0) {
        while (atomicAdd(p, 0) == 0) {  // nothing is added
        }
        __threadfence();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(data + i, 1);
}

extern "C" __global__ void slower_and_slower(volatile int *p) {
    for (unsigned ns = 8; p[0] == 0; ns = ns < 256 ? 2 * ns : 256) __nanosleep(ns);  // backoff
}

extern "C" __global__ void gives_up_by_clock(volatile int *p, int ticks) {
    const long long begin = clock64();
    while (p[1] == 0 && clock64() - begin < ticks) {
    }
    if (threadIdx.x == 0) p[blockIdx.x + 2] = 7;
}

extern "C" __global__ void gives_up_after_minutes(volatile int *p) {
    const long long begin = clock64();
    while (p[1] == 0 && clock64() - begin < 1ll << 37) {
    }
    if (threadIdx.x == 0) p[blockIdx.x + 2] = 7;
}

// The longer it lasts, the longer the naps: so libcu++ waits for semaphores and latches.
__device__ void nap(long long begin) {
    const long long waited = clock64() - begin;
    __nanosleep(waited < 4000000 ? unsigned(waited / 4) : 1000000);
}

extern "C" __global__ void naps(volatile int *p, int sets) {
    const long long begin = clock64();
    if (blockIdx.x == 1 && sets) {
        for (int i = 0; i < 1000; ++i) atomicAdd((int *)p + 2, 1);  // many turns later
        p[0] = 1;
    }
    while (p[0] == 0) nap(begin);
}

extern "C" __global__ void naps_in_shared(int *p, int sets) {
    __shared__ volatile int flag;
    const long long begin = clock64();
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        int x = threadIdx.x;
        for (int i = 0; i < 200000; ++i) x = x * 5 + 1;
        if (sets) flag = x | 1;
    } else {
        while (flag == 0) nap(begin);  // napping in shared memory
    }
    p[threadIdx.x] = 1;
}

extern "C" __global__ void gives_up_by_count(volatile int *p, int tries) {
    int left = tries;
    while (p[1] == 0 && left > 0) --left;
    if (threadIdx.x == 0) p[blockIdx.x + 2] = 7 + left;
}

// Every thread of the block goes round, through two barriers.
extern "C" __global__ void asks_by_barriers(volatile int *p, int sets) {
    __shared__ int seen;
    if (blockIdx.x == 1) {
        if (threadIdx.x == 0 && sets) p[0] = 1;
        return;
    }
    for (bool again = true; again;) {
        if (threadIdx.x == 0) seen = p[0];  // asked for all
        __syncthreads();
        again = seen == 0;
        __syncthreads();
    }
}

extern "C" __global__ void asks_by_votes(volatile int *p, int sets) {
    if (blockIdx.x == 1) {
        if (sets) p[threadIdx.x] = 1;
        return;
    }
    while (__any_sync(0xffffffffu, p[threadIdx.x] == 0)) {  // one flag of each lane
    }
}

__device__ __noinline__ bool is_set(volatile int *p, int i) {
    return p[i] != 0;  // in a function
}

extern "C" __global__ void asks_by_calls(volatile int *p, int sets) {
    if (blockIdx.x == 1) {
        if (threadIdx.x == 0 && sets) p[2] = 1;
        return;
    }
    while (!is_set(p, 2)) {
    }
}

// Lanes 0 and 1 wait for flags of their own, with other work between their loops.
extern "C" __global__ void lanes_apart(volatile int *p, int sets) {
    if (blockIdx.x == 1) {
        if (threadIdx.x == 0 && sets) p[0] = p[1] = 1;
        return;
    }
    if (threadIdx.x == 0) {
        while (p[0] == 0) {  // lane 0's
        }
    } else if (threadIdx.x == 1) {
        while (p[1] == 0) {  // lane 1's
        }
    }
    __syncwarp();
}

// ---- locks ----

extern "C" __global__ void takes_lock(int *p, int keeps) {
    if (threadIdx.x == 0) {
        while (atomicCAS(p, 0, 1) != 0) {  // taken
        }
        __threadfence();
        p[1] += 1;
        __threadfence();
        if (!keeps || blockIdx.x != 2) atomicExch(p, 0);
    }
}

extern "C" __global__ void takes_lock_by_exchange(int *p, int keeps) {
    if (threadIdx.x == 0) {
        while (atomicExch(p, 1) != 0) {  // stores what is there
        }
        __threadfence();
        p[1] += 1;
        __threadfence();
        if (!keeps) atomicExch(p, 0);
    }
}

extern "C" __global__ void tickets(int *p, int skips) {
    volatile int *serving = p + 1;
    if (threadIdx.x == 0) {
        const int mine = atomicAdd(p, 1);
        while (*serving != mine) {  // tickets come in order
        }
        __threadfence();
        p[2] += 1;
        __threadfence();
        if (!skips || mine != 5) *serving = mine + 1;
    }
}

// ---- barriers of the grid ----

extern "C" __global__ void __launch_bounds__(1024) hand_made_barrier(int *p, int rounds) {
    for (int round = 1; round <= rounds; ++round) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(p, 1);
            while (*(volatile int *)p < round * (int)gridDim.x) {  // until all blocks are here
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void grid_sync(int *p, int leaves) {
    if (leaves && blockIdx.x == 1) return;
    p[blockIdx.x] = 1;
    cg::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < (int)gridDim.x; ++i) sum += p[i];
        p[gridDim.x] = sum;
    }
}

// ---- plain locations and endless loops ----

__device__ int plain(const int *p) {
    int value;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");  // neither volatile nor atomic
    return value;
}

extern "C" __global__ void polls_plain(int *p) {
    if (blockIdx.x == 1 && threadIdx.x == 0) p[0] = 1;
    if (blockIdx.x == 0) {
        while (plain(p) == 0) {
        }
    }
}

extern "C" __global__ void polls_plain_beside_turns(int *p) {
    atomicAdd(p + 1, atomicAdd(p + 2, 1));
    if (blockIdx.x == 0) {
        while (plain(p) == 0) {
        }
    }
}

extern "C" __global__ void runs_for_long(int *p, int n) {
    int x = p[0];
    for (int i = 0; i < n; ++i) x = (x ^ plain(p)) * 5 + 1;
    if (threadIdx.x == 0) p[blockIdx.x + 1] = x;
}

extern "C" __global__ void polls_shared() {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x >= 32) {
        while (flag == 0) {  // in shared memory
        }
    }
}

extern "C" __global__ void endless(int *p) {
    if (threadIdx.x == 0) {
        for (;;) asm volatile("");  // for ever
    }
    p[threadIdx.x] = 1;
}

// ---- in a block ----

extern "C" __global__ void two_barriers() {
    if (threadIdx.x < 128) {
        asm volatile("bar.sync 1, 256;");
    } else {
        asm volatile("bar.sync 2, 256;");
    }
}

__device__ bool try_wait(unsigned bar, unsigned parity) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"  // try
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done;
}

extern "C" __global__ void asks_for_phase(int *p, int arrives) {
    __shared__ alignas(8) unsigned long long bar;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(at));  // for two
    __syncthreads();
    const long long begin = clock64();
    if (threadIdx.x < 1 + arrives) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
    const auto done = [&] {
        unsigned is_done;
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_done)
                     : "r"(at)
                     : "memory");
        return is_done != 0;
    };
    while (!done()) nap(begin);
    p[threadIdx.x] = 1;
}

extern "C" __global__ void waits_for_phase(volatile int *p, int tries) {
    __shared__ alignas(8) unsigned long long bar;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; !try_wait(at, 0) && (tries == 0 || i < tries); i += tries != 0) {
        }
        p[0] = 1;
        __threadfence();
    } else {
        while (p[0] == 0) {  // until the phase, or the tries, are over
        }
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_waits(volatile int *p, int sets) {
    if (blockIdx.x == 2 && threadIdx.x == 0 && sets) p[0] = 1;
    if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (p[0] == 0) {  // a block of another cluster
        }
    }
    cg::this_cluster().sync();
}

// Reported, and something waits for ever behind it.
extern "C" __global__ void lanes_missing_behind_atomics(int *p) {
    atomicAdd(p, atomicAdd(p + 1, 1));
    if (threadIdx.x < 16) {
        __shfl_sync(0xffffffffu, threadIdx.x, 1);
    } else {
        __syncthreads();
    }
}

// Nearly every instruction is reported, for as long as it runs.
extern "C" __global__ void reports_for_ever(int *p, int n) {
    for (int i = 0; i >= 0; ++i) p[n + threadIdx.x * (i & 1023)] = i;
}

extern "C" __global__ void many_blocks(int *p) {
    int x = threadIdx.x;
    for (int i = 0; i < 200; ++i) x = x * 5 + i;
    if (x == 12345) p[0] = x;
}
