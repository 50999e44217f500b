// Locks as people write them: the textbook one without fences and with them, per thread and per block, in global and in
// shared memory, a ticket lock, a lock-protected struct, a hash table with a lock for each bucket.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

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
