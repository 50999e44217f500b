// Shuffles, votes and barriers around divergent code: unlikely paths that compilers lay out of line, early exits, loops
// of different lengths, switch, nested branches, break and continue, warps that leave before a barrier.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"

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
