// Warps: divergence, lanes that are missing, barriers of some of them: correct programs, each of which prints OK as its
// last line.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"
#include "../programs.h"

// Shuffles, votes and barriers around divergent code: unlikely paths that compilers lay out of line, early exits, loops
// of different lengths, switch, nested branches, break and continue, warps that leave before a barrier.
namespace divergence {

__device__ __noinline__ int rare(int v) {
    int r = v;
    for (int i = 0; i < v % 7; ++i) r = r * 3 + i;
    return r;
}
static int rare_host(int v) {
    int r = v;
    for (int i = 0; i < v % 7; ++i) r = r * 3 + i;
    return r;
}

__global__ void shuffle_around(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    if (__builtin_expect(v % 5 == 0, 0)) v = rare(v);
    v += __shfl_xor_sync(0xffffffff, v, 1);
    if (__builtin_expect(v < 0, 0)) {
        v = -v;
        if (v % 3 == 0) v = rare(v);
    }
    int first = __shfl_sync(0xffffffff, v, 0);
    if (i < n) out[i] = v ^ first;
}

// Half a warp leaves; the rest goes on with shuffles among themselves.
__global__ void half_leaves(int *out) {
    if (threadIdx.x % 32 >= 16) {
        out[threadIdx.x] = -1;
        return;
    }
    int v = threadIdx.x;
    for (int d = 8; d; d /= 2) v += __shfl_xor_sync(0x0000ffff, v, d);
    out[threadIdx.x] = v;
}

// Threads without work leave before the barrier.
__global__ void leave_before_barrier(int *out, int n) {
    __shared__ int s[128];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = t * t;
    __syncthreads();
    out[t] = s[n - 1 - t];
}

__global__ void different_lengths(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int steps = 0;
    long long v = in[i] + 1;
    while (v != 1) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        if (++steps > 500) break;
        if (steps % 2) continue;
        v += 0;
    }
    switch (i % 6) {
        case 0:
            steps += 1000;
            break;
        case 1:
            steps += 2000;  // falls through
        case 2:
            steps += 30;
            break;
        case 3:
            return;
        case 4:
            steps = -steps;
            break;
        default:
            steps *= 2;
    }
    out[i] = steps;
}
static int different_lengths_host(int in, int i) {
    int steps = 0;
    long long v = in + 1;
    while (v != 1) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        if (++steps > 500) break;
    }
    switch (i % 6) {
        case 0:
            return steps + 1000;
        case 1:
            return steps + 2030;
        case 2:
            return steps + 30;
        case 3:
            return -7;
        case 4:
            return -steps;
        default:
            return steps * 2;
    }
}

__global__ void votes(unsigned *out, const int *in) {
    int v = in[threadIdx.x];
    unsigned odd = __ballot_sync(~0u, v & 1);
    bool all = __all_sync(~0u, v >= 0), any = __any_sync(~0u, v == 77);
    unsigned same = __match_any_sync(~0u, v % 4);
    int pred;
    unsigned match = __match_all_sync(~0u, v, &pred);
    unsigned active = 0;
    if (v & 1) {
        active = __activemask();
        active = __popc(active) <= __popc(odd) ? odd : 0;
    }
    out[threadIdx.x] =
        (threadIdx.x % 32 == 0 ? odd : 0) + all + 2 * any + 4 * (__ffs(same) - 1) + 1000 * pred + match + (active & 0);
}

__global__ void barrier_votes(int *out, const int *in, int n) {
    int i = threadIdx.x;
    int count = __syncthreads_count(in[i] & 1);
    int any = __syncthreads_or(in[i] == 77);
    int all = __syncthreads_and(in[i] >= 0);
    if (i == 0) {
        out[0] = count;
        out[1] = any != 0;
        out[2] = all != 0;
    }
}

int main() {
    const int n = 500;
    std::vector<int> h(n), got(n);
    for (int i = 0; i < n; ++i) h[i] = i * 37 % 211;
    int *in, *out;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice));
    auto fetch = [&] {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(got.data(), out, n * 4, cudaMemcpyDeviceToHost));
    };
    shuffle_around<<<2, 256>>>(out, in, n);
    fetch();
    for (int w = 0; w < n; w += 32) {
        int v[32], s[32];
        for (int l = 0; l < 32; ++l) {
            v[l] = w + l < n ? h[w + l] : 0;
            if (v[l] % 5 == 0) v[l] = rare_host(v[l]);
        }
        for (int l = 0; l < 32; ++l) {
            s[l] = v[l] + v[l ^ 1];
            if (s[l] < 0) {
                s[l] = -s[l];
                if (s[l] % 3 == 0) s[l] = rare_host(s[l]);
            }
        }
        for (int l = 0; l < 32 && w + l < n; ++l) {
            if (got[w + l] != (s[l] ^ s[0])) return printf("shuffle_around %d\n", w + l), 1;
        }
    }
    half_leaves<<<1, 64>>>(out);
    fetch();
    for (int t = 0; t < 64; ++t) {
        int want = t % 32 >= 16 ? -1 : t < 32 ? 120 : 120 + 16 * 32;
        if (got[t] != want) return printf("half_leaves %d: %d\n", t, got[t]), 1;
    }
    for (int m : {128, 100, 33, 7}) {
        leave_before_barrier<<<1, 128>>>(out, m);
        fetch();
        for (int t = 0; t < m; ++t) {
            if (got[t] != (m - 1 - t) * (m - 1 - t)) return printf("leave_before_barrier %d %d\n", m, t), 1;
        }
    }
    for (int &v : got) v = -7;
    CHECK(cudaMemcpy(out, got.data(), n * 4, cudaMemcpyHostToDevice));
    different_lengths<<<(n + 63) / 64, 64>>>(out, in, n);
    fetch();
    for (int i = 0; i < n; ++i) {
        if (got[i] != different_lengths_host(h[i], i)) return printf("different_lengths %d: %d\n", i, got[i]), 1;
    }
    votes<<<1, 64>>>((unsigned *)out, in);
    fetch();
    for (int w = 0; w < 64; w += 32) {
        unsigned odd = 0;
        bool any = false;
        for (int l = 0; l < 32; ++l) {
            odd |= unsigned(h[w + l] & 1) << l;
            any |= h[w + l] == 77;
        }
        for (int l = 0; l < 32; ++l) {
            int first = 0;
            while (h[w + first] % 4 != h[w + l] % 4) ++first;
            unsigned want = (l == 0 ? odd : 0) + 1 + 2 * any + 4 * first;
            if (unsigned(got[w + l]) != want) return printf("votes %d: %x, want %x\n", w + l, got[w + l], want), 1;
        }
    }
    barrier_votes<<<1, 200>>>(out, in, n);
    fetch();
    int odd = 0, any = 0;
    for (int i = 0; i < 200; ++i) {
        odd += h[i] & 1;
        any |= h[i] == 77;
    }
    if (got[0] != odd || got[1] != any || got[2] != 1)
        return printf("barrier_votes %d %d %d\n", got[0], got[1], got[2]), 1;
    printf("OK\n");
    return 0;
}

}  // namespace divergence

// Producer and consumer warps with named barriers (bar.sync / bar.arrive), two buffers; pairs of warps with their own
// barrier.
namespace named_barriers {

__device__ __forceinline__ void bar_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void bar_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

constexpr int kChunk = 64, kStages = 2;
// Barrier 1 + s: buffer s is full. 1 + kStages + s: buffer s is empty.
__global__ void pipeline(const float *in, float *out, int chunks) {
    __shared__ float buffer[kStages][kChunk];
    const bool producer = threadIdx.x < kChunk;
    const int t = threadIdx.x % kChunk;
    for (int c = 0; c < chunks; ++c) {
        const int s = c % kStages;
        if (producer) {
            if (c >= kStages) bar_sync(1 + kStages + s, 2 * kChunk);
            buffer[s][t] = in[c * kChunk + t];
            bar_arrive(1 + s, 2 * kChunk);
        } else {
            bar_sync(1 + s, 2 * kChunk);
            out[c * kChunk + t] = buffer[s][kChunk - 1 - t] * 2.0f;
            if (c + kStages < chunks) bar_arrive(1 + kStages + s, 2 * kChunk);
        }
    }
}

// Each pair of warps meets at a barrier of its own; the block meets at barrier 0 in the end.
__global__ void pairs(int *out) {
    __shared__ int s[256];
    const int pair = threadIdx.x / 64, in_pair = threadIdx.x % 64;
    int v = threadIdx.x;
    for (int round = 0; round < 4; ++round) {
        s[threadIdx.x] = v + round;
        bar_sync(1 + pair, 64);
        v = s[pair * 64 + (in_pair + 33) % 64];
        bar_sync(1 + pair, 64);
    }
    s[threadIdx.x] = v;
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

int main() {
    const int chunks = 9, n = chunks * kChunk;
    float *in, *out;
    int *iout;
    cudaMallocManaged(&in, n * sizeof(float));
    cudaMallocManaged(&out, n * sizeof(float));
    cudaMallocManaged(&iout, 256 * sizeof(int));
    for (int i = 0; i < n; ++i) in[i] = rand() % 1000;
    pipeline<<<1, 2 * kChunk>>>(in, out, chunks);
    pairs<<<1, 256>>>(iout);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (int i = 0; i < n; ++i) {
        const int c = i / kChunk, t = i % kChunk;
        if (out[i] != 2 * in[c * kChunk + kChunk - 1 - t]) return printf("pipeline %d\n", i), 1;
    }
    for (int t = 0; t < 256; ++t) {
        int v[64], w[64];
        const int pair = (255 - t) / 64;
        for (int i = 0; i < 64; ++i) v[i] = pair * 64 + i;
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < 64; ++i) w[i] = v[(i + 33) % 64] + round;
            for (int i = 0; i < 64; ++i) v[i] = w[i];
        }
        if (iout[t] != v[(255 - t) % 64]) return printf("pairs %d: %d want %d\n", t, iout[t], v[(255 - t) % 64]), 1;
    }
    cudaFree(in);
    cudaFree(out);
    cudaFree(iout);
    printf("OK\n");
    return 0;
}

}  // namespace named_barriers

// Warp primitives over a part of a warp, as in the vendor's own articles: masks from a ballot, lanes that read from
// absent ones and drop what they got, sub-warps by the width argument, a leader elected from the active mask.
namespace partial_warps {

#define FULL_MASK 0xffffffff

__global__ void reduce_elements(const int *input, int *out, int n) {
    unsigned mask = __ballot_sync(FULL_MASK, threadIdx.x < n);
    if (threadIdx.x < n) {
        int val = input[threadIdx.x];
        for (int offset = 16; offset > 0; offset /= 2) {
            int other = __shfl_down_sync(mask, val, offset);
            if (threadIdx.x + offset < n) val += other;
        }
        if (threadIdx.x == 0) *out = val;
    }
}

__global__ void half_warp(const int *input, int *out) {
    if (threadIdx.x < 16) {
        int val = input[threadIdx.x];
        for (int offset = 8; offset > 0; offset /= 2) val += __shfl_down_sync(0xffff, val, offset);
        if (threadIdx.x == 0) *out = val;
    }
}

__global__ void by_width(const int *input, int *out) {
    int val = input[threadIdx.x];
    for (int offset = 4; offset > 0; offset /= 2) val += __shfl_xor_sync(FULL_MASK, val, offset, 8);
    out[threadIdx.x] = val + __shfl_sync(FULL_MASK, threadIdx.x, 3, 8);
}

__global__ void leaders(int *counter, int *out) {
    if (threadIdx.x % 3 == 1) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1;
        int base = 0;
        if (threadIdx.x % 32 == leader) base = atomicAdd(counter, __popc(active));
        base = __shfl_sync(active, base, leader);
        out[base + __popc(active & ((1u << (threadIdx.x % 32)) - 1))] = threadIdx.x;
    }
}

int main() {
    int h[64], got[64], *in, *out;
    for (int i = 0; i < 64; ++i) h[i] = rand() % 100;
    if (cudaMalloc(&in, sizeof h) || cudaMalloc(&out, 65 * sizeof(int))) return 2;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    for (int n : {1, 5, 19, 32}) {
        reduce_elements<<<1, 32>>>(in, out, n);
        int want = 0;
        for (int i = 0; i < n; ++i) want += h[i];
        cudaMemcpy(got, out, sizeof(int), cudaMemcpyDeviceToHost);
        if (got[0] != want) return printf("reduce_elements %d: %d, want %d\n", n, got[0], want), 1;
    }
    half_warp<<<1, 32>>>(in, out);
    cudaMemcpy(got, out, sizeof(int), cudaMemcpyDeviceToHost);
    int want = 0;
    for (int i = 0; i < 16; ++i) want += h[i];
    if (got[0] != want) return printf("half_warp %d, want %d\n", got[0], want), 1;
    by_width<<<1, 64>>>(in, out);
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    for (int t = 0; t < 64; ++t) {
        want = t / 8 * 8 + 3;
        for (int i = 0; i < 8; ++i) want += h[t / 8 * 8 + i];
        if (got[t] != want) return printf("by_width %d: %d, want %d\n", t, got[t], want), 1;
    }
    cudaMemset(out, 0, 65 * sizeof(int));
    leaders<<<1, 64>>>(out + 64, out);
    if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    unsigned long long seen = 0;
    for (int i = 0; i < 21; ++i) seen |= 1ull << got[i];
    for (int t = 0; t < 64; ++t) {
        if ((seen >> t & 1) != (t % 3 == 1)) return printf("leaders %d\n", t), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace partial_warps

// Exchange through shared memory within a warp or a part of it: __syncwarp with full and partial masks, in both
// branches of an if, warps that work on their own slices, lanes that left, a double buffer.
namespace syncwarp {

__global__ void full_mask(int *out, const int *in) {
    __shared__ int s[4][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) {
        s[warp][lane] = v;
        __syncwarp();
        v += s[warp][lane ^ d];
        __syncwarp();
    }
    out[threadIdx.x] = v;
}

__global__ void both_branches(int *out, const int *in) {
    __shared__ int s[32];
    const int lane = threadIdx.x;
    if (lane < 12) {
        s[lane] = in[lane];
        __syncwarp(0x00000fff);
        out[lane] = s[11 - lane];
    } else {
        s[lane] = in[lane] * 2;
        __syncwarp(0xfffff000);
        out[lane] = s[12 + (31 - lane)];
    }
    __syncwarp();
    s[lane] = out[lane];
    __syncwarp();
    out[lane] += s[(lane + 1) % 32];
}

__global__ void some_left(int *out, const int *in, int n) {
    __shared__ int s[64];
    const int lane = threadIdx.x % 32;
    int *mine = s + (threadIdx.x & ~31);
    if (lane >= n) return;
    const unsigned mask = (1u << n) - 1;
    mine[lane] = in[threadIdx.x];
    __syncwarp(mask);
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += mine[i];
    out[threadIdx.x] = sum;
}

// Matrix of 8 x 8 transposed by each quarter warp on its own.
__global__ void quarters(int *out, const int *in) {
    __shared__ int s[4][64];
    const int q = threadIdx.x / 8, l = threadIdx.x % 8;
    const unsigned mask = 0xffu << (8 * q);
    for (int r = 0; r < 8; ++r) s[q][r * 8 + l] = in[q * 64 + r * 8 + l];
    __syncwarp(mask);
    for (int r = 0; r < 8; ++r) out[q * 64 + r * 8 + l] = s[q][l * 8 + r];
}

__global__ void double_buffer(int *out, const int *in, int rounds) {
    __shared__ volatile int unused;
    __shared__ int s[2][2][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) unused = 1;
    int v = in[threadIdx.x];
    for (int r = 0; r < rounds; ++r) {
        s[warp][r % 2][lane] = v;
        __syncwarp();
        v = s[warp][r % 2][(lane + 5) % 32] + r;
    }
    out[threadIdx.x] = v;
}

int main() {
    int *in, *out, h[256], o[256];
    for (int i = 0; i < 256; ++i) h[i] = rand() % 1000;
    if (cudaMalloc(&in, sizeof h) || cudaMalloc(&out, sizeof h)) return 2;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    auto fetch = [&] {
        cudaError_t e = cudaMemcpy(o, out, sizeof o, cudaMemcpyDeviceToHost);
        if (e != cudaSuccess) {
            printf("%s\n", cudaGetErrorString(e));
            exit(1);
        }
    };
    full_mask<<<1, 128>>>(out, in);
    fetch();
    for (int t = 0; t < 128; ++t) {
        int sum = 0;
        for (int l = 0; l < 32; ++l) sum += h[t / 32 * 32 + l];
        if (o[t] != sum) return printf("full_mask %d\n", t), 1;
    }
    both_branches<<<1, 32>>>(out, in);
    fetch();
    int v[32];
    for (int l = 0; l < 32; ++l) v[l] = l < 12 ? h[11 - l] : 2 * h[12 + 31 - l];
    for (int l = 0; l < 32; ++l)
        if (o[l] != v[l] + v[(l + 1) % 32]) return printf("both_branches %d\n", l), 1;
    for (int n : {1, 7, 31}) {
        some_left<<<1, 64>>>(out, in, n);
        fetch();
        for (int t = 0; t < 64; ++t) {
            if (t % 32 >= n) continue;
            int sum = 0;
            for (int i = 0; i < n; ++i) sum += h[t / 32 * 32 + i];
            if (o[t] != sum) return printf("some_left %d\n", t), 1;
        }
    }
    quarters<<<1, 32>>>(out, in);
    fetch();
    for (int i = 0; i < 256; ++i)
        if (o[i] != h[i / 64 * 64 + i % 8 * 8 + i / 8 % 8]) return printf("quarters %d\n", i), 1;
    double_buffer<<<1, 64>>>(out, in, 6);
    fetch();
    for (int t = 0; t < 64; ++t)
        if (o[t] != h[t / 32 * 32 + (t + 30) % 32] + 15) return printf("double_buffer %d\n", t), 1;
    printf("OK\n");
    return 0;
}

}  // namespace syncwarp

// What looks like lanes that count on going in step, and like reads of lanes that take no part.
namespace partners {

// Each lane waits for its neighbour's flag.
__global__ void flags(int *out) {
    __shared__ volatile int flag[32];
    const int t = threadIdx.x;
    flag[t] = 0;
    __syncwarp();
    flag[t] = t + 1;
    while (flag[(t + 1) % 32] == 0) {
    }
    out[t] = flag[(t + 1) % 32] != 0;
}

// Some lanes set a flag that all look at, whether it is set by then or not.
__global__ void first_found(int *out, const int *in) {
    __shared__ volatile int found;
    const int t = threadIdx.x;
    found = 0;
    __syncwarp();
    int steps = 0;
    for (int i = t; i < 320; i += 32) {
        if (in[i % 32] > 80) found = 1;
        ++steps;
        if (found) break;
    }
    out[t] = steps;
}

// Volatile, with barriers of the warp.
__global__ void volatile_sum(int *out, const int *in) {
    __shared__ volatile int partial[64];
    const int t = threadIdx.x;
    partial[t] = in[t];
    partial[t + 32] = 0;
    __syncwarp();
    for (int d = 16; d; d /= 2) {
        const int other = partial[t + d];
        __syncwarp();
        partial[t] += other;
        __syncwarp();
    }
    out[t] = partial[0];
}

// Lanes that get nothing from their partner drop what they read; the greatest is the first lane's.
__global__ void greatest(int *out, const int *in, int n) {
    const int t = threadIdx.x;
    if (t >= n) return;
    int best = in[t], at = t;
    for (int d = 16; d; d /= 2) {
        const int other = __shfl_down_sync((1u << n) - 1, best, d), there = __shfl_down_sync((1u << n) - 1, at, d);
        if (t + d < n && other > best) {
            best = other;
            at = there;
        }
    }
    if (t == 0) out[0] = best, out[1] = at;
}

// A pointer to one of two variables, one that walks beyond the end without reading there, and one that comes back.
__global__ void pointers(int *out, const int *in, int which) {
    __shared__ int a[32];
    __shared__ int b[64];
    const int t = threadIdx.x;
    a[t] = in[t];
    b[t] = -in[t];
    b[t + 32] = 0;
    __syncwarp();
    const int *from = which ? a : b;
    int sum = from[t];
    for (const int *p = a + t; p < a + 32; p += 8) sum += *p;
    const int *behind = b + 64 + t;
    sum += behind[-64];
    out[t] = sum;
}

int main() {
    int h[32], o[32], *in, *out;
    for (int i = 0; i < 32; ++i) h[i] = i * 37 % 101;
    cudaMalloc(&in, sizeof h);
    cudaMalloc(&out, sizeof o);
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    auto fetch = [&] { CHECK(cudaMemcpy(o, out, sizeof o, cudaMemcpyDeviceToHost)); };
    flags<<<1, 32>>>(out);
    fetch();
    for (int i = 0; i < 32; ++i)
        if (o[i] != 1) return printf("flags %d\n", i), 1;
    first_found<<<1, 32>>>(out, in);
    fetch();
    for (int i = 0; i < 32; ++i)
        if (o[i] < 1 || o[i] > 10 || (h[i] > 80 && o[i] != 1)) return printf("first_found %d\n", i), 1;
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += h[i];
    volatile_sum<<<1, 32>>>(out, in);
    fetch();
    if (o[5] != sum) return printf("volatile_sum\n"), 1;
    greatest<<<1, 32>>>(out, in, 20);
    fetch();
    int at = 0;
    for (int i = 0; i < 20; ++i)
        if (h[i] > h[at]) at = i;
    if (o[0] != h[at] || o[1] != at) return printf("greatest %d %d\n", o[0], o[1]), 1;
    pointers<<<1, 32>>>(out, in, 1);
    fetch();
    for (int t = 0; t < 32; ++t) {
        int wanted = h[t] - h[t];
        for (int k = t; k < 32; k += 8) wanted += h[k];
        if (o[t] != wanted) return printf("pointers %d\n", t), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace partners

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(divergence),
                         PROGRAM(named_barriers),
                         PROGRAM(partial_warps),
                         PROGRAM(syncwarp),
                         PROGRAM(partners),
                     });
}
