// Blocks that talk to each other through global memory: correct programs, each of which prints OK as its last line.
#include <cuda_runtime.h>
#include <cuda/atomic>

#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../check.h"
#include "../programs.h"

// All the atomics: integers, floats, 64 bits, the CAS loop for double add and float max, inc and dec with wrap, on
// global and shared memory.
namespace atomics {

__device__ double atomicAddDouble(double *address, double val) {
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__device__ float atomicMaxFloat(float *addr, float value) {
    return value >= 0 ? __int_as_float(atomicMax((int *)addr, __float_as_int(value)))
                      : __uint_as_float(atomicMin((unsigned *)addr, __float_as_uint(value)));
}

struct Sums {
    int add, sub, min, max, exch;
    unsigned inc, dec, and_, or_, xor_;
    unsigned long long add64, max64, or64;
    long long min64;
    float addf, maxf;
    double addd, addd_cas;
    unsigned short cas16;
};

template <class S>
__device__ void update(S *s, int i, int n) {
    atomicAdd(&s->add, i);
    atomicSub(&s->sub, 2 * i);
    atomicMin(&s->min, (i * 7919) % 1000 - 500);
    atomicMax(&s->max, (i * 7919) % 1000 - 500);
    atomicExch(&s->exch, i);
    atomicInc(&s->inc, 99);
    atomicDec(&s->dec, 50);
    atomicAnd(&s->and_, ~(1u << (i % 20)));
    atomicOr(&s->or_, 1u << (i % 20));
    atomicXor(&s->xor_, i * 2654435761u);
    atomicAdd(&s->add64, 1ull << (i % 40));
    atomicMax(&s->max64, (unsigned long long)i << 33);
    atomicMin(&s->min64, -((long long)i << 33));
    atomicOr(&s->or64, 1ull << (i % 64));
    atomicAdd(&s->addf, 0.5f);
    atomicMaxFloat(&s->maxf, i * 0.25f - 10.0f);
    atomicAdd(&s->addd, 0.25);
    atomicAddDouble(&s->addd_cas, 0.125);
    unsigned short seen = s->cas16, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&s->cas16, assumed, (unsigned short)(assumed + 3));
    } while (seen != assumed);
}

__global__ void on_global(Sums *s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) update((Sums *)s, i, n);
}
__global__ void on_shared(Sums *out, const Sums *start, int n) {
    __shared__ Sums s;
    if (threadIdx.x == 0) s = *start;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(&s.add, i);
        atomicSub(&s.sub, 2 * i);
        atomicMin(&s.min, (i * 7919) % 1000 - 500);
        atomicMax(&s.max, (i * 7919) % 1000 - 500);
        atomicExch(&s.exch, i);
        atomicInc(&s.inc, 99);
        atomicDec(&s.dec, 50);
        atomicAnd(&s.and_, ~(1u << (i % 20)));
        atomicOr(&s.or_, 1u << (i % 20));
        atomicXor(&s.xor_, i * 2654435761u);
        atomicAdd(&s.add64, 1ull << (i % 40));
        atomicMax(&s.max64, (unsigned long long)i << 33);
        atomicMin(&s.min64, -((long long)i << 33));
        atomicOr(&s.or64, 1ull << (i % 64));
        atomicAdd(&s.addf, 0.5f);
        atomicMaxFloat(&s.maxf, i * 0.25f - 10.0f);
        atomicAdd(&s.addd, 0.25);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = s;
}

int main() {
    const int n = 700;
    Sums start = {}, want, got, *d;
    start.and_ = ~0u;
    start.min = INT_MAX;
    start.max = INT_MIN;
    start.maxf = -100;
    start.dec = 20;
    want = start;
    for (int i = 0; i < n; ++i) {
        int h = i * 7919 % 1000 - 500;
        want.add += i;
        want.sub -= 2 * i;
        want.min = h < want.min ? h : want.min;
        want.max = h > want.max ? h : want.max;
        want.inc = want.inc >= 99 ? 0 : want.inc + 1;
        want.dec = want.dec == 0 || want.dec > 50 ? 50 : want.dec - 1;
        want.and_ &= ~(1u << (i % 20));
        want.or_ |= 1u << (i % 20);
        want.xor_ ^= i * 2654435761u;
        want.add64 += 1ull << (i % 40);
        want.max64 = (unsigned long long)i << 33;
        want.min64 = -((long long)i << 33);
        want.or64 |= 1ull << (i % 64);
        want.addf += 0.5f;
        want.maxf = i * 0.25f - 10.0f;
        want.addd += 0.25;
        want.addd_cas += 0.125;
        want.cas16 += 3;
    }
    CHECK(cudaMalloc(&d, 2 * sizeof(Sums)));
    for (int kind = 0; kind < 2; ++kind) {
        CHECK(cudaMemcpy(d, &start, sizeof start, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(d + 1, &start, sizeof start, cudaMemcpyHostToDevice));
        if (kind == 0)
            on_global<<<(n + 127) / 128, 128>>>(d, n);
        else
            on_shared<<<1, 128>>>(d, d + 1, n);
        CHECK(cudaMemcpy(&got, d, sizeof got, cudaMemcpyDeviceToHost));
        if (got.exch < 0 || got.exch >= n) return printf("exch %d\n", got.exch), 1;
#define SAME(f) \
    if (got.f != want.f) return printf("kind %d: " #f " differs: %g, want %g\n", kind, double(got.f), double(want.f)), 1
        SAME(add);
        SAME(sub);
        SAME(min);
        SAME(max);
        SAME(inc);
        SAME(dec);
        SAME(and_);
        SAME(or_);
        SAME(xor_);
        SAME(add64);
        SAME(max64);
        SAME(min64);
        SAME(or64);
        SAME(addf);
        SAME(maxf);
        SAME(addd);
        if (kind == 0) {
            SAME(addd_cas);
            SAME(cas16);
        }
    }
    printf("OK\n");
    return 0;
}

}  // namespace atomics

// Blocks that meet in global memory in the usual ways, more of them than one host thread keeps in flight: float sums,
// the last block's turn, a queue of work, a hash table, and printf by all of them. Prints what they computed, whose low
// bits and order tell in which order the blocks came.
namespace blocks_together {

constexpr int kBlocks = 300, kThreads = 64, kSlots = 1 << 15, kItems = 900;

__global__ void float_sums(const float *in, float *sum) {
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int i = 0; i < 50; ++i) x = x * 0.99f + 0.01f;
    for (int offset = 16; offset; offset /= 2) x += __shfl_down_sync(~0u, x, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, x);
}

__global__ void last_block(const float *in, float *parts, unsigned *count, float *sum) {
    __shared__ bool last;
    __shared__ float values[kThreads];
    values[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float x = 0;
        for (float value : values) x += value;
        parts[blockIdx.x] = x;
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float x = 0;
        for (int i = 0; i < gridDim.x; ++i) x += __ldcg(parts + i);
        *sum = x;
    }
}

__global__ void work_queue(unsigned *next, unsigned *owner) {
    __shared__ unsigned item;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) item = atomicAdd(next, 1);
        __syncthreads();
        if (item >= kItems) return;
        unsigned x = item;
        for (unsigned i = 0; i < item % 7 * 20; ++i) x = x * 1664525u + 1013904223u;
        if (threadIdx.x == 0) owner[item] = blockIdx.x + (x & 1) * 1000;
    }
}

__global__ void hash_table(unsigned *keys) {
    const unsigned key = (blockIdx.x * blockDim.x + threadIdx.x) / 2 + 1;
    for (unsigned slot = key * 2654435761u % kSlots;; slot = (slot + 1) % kSlots) {
        const unsigned old = atomicCAS(keys + slot, 0u, key);
        if (old == 0 || old == key) return;
    }
}

__global__ void histogram(const float *in, unsigned *bins) {
    __shared__ unsigned own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(own + int(in[blockIdx.x * blockDim.x + threadIdx.x] * 15.99f), 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}

// Each by itself may come in any order, both together may not.
__global__ void two_kinds(unsigned *x) {
    const unsigned value = (blockIdx.x * blockDim.x + threadIdx.x) * 7919u % 10007u;
    atomicMax(x, value);
    atomicAdd(x, value % 5);
}

__global__ void say(unsigned *turn) {
    if (threadIdx.x == 0) printf("block %d came as number %u\n", blockIdx.x, atomicAdd(turn, 1));
}

template <class T>
unsigned digest(const T *device, size_t count) {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    unsigned hash = 2166136261u;
    for (const T &value : host) {
        unsigned bits;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 16777619u;
    }
    return hash;
}

int main() {
    std::vector<float> in(kBlocks * kThreads);
    for (size_t i = 0; i < in.size(); ++i) in[i] = float(i * 7919 % 10007) / 10007;
    float *device_in, *sums, *parts;
    unsigned *words, *keys;
    CHECK(cudaMalloc(&device_in, in.size() * sizeof(float)));
    CHECK(cudaMalloc(&sums, 2 * sizeof(float)));
    CHECK(cudaMalloc(&parts, kBlocks * sizeof(float)));
    CHECK(cudaMalloc(&words, (kItems + 20) * sizeof(unsigned)));
    CHECK(cudaMalloc(&keys, kSlots * sizeof(unsigned)));
    CHECK(cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(sums, 0, 2 * sizeof(float)));
    CHECK(cudaMemset(words, 0, (kItems + 20) * sizeof(unsigned)));
    CHECK(cudaMemset(keys, 0, kSlots * sizeof(unsigned)));
    float_sums<<<kBlocks, kThreads>>>(device_in, sums);
    last_block<<<kBlocks, kThreads>>>(device_in, parts, words, sums + 1);
    work_queue<<<kBlocks / 3, kThreads>>>(words + 1, words + 20);
    hash_table<<<kBlocks, kThreads>>>(keys);
    histogram<<<kBlocks, kThreads>>>(device_in, words + 2);
    two_kinds<<<kBlocks, kThreads>>>(words + 19);
    say<<<kBlocks, kThreads>>>(words + 18);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> left(20);
    CHECK(cudaMemcpy(left.data(), words, 80, cudaMemcpyDeviceToHost));
    unsigned counted = 0;
    for (int i = 2; i < 18; ++i) counted += left[i];
    if (counted != in.size() || left[1] != kItems + kBlocks / 3 || left[18] != kBlocks) {
        std::printf("FAILED: %u counted, %u taken, %u came\n", counted, left[1], left[18]);
        return 1;
    }
    std::printf("sums %08x, owners %08x, table %08x, bins %08x, %u by two kinds\n", digest(sums, 2),
                digest(words + 20, kItems), digest(keys, kSlots), digest(words + 2, 16), left[19]);
    std::puts("OK");
    return 0;
}

}  // namespace blocks_together

// Volatile flags between the warps of a block and between blocks, and cuda::atomic_ref with acquire and release.
namespace flags {

// Warp 0 hands numbers to warp 1 through shared memory, one at a time.
__global__ void handshake(int *out, int rounds) {
    __shared__ volatile int full;
    __shared__ int data[32];
    if (threadIdx.x == 0) full = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int r = 0; r < rounds; ++r) {
            while (full != 0) {
            }
            __threadfence_block();
            data[lane] = r * 100 + lane;
            __syncwarp();
            if (lane == 0) {
                __threadfence_block();
                full = 1;
            }
            __syncwarp();
        }
    } else {
        int sum = 0;
        for (int r = 0; r < rounds; ++r) {
            while (full != 1) {
            }
            __threadfence_block();
            sum += data[31 - lane];
            __syncwarp();
            if (lane == 0) {
                __threadfence_block();
                full = 0;
            }
            __syncwarp();
        }
        out[lane] = sum;
    }
}

// Block 1 waits for block 0: data, fence, flag.
__global__ void message(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 1) {
        data[threadIdx.x] = threadIdx.x * 3;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0);
            __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = ((volatile int *)data)[threadIdx.x] + 1;
    }
}

__global__ void acquire_release(int *out) {
    __shared__ int ready, payload[32];
    cuda::atomic_ref<int, cuda::thread_scope_block> flag(ready);
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        payload[threadIdx.x] = threadIdx.x + 7;
        __syncwarp();
        if (threadIdx.x == 0) flag.store(1, cuda::std::memory_order_release);
    } else {
        while (flag.load(cuda::std::memory_order_acquire) == 0) {
        }
        out[threadIdx.x - 32] = payload[63 - threadIdx.x];
    }
}

// A counter of arrivals as a barrier of the whole grid (all blocks are resident).
__device__ int arrived;
__device__ volatile int go;
__global__ void own_grid_barrier(int *a, int *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    a[i] = i;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
            __threadfence();
            go = 1;
        }
        while (!go);
        __threadfence();
    }
    __syncthreads();
    b[i] = __ldcg(&a[n - 1 - i]);
}

int main() {
    int *d, h[256];
    if (cudaMalloc(&d, 1024 * 4) != cudaSuccess) return 2;
    cudaMemset(d, 0, 1024 * 4);
    handshake<<<1, 64>>>(d, 5);
    message<<<2, 64>>>(d + 256, d + 512, d + 64);
    acquire_release<<<1, 64>>>(d + 128);
    cudaError_t e = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess) return printf("%s\n", cudaGetErrorString(e)), 1;
    for (int l = 0; l < 32; ++l) {
        if (h[l] != 1000 + 5 * (31 - l)) return printf("handshake %d: %d\n", l, h[l]), 1;
        if (h[128 + l] != 31 - l + 7) return printf("acquire_release %d: %d\n", l, h[128 + l]), 1;
    }
    for (int t = 0; t < 64; ++t) {
        if (h[64 + t] != 3 * t + 1) return printf("message %d: %d\n", t, h[64 + t]), 1;
    }
    own_grid_barrier<<<4, 64>>>(d, d + 512);
    e = cudaMemcpy(h, d + 512, sizeof h, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess) return printf("%s\n", cudaGetErrorString(e)), 1;
    for (int i = 0; i < 256; ++i) {
        if (h[i] != 255 - i) return printf("own_grid_barrier %d: %d\n", i, h[i]), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace flags

// Locks as people write them: the textbook one without fences and with them, per thread and per block, in global and in
// shared memory, a ticket lock, a lock-protected struct, a hash table with a lock for each bucket.
namespace locks {

#define HANDLE_ERROR(e)                                                                 \
    do {                                                                                \
        if ((e) != cudaSuccess) {                                                       \
            printf("%s in %s at line %d\n", cudaGetErrorString(e), __FILE__, __LINE__); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

struct Lock {
    int *mutex;
    Lock() {
        int state = 0;
        HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
        HANDLE_ERROR(cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice));
    }
    __device__ void lock(void) { while (atomicCAS(mutex, 0, 1) != 0); }
    __device__ void unlock(void) { atomicExch(mutex, 0); }
};

__global__ void block_lock(Lock lock, int *count, int *last) {
    __shared__ int mine;
    if (threadIdx.x == 0) {
        lock.lock();
        mine = *(volatile int *)count;
        *(volatile int *)count = mine + 1;
        lock.unlock();
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) last[blockIdx.x] = mine;
}

// Every thread of a warp takes the lock in turn: the loop-with-a-flag form that does not hang in lockstep either.
__global__ void thread_lock(int *mutex, volatile int *sum) {
    bool done = false;
    while (!done) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            __threadfence();
            *sum = *sum + threadIdx.x;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}

// The plain form: needs lanes that make progress on their own.
__global__ void spin_in_warp(int *mutex, int *sum) {
    while (atomicCAS(mutex, 0, 1) != 0) {
    }
    __threadfence();
    *(volatile int *)sum += 1;
    __threadfence();
    atomicExch(mutex, 0);
}

struct Best {
    float value;
    int index;
};

__global__ void shared_lock(const float *values, int n, Best *out) {
    __shared__ int mutex;
    __shared__ Best best;
    if (threadIdx.x == 0) {
        mutex = 0;
        best.value = -1e30f;
        best.index = -1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        bool waiting = true;
        while (waiting) {
            if (atomicCAS(&mutex, 0, 1) == 0) {
                if (values[i] > best.value) {
                    best.value = values[i];
                    best.index = i;
                }
                __threadfence_block();
                atomicExch(&mutex, 0);
                waiting = false;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = best;
}

// No fence at all, as in many programs: the atomics alone.
__global__ void shared_lock_unfenced(int *out) {
    __shared__ int mutex, counter;
    if (threadIdx.x == 0) mutex = counter = 0;
    __syncthreads();
    bool leave = false;
    while (!leave) {
        if (atomicExch(&mutex, 1) == 0) {
            counter = counter + 1;
            leave = true;
            atomicExch(&mutex, 0);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = counter;
}

__global__ void ticket_lock(int *next, volatile int *serving, volatile int *sum) {
    if (threadIdx.x % 32) return;
    int my = atomicAdd(next, 1);
    while (*serving != my) __nanosleep(20);
    __threadfence();
    *sum += my;
    __threadfence();
    *serving = my + 1;
}

struct Entry {
    unsigned key;
    Entry *next;
};

__global__ void hash_insert(Entry **table, int *locks, Entry *pool, const unsigned *keys, int n, int buckets) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned b = keys[i] % buckets;
        for (int lane = 0; lane < 32; lane++) {
            if (threadIdx.x % 32 == lane) {
                Entry *e = pool + i;
                e->key = keys[i];
                while (atomicCAS(locks + b, 0, 1) != 0);
                e->next = ((Entry *volatile *)table)[b];
                ((Entry *volatile *)table)[b] = e;
                __threadfence();
                atomicExch(locks + b, 0);
            }
        }
    }
}

__global__ void hash_count(Entry **table, int *counts, int buckets) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= buckets) return;
    int c = 0;
    for (Entry *e = table[b]; e; e = e->next) c += e->key % buckets == b;
    counts[b] = c;
}

int main() {
    int *d, h[64];
    HANDLE_ERROR(cudaMalloc(&d, 64 * sizeof(int)));
    Lock lock;
    HANDLE_ERROR(cudaMemset(d, 0, 64 * sizeof(int)));
    block_lock<<<20, 64>>>(lock, d, d + 1);
    HANDLE_ERROR(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    unsigned seen = 0;
    for (int i = 0; i < 20; i++) seen |= 1u << h[1 + i];
    if (h[0] != 20 || seen != 0xfffff) return printf("block_lock %d %x\n", h[0], seen), 1;

    HANDLE_ERROR(cudaMemset(d, 0, 64 * sizeof(int)));
    thread_lock<<<2, 64>>>(d, d + 1);
    spin_in_warp<<<2, 48>>>(d + 2, d + 3);
    shared_lock_unfenced<<<2, 70>>>(d + 4);
    ticket_lock<<<3, 96>>>(d + 8, d + 9, d + 10);
    HANDLE_ERROR(cudaDeviceSynchronize());
    HANDLE_ERROR(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    if (h[1] != 2 * 63 * 32 || h[3] != 96 || h[4] != 70 || h[5] != 70 || h[10] != 36) {
        return printf("locks: %d %d %d %d %d\n", h[1], h[3], h[4], h[5], h[10]), 1;
    }

    const int n = 300;
    float values[n], *dv;
    int where = 0;
    for (int i = 0; i < n; i++) {
        values[i] = i * 7919 % 1013;
        if (values[i] > values[where]) where = i;
    }
    Best *db, best;
    HANDLE_ERROR(cudaMalloc(&dv, sizeof values));
    HANDLE_ERROR(cudaMalloc(&db, sizeof best));
    HANDLE_ERROR(cudaMemcpy(dv, values, sizeof values, cudaMemcpyHostToDevice));
    shared_lock<<<1, 128>>>(dv, n, db);
    HANDLE_ERROR(cudaMemcpy(&best, db, sizeof best, cudaMemcpyDeviceToHost));
    if (best.index != where || best.value != values[where]) return printf("best %d %f\n", best.index, best.value), 1;

    const int buckets = 17;
    unsigned keys[n], *dk;
    Entry **table, *pool;
    int *locks, *counts, want[buckets] = {0}, got[buckets];
    for (int i = 0; i < n; i++) want[(keys[i] = rand()) % buckets]++;
    HANDLE_ERROR(cudaMalloc(&dk, sizeof keys));
    HANDLE_ERROR(cudaMalloc(&table, buckets * sizeof(Entry *)));
    HANDLE_ERROR(cudaMalloc(&pool, n * sizeof(Entry)));
    HANDLE_ERROR(cudaMalloc(&locks, sizeof got));
    HANDLE_ERROR(cudaMalloc(&counts, sizeof got));
    HANDLE_ERROR(cudaMemset(table, 0, buckets * sizeof(Entry *)));
    HANDLE_ERROR(cudaMemset(locks, 0, sizeof got));
    HANDLE_ERROR(cudaMemcpy(dk, keys, sizeof keys, cudaMemcpyHostToDevice));
    hash_insert<<<3, 64>>>(table, locks, pool, dk, n, buckets);
    hash_count<<<1, 32>>>(table, counts, buckets);
    HANDLE_ERROR(cudaMemcpy(got, counts, sizeof got, cudaMemcpyDeviceToHost));
    for (int b = 0; b < buckets; b++) {
        if (got[b] != want[b]) return printf("bucket %d: %d, want %d\n", b, got[b], want[b]), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace locks

// Counters in global memory that a block sets, counts up with updates of one kind, whose old values nothing uses, and
// reads and sets again: each access must see what the block itself did before. A few more counters are everybody's.
namespace own_updates {

constexpr int kBlocks = 40, kThreads = 96, kOwn = 24;

__global__ void count(unsigned *own, unsigned *all, unsigned *seen, unsigned *early) {
    unsigned *const mine = own + blockIdx.x * kOwn;
    const unsigned thread = threadIdx.x;
    if (thread < kOwn) mine[thread] = 100 + thread;
    __syncthreads();
    for (int i = 0; i < 10; ++i) {
        atomicAdd(mine + (thread + i) % kOwn, 1u);
        atomicAdd(all + (thread * 7 + i) % 3000, 1u);
    }
    __syncthreads();
    if (thread < kOwn / 4) {  // 16 bytes a lane
        const uint4 x = reinterpret_cast<const uint4 *>(mine)[thread];
        reinterpret_cast<uint4 *>(early + blockIdx.x * kOwn)[thread] = x;
    }
    __syncthreads();
    if (thread < kOwn) mine[thread] = thread;
    __syncthreads();
    if (thread < 32) atomicAdd(mine + thread % kOwn, thread);
    __syncwarp();
    if (thread == 0) {
        atomicAdd(mine, 5u);
        seen[blockIdx.x] = *mine;  // the warp's own updates, at once
    }
}

__global__ void smallest(int *least) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 7919 % 100003 - 50000;
    atomicMin(least, x);
}

__global__ void greatest(long long *most) {
    const long long x = (long long)(blockIdx.x * blockDim.x + threadIdx.x) * 7919 % 100003 - 200000;
    atomicMax(most, x << 20);
}

__global__ void bits(unsigned *set) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    atomicOr(set + thread / 32, 1u << thread % 32);
}

template <class T>
T *device(size_t count, const std::vector<T> &from = {}) {
    T *memory;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    CHECK(cudaMemset(memory, 0, count * sizeof(T)));
    if (from.size()) CHECK(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

template <class T>
std::vector<T> host(const T *memory, size_t count) {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

int failed = 0;

void expect(const char *what, size_t i, long long got, long long wanted) {
    if (got == wanted || failed++ > 10) return;
    std::printf("FAILED: %s %zu is %lld, not %lld\n", what, i, got, wanted);
}

int main() {
    auto *own = device<unsigned>(kBlocks * kOwn), *all = device<unsigned>(3000), *seen = device<unsigned>(kBlocks);
    auto *early = device<unsigned>(kBlocks * kOwn), *set = device<unsigned>(kBlocks * kThreads / 32);
    auto *least = device<int>(1, {1 << 30});
    auto *most = device<long long>(1, {-(1ll << 60)});
    count<<<kBlocks, kThreads>>>(own, all, seen, early);
    smallest<<<kBlocks, kThreads>>>(least);
    greatest<<<kBlocks, kThreads>>>(most);
    bits<<<kBlocks, kThreads>>>(set);
    CHECK(cudaDeviceSynchronize());
    unsigned everybody[3000] = {};
    for (int thread = 0; thread < kThreads; ++thread) {
        for (int i = 0; i < 10; ++i) everybody[(thread * 7 + i) % 3000] += kBlocks;
    }
    const auto all_now = host(all, 3000);
    for (size_t i = 0; i < 3000; ++i) expect("everybody's counter", i, all_now[i], everybody[i]);
    const auto early_now = host(early, kBlocks * kOwn), own_now = host(own, kBlocks * kOwn),
               seen_now = host(seen, kBlocks);
    for (size_t i = 0; i < early_now.size(); ++i) {
        const int k = i % kOwn;
        expect("counter", i, early_now[i], 100 + k + kThreads * 10 / kOwn);
        expect("counter after it was set again", i, own_now[i], k + k + (k + kOwn < 32 ? k + kOwn : 0) + (k ? 0 : 5));
    }
    for (size_t i = 0; i < seen_now.size(); ++i) expect("what the thread saw of block", i, seen_now[i], kOwn + 5);
    int low = 1 << 30;
    long long high = -(1ll << 60);
    for (int i = 0; i < kBlocks * kThreads; ++i) {
        low = std::min(low, i * 7919 % 100003 - 50000);
        high = std::max(high, ((long long)i * 7919 % 100003 - 200000) * (1 << 20));
    }
    expect("least", 0, host(least, 1)[0], low);
    expect("most", 0, host(most, 1)[0], high);
    const auto set_now = host(set, kBlocks * kThreads / 32);
    for (size_t i = 0; i < set_now.size(); ++i) expect("word of bits", i, set_now[i], ~0u);
    if (!failed) std::puts("OK");
    return failed != 0;
}

}  // namespace own_updates

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(atomics),
                         PROGRAM(blocks_together),
                         PROGRAM(flags),
                         PROGRAM(locks),
                         PROGRAM(own_updates),
                     });
}
