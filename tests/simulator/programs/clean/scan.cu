// Prefix sums: Hillis-Steele with two buffers, Blelloch with conflict-free padding, warp shuffles, three phases over
// blocks, and a single pass with decoupled look-back over volatile flags.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"

#define CONFLICT_FREE_OFFSET(n) ((n) >> 5)

__global__ void hillis_steele(int *out, const int *in, int n) {
    extern __shared__ int temp[];
    int thid = threadIdx.x, pout = 0, pin = 1;
    temp[thid] = thid > 0 ? in[thid - 1] : 0;
    __syncthreads();
    for (int offset = 1; offset < n; offset <<= 1) {
        pout = 1 - pout;
        pin = 1 - pout;
        if (thid >= offset) {
            temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
        } else {
            temp[pout * n + thid] = temp[pin * n + thid];
        }
        __syncthreads();
    }
    out[thid] = temp[pout * n + thid];
}

__global__ void blelloch(int *g_odata, const int *g_idata, int n) {
    extern __shared__ int temp[];
    int thid = threadIdx.x, offset = 1, ai = thid, bi = thid + n / 2;
    int bankOffsetA = CONFLICT_FREE_OFFSET(ai), bankOffsetB = CONFLICT_FREE_OFFSET(bi);
    temp[ai + bankOffsetA] = g_idata[ai];
    temp[bi + bankOffsetB] = g_idata[bi];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (thid < d) {
            int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
            a += CONFLICT_FREE_OFFSET(a);
            b += CONFLICT_FREE_OFFSET(b);
            temp[b] += temp[a];
        }
        offset *= 2;
    }
    if (thid == 0) temp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (thid < d) {
            int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
            a += CONFLICT_FREE_OFFSET(a);
            b += CONFLICT_FREE_OFFSET(b);
            int t = temp[a];
            temp[a] = temp[b];
            temp[b] += t;
        }
    }
    __syncthreads();
    g_odata[ai] = temp[ai + bankOffsetA];
    g_odata[bi] = temp[bi + bankOffsetB];
}

__device__ int warp_scan(int v) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int up = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += up;
    }
    return v;
}

__device__ int block_scan(int v, int *total) {
    __shared__ int sums[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    v = warp_scan(v);
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) sums[lane] = warp_scan(lane < blockDim.x / 32 ? sums[lane] : 0);
    __syncthreads();
    if (warp > 0) v += sums[warp - 1];
    *total = sums[blockDim.x / 32 - 1];
    __syncthreads();
    return v;
}

__global__ void scan_blocks(int *out, int *sums, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, total;
    int v = block_scan(i < n ? in[i] : 0, &total);
    if (i < n) out[i] = v;
    if (sums && threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void add_sums(int *out, const int *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

struct State {
    int flag;  // 0 nothing, 1 aggregate, 2 prefix
    int aggregate, prefix;
};

__global__ void look_back(int *out, const int *in, int n, volatile State *state, int *ticket) {
    __shared__ int tile, before;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    int i = tile * blockDim.x + threadIdx.x, total;
    int v = block_scan(i < n ? in[i] : 0, &total);
    if (threadIdx.x == 0) {
        int sum = 0;
        if (tile == 0) {
            state[0].prefix = total;
            __threadfence();
            state[0].flag = 2;
        } else {
            state[tile].aggregate = total;
            __threadfence();
            state[tile].flag = 1;
            for (int p = tile - 1;;) {
                int f;
                while ((f = state[p].flag) == 0) {
                }
                __threadfence();
                if (f == 2) {
                    sum += state[p].prefix;
                    break;
                }
                sum += state[p--].aggregate;
            }
            state[tile].prefix = sum + total;
            __threadfence();
            state[tile].flag = 2;
        }
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = v + before;
}

int main() {
    const int n = 5000, small = 256, threads = 256, blocks = (n + threads - 1) / threads;
    std::vector<int> h(n), got(n), inclusive(n);
    for (int i = 0; i < n; ++i) h[i] = rand() % 100 - 40;
    for (int i = 0, s = 0; i < n; ++i) inclusive[i] = s += h[i];
    int *in, *out, *sums, *ticket;
    State *state;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMalloc(&sums, blocks * 4));
    CHECK(cudaMalloc(&ticket, 4));
    CHECK(cudaMalloc(&state, blocks * sizeof(State)));
    CHECK(cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice));
    for (int kind = 0; kind < 4; ++kind) {
        CHECK(cudaMemset(out, 0, n * 4));
        int count = kind < 2 ? small : n;
        switch (kind) {
            case 0:
                hillis_steele<<<1, small, 2 * small * 4>>>(out, in, small);
                break;
            case 1:
                blelloch<<<1, small / 2, (small + CONFLICT_FREE_OFFSET(small)) * 4>>>(out, in, small);
                break;
            case 2:
                scan_blocks<<<blocks, threads>>>(out, sums, in, n);
                scan_blocks<<<1, threads>>>(sums, nullptr, sums, blocks);
                add_sums<<<blocks, threads>>>(out, sums, n);
                break;
            case 3:
                CHECK(cudaMemset(ticket, 0, 4));
                CHECK(cudaMemset(state, 0, blocks * sizeof(State)));
                look_back<<<blocks, threads>>>(out, in, n, state, ticket);
                break;
        }
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(got.data(), out, n * 4, cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; ++i) {
            int want = kind < 2 ? (i ? inclusive[i - 1] : 0) : inclusive[i];
            if (got[i] != want) {
                printf("scan %d: [%d] = %d, want %d\n", kind, i, got[i], want);
                return 1;
            }
        }
    }
    printf("OK\n");
    return 0;
}
