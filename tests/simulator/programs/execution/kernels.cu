// Kernels of test_execution.py. Compiled to PTX; each says what it writes.
#include <cassert>
#include <cstdio>

extern "C" {

// p[t] after a loop whose length and branches differ from lane to lane.
__global__ void collatz(int *p) {
    int x = threadIdx.x + 1, steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        ++steps;
    }
    p[threadIdx.x] = steps;
}

// Early `continue`, `break` and `return` in nested loops.
__global__ void nested(int *p, int n) {
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < n; ++i) {
        if ((i + t) % 3 == 0) continue;
        for (int j = 0; j < i; ++j) {
            if (j * t > 40) break;
            if (sum > 500 && (t & 1)) {
                p[t] = -sum;
                return;
            }
            sum += j ^ t;
        }
    }
    p[t] = sum;
}

__global__ void choose(int *p) {
    int t = threadIdx.x, x = t * 7;
    switch (t % 11) {
        case 0:
            x += 5;
            break;
        case 1:
            x *= 3;
            break;
        case 2:
            x ^= 0x55;
            break;
        case 3:
            x = -x;
            break;
        case 4:
            x -= 100;  // falls through
        case 5:
            x <<= 2;
            break;
        case 6:
            x |= 1024;
            break;
        case 7:
            return;
        case 8:
            x %= 13;
            break;
        default:
            x = 999;
    }
    p[t] = x;
}

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int *p) {
    p[threadIdx.x] = fibonacci(threadIdx.x % 13);
}

__device__ __noinline__ int bottomless(int n, volatile int *p) {
    return n == -1 ? 0 : bottomless(n + 1, p) + p[0];
}
__global__ void overflow(int *p) {
    p[0] = bottomless(p[1], p);
}

__device__ __noinline__ int twice(int x) {
    return 2 * x;
}
__device__ __noinline__ int plus_hundred(int x) {
    return x + 100;
}
__device__ __noinline__ int minus(int x) {
    return -x;
}
__device__ int (*table[3])(int) = {twice, plus_hundred, minus};
__global__ void pointers(int *p) {
    p[threadIdx.x] = table[threadIdx.x % 3](threadIdx.x);
}
__global__ void wild_pointer(int *p, unsigned long long f) {
    p[threadIdx.x] = reinterpret_cast<int (*)(int)>(f)(1);
}

struct Large {
    int v[40];
};
__device__ __noinline__ Large rotate(Large x, int by) {
    Large y;
    for (int i = 0; i < 40; ++i) y.v[i] = x.v[(i + by) % 40];
    return y;
}
__global__ void structs(int *p) {
    Large x;
    for (int i = 0; i < 40; ++i) x.v[i] = 1000 * threadIdx.x + i;
    x = rotate(rotate(x, threadIdx.x), 3);
    p[threadIdx.x] = x.v[threadIdx.x % 40];
}

__device__ __noinline__ void swap_through(int *a, int *b) {
    int c = *a;
    *a = *b;
    *b = c;
}
__global__ void local_addresses(int *p) {
    int a = threadIdx.x, b = threadIdx.x * threadIdx.x;
    swap_through(&a, &b);
    p[threadIdx.x] = a - b;
}

__global__ void prints(int n) {
    if (threadIdx.x < n)
        printf("b%d t%d %5.2f %-6s|%lld %#x %c %% %s\n", blockIdx.x, threadIdx.x, threadIdx.x / 4.0,
               threadIdx.x & 1 ? "odd" : "even", -(1ll << 40), 255u, 'q', (const char *)nullptr);
}

__global__ void asserts(int *p, int bad) {
    assert(threadIdx.x != bad);
    p[threadIdx.x] = 1;
}

__global__ void traps(int *p) {
    if (p[threadIdx.x] == 7) __trap();
}

__global__ void spin(volatile int *p) {
    for (unsigned long long tries = 1; p[0] == 0 && tries; ++tries) {  // it counts: nobody knows that it will not end
    }
}
__global__ void endless(int *p) {
    for (unsigned i = 1; i; i += 2) p[threadIdx.x] += i;
}

// Lanes of a warp, warps and blocks fight for one lock.
__global__ void spin_lock(int *p) {
    bool done = false;
    while (!done) {
        if (atomicCAS(p, 0, 1) == 0) {
            __threadfence();
            p[1] += 1;
            __threadfence();
            atomicExch(p, 0);
            done = true;
        }
    }
}
__global__ void spin_lock_tight(int *p) {
    while (atomicCAS(p, 0, 1) != 0) {
    }
    __threadfence();
    p[1] += 1;
    __threadfence();
    atomicExch(p, 0);
}

// Block 0 waits for all others, lane 31 of a warp for lane 0.
__global__ void flags(volatile int *p) {
    if (blockIdx.x != 0) {
        if (threadIdx.x == 0) atomicAdd((int *)p, 1);
        return;
    }
    if (threadIdx.x == 31) {
        while (p[0] < (int)gridDim.x - 1) {
        }
        p[1] = 77;
    }
}

__global__ void named_barriers(int *p) {
    __shared__ int s[32];
    const int t = threadIdx.x;
    if (t >= 32) {
        s[t - 32] = t;
        asm volatile("bar.arrive 3, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 64;" ::: "memory");
        p[t] = s[t];
    }
}

// Warp 1 gives its turn twice before anybody has taken it: warp 2, for whom warp 0 should wait, is not waited for.
__global__ void arrives_twice(int *p) {
    const int warp = threadIdx.x / 32;
    if (warp == 1) {
        asm volatile("bar.arrive 3, 96;" ::: "memory");
        asm volatile("bar.arrive 3, 96;" ::: "memory");
    } else if (warp == 0) {
        asm volatile("bar.sync 3, 96;" ::: "memory");
        p[0] = 1;
    }
}
// Each arrives at its own barrier in place of the other's.
__global__ void arrives_and_waits(int *p) {
    const int warp = threadIdx.x / 32;
    asm volatile("bar.arrive %0, 64;" ::"r"(1 + warp) : "memory");
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp) : "memory");
    p[threadIdx.x] = 1;
}

__global__ void counting_barriers(int *p) {
    const int t = threadIdx.x;
    p[3 * t] = __syncthreads_count(t % 3 == 0);
    p[3 * t + 1] = __syncthreads_and(t < 60);
    p[3 * t + 2] = __syncthreads_or(t == 60);
}

// The first two warps count among themselves; the third one does not come.
__global__ void counting_of_some(int *p) {
    const int t = threadIdx.x;
    if (t >= 64) return;
    asm volatile(
        "{\n.reg .pred third, all;\nsetp.eq.u32 third, %2, 0;\n"
        "bar.red.popc.u32 %0, 1, 64, third;\n"
        "bar.red.and.pred all, 2, 64, !third;\n"
        "selp.u32 %1, 1, 0, all;\n}"
        : "=r"(p[2 * t]), "=r"(p[2 * t + 1])
        : "r"(t % 3)
        : "memory");
}

// Threads that have exited hold nobody up.
__global__ void exit_before_barrier(int *p) {
    const int t = threadIdx.x;
    if (t % 3 == 1 || t >= 96) return;
    __syncthreads();
    p[t] = 1;
}

__global__ void different_barriers(int *p) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    __syncthreads();
    p[threadIdx.x] = 1;
}
__global__ void divergent_barrier(int *p) {
    if (threadIdx.x < 16) {
        __syncthreads();
        p[threadIdx.x] = 1;
    } else {
        p[threadIdx.x] = 2;
        __syncthreads();
    }
}
__global__ void too_few_for_barrier(int *p) {
    if (threadIdx.x < 32) asm volatile("bar.sync 2, 96;" ::: "memory");
    p[threadIdx.x] = 1;
}

// A warp-synchronous instruction whose lanes stand at different places of the program.
__global__ void split_shuffle(int *p) {
    const int t = threadIdx.x;
    int x;
    if (t & 1) {
        p[t] = 5;
        x = __shfl_xor_sync(0xffffffff, t * 10, 1);
    } else {
        p[t] = 6;
        x = __shfl_xor_sync(0xffffffff, t * 100, 1);
    }
    p[t] = x;
}
__global__ void tiles(int *p) {
    const int t = threadIdx.x, tile = t / 8;
    int x = t;
    if (tile & 1)
        x = __reduce_add_sync(0xffu << (8 * tile), t);
    else
        x = __shfl_down_sync(0xffu << (8 * tile), t, 1, 8);
    p[t] = x;
}
__global__ void warp_values(unsigned *p) {
    const unsigned t = threadIdx.x;
    unsigned *q = p + 8 * t;
    int all_same;
    q[0] = __ballot_sync(~0u, t % 3 == 0);
    q[1] = __all_sync(~0u, t < 31) + 2 * __any_sync(~0u, t == 31) + 4 * __uni_sync(~0u, t > 40);
    q[2] = __match_any_sync(~0u, t / 5);
    q[3] = __match_all_sync(~0u, 9ull << 40, &all_same);
    q[3] &= -all_same;
    q[4] = __reduce_min_sync(~0u, int(t) - 7);
    q[5] = __reduce_xor_sync(~0u, t * 77);
    q[6] = __shfl_up_sync(~0u, t, 3);
    q[7] = t & 4 ? __activemask() : 0;
}
__global__ void exited_lane(int *p) {
    if (threadIdx.x == 3) return;
    p[threadIdx.x] = __shfl_down_sync(0xffffffff, threadIdx.x, 1);
}
__global__ void not_in_mask(int *p) {
    p[blockIdx.x * blockDim.x + threadIdx.x] = __shfl_sync(0x0000ffff, threadIdx.x, 0);
}
__global__ void waits_for_barrier(int *p) {
    if (threadIdx.x < 8) p[threadIdx.x] = __shfl_sync(0xffffffff, threadIdx.x, 9);
    __syncthreads();
}

__global__ void heap(int *p) {
    int *q = static_cast<int *>(malloc(64));
    q[threadIdx.x % 16] = threadIdx.x;
    p[threadIdx.x] = q[threadIdx.x % 16];
    free(q);
}

__global__ void clocks(long long *p) {
    const long long a = clock64(), b = clock64();
    unsigned long long c, d;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(c));
    __nanosleep(100);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(d));
    p[threadIdx.x] = (b > a) + 2 * (d > c);
}

__global__ void sum_in_order(float *p, const float *x) {
    atomicAdd(p, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

__constant__ int constants[4] = {3, 5, 7, 11};
__device__ int *where = (int *)constants;
__global__ void reads_constants(int *p) {
    p[threadIdx.x] = constants[threadIdx.x % 4];
}
__global__ void writes_constants(int *p) {
    *(int *)__cvta_generic_to_global(where) = p[0];
}

}  // extern "C"
