// Sums, scans, histograms, sorting: correct programs, each of which prints OK as its last line.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "../check.h"
#include "../programs.h"

// 256 bins of bytes: global atomics, shared atomics, one shared sub-histogram for each warp, and 4-byte loads.
namespace histogram {

#define BINS 256
#define WARPS 4

static void die(cudaError_t e, int line) {
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s (%s)\n", line, cudaGetErrorString(e), cudaGetErrorName(e));
        exit(1);
    }
}
#define OK(x) die(x, __LINE__)

__global__ void histo_global(unsigned char *buffer, long size, unsigned int *histo) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = blockDim.x * gridDim.x;
    while (i < size) {
        atomicAdd(&histo[buffer[i]], 1);
        i += stride;
    }
}

__global__ void histo_shared(unsigned char *buffer, long size, unsigned int *histo) {
    __shared__ unsigned int temp[BINS];
    temp[threadIdx.x] = 0;
    __syncthreads();
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int offset = blockDim.x * gridDim.x;
    while (i < size) {
        atomicAdd(&temp[buffer[i]], 1);
        i += offset;
    }
    __syncthreads();
    atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}

__global__ void histo_warps(const unsigned int *data, int words, unsigned int *histo) {
    __shared__ unsigned int s_Hist[WARPS * BINS];
    unsigned int *s_WarpHist = s_Hist + (threadIdx.x >> 5) * BINS;
    for (unsigned i = 0; i < WARPS * BINS / (WARPS * 32); i++) s_Hist[threadIdx.x + i * WARPS * 32] = 0;
    __syncthreads();
    for (int pos = blockIdx.x * blockDim.x + threadIdx.x; pos < words; pos += blockDim.x * gridDim.x) {
        unsigned d = data[pos];
        atomicAdd(s_WarpHist + ((d >> 0) & 0xFF), 1);
        atomicAdd(s_WarpHist + ((d >> 8) & 0xFF), 1);
        atomicAdd(s_WarpHist + ((d >> 16) & 0xFF), 1);
        atomicAdd(s_WarpHist + ((d >> 24) & 0xFF), 1);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < BINS; bin += WARPS * 32) {
        unsigned sum = 0;
        for (int i = 0; i < WARPS; i++) sum += s_Hist[bin + i * BINS];
        atomicAdd(histo + bin, sum);
    }
}

// 16-bit counters owned by one thread each: two bins share a word, no atomics.
__global__ void histo_private_bins(const unsigned char *data, int size, unsigned int *histo) {
    __shared__ unsigned short count[64][17];
    for (int b = 0; b < 16; b++) count[threadIdx.x][b] = 0;
    for (int i = threadIdx.x; i < size; i += 64) count[threadIdx.x][data[i] >> 4]++;
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned sum = 0;
        for (int t = 0; t < 64; t++) sum += count[t][threadIdx.x];
        histo[threadIdx.x] = sum;
    }
}

int main(void) {
    const int size = 20000;
    unsigned char *buffer = (unsigned char *)malloc(size);
    unsigned int want[BINS] = {0}, coarse[16] = {0}, got[BINS];
    for (int i = 0; i < size; i++) {
        buffer[i] = (unsigned char)(rand() * (rand() % 3));
        want[buffer[i]]++;
        coarse[buffer[i] >> 4]++;
    }
    unsigned char *dev;
    unsigned int *dev_histo;
    OK(cudaMalloc((void **)&dev, size));
    OK(cudaMalloc((void **)&dev_histo, sizeof want));
    OK(cudaMemcpy(dev, buffer, size, cudaMemcpyHostToDevice));
    for (int kind = 0; kind < 4; kind++) {
        OK(cudaMemset(dev_histo, 0, sizeof want));
        if (kind == 0) histo_global<<<10, 256>>>(dev, size, dev_histo);
        if (kind == 1) histo_shared<<<10, 256>>>(dev, size, dev_histo);
        if (kind == 2) histo_warps<<<5, WARPS * 32>>>((unsigned int *)dev, size / 4, dev_histo);
        if (kind == 3) histo_private_bins<<<1, 64>>>(dev, size, dev_histo);
        OK(cudaGetLastError());
        OK(cudaMemcpy(got, dev_histo, sizeof want, cudaMemcpyDeviceToHost));
        if (kind == 3 ? memcmp(got, coarse, sizeof coarse) : memcmp(got, want, sizeof want)) {
            printf("histogram %d differs\n", kind);
            return 1;
        }
    }
    OK(cudaFree(dev));
    OK(cudaFree(dev_histo));
    free(buffer);
    printf("OK\n");
    return 0;
}

#undef OK

}  // namespace histogram

// The sum of an array in ten styles, from the interleaved tree to cooperative groups and the last block.
namespace reductions {

namespace cg = cooperative_groups;
#define CK(x)                                                         \
    do {                                                              \
        cudaError_t e = (x);                                          \
        if (e) {                                                      \
            printf("line %d: %s\n", __LINE__, cudaGetErrorString(e)); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

__global__ void reduce0(const int *g_idata, int *g_odata, unsigned n) {
    extern __shared__ int sdata[];
    unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = i < n ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce1(const int *g_idata, int *g_odata, unsigned n) {
    extern __shared__ int sdata[];
    unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = i < n ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        unsigned index = 2 * s * tid;
        if (index < blockDim.x) sdata[index] += sdata[index + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce2(const int *g_idata, int *g_odata, unsigned n) {
    extern __shared__ int sdata[];
    unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = i < n ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

// The last warp by itself, on volatile memory. Lanes need barriers all the same.
__device__ void add_volatile(volatile int *sdata, unsigned tid, unsigned distance) {
    const int sum = sdata[tid] + sdata[tid + distance];
    __syncwarp();
    sdata[tid] = sum;
    __syncwarp();
}

template <unsigned blockSize>
__device__ void warpReduce(volatile int *sdata, unsigned tid) {
    if (blockSize >= 64) add_volatile(sdata, tid, 32);
    if (blockSize >= 32) add_volatile(sdata, tid, 16);
    if (blockSize >= 16) add_volatile(sdata, tid, 8);
    if (blockSize >= 8) add_volatile(sdata, tid, 4);
    if (blockSize >= 4) add_volatile(sdata, tid, 2);
    if (blockSize >= 2) add_volatile(sdata, tid, 1);
}

template <unsigned blockSize>
__global__ void reduce3(const int *g_idata, int *g_odata, unsigned n) {
    __shared__ int sdata[blockSize];
    unsigned tid = threadIdx.x, gridSize = blockSize * 2 * gridDim.x;
    int sum = 0;
    for (unsigned i = blockIdx.x * blockSize * 2 + tid; i < n; i += gridSize) {
        sum += g_idata[i];
        if (i + blockSize < n) sum += g_idata[i + blockSize];
    }
    sdata[tid] = sum;
    __syncthreads();
    if (blockSize >= 512) {
        if (tid < 256) {
            sdata[tid] += sdata[tid + 256];
        }
        __syncthreads();
    }
    if (blockSize >= 256) {
        if (tid < 128) {
            sdata[tid] += sdata[tid + 128];
        }
        __syncthreads();
    }
    if (blockSize >= 128) {
        if (tid < 64) {
            sdata[tid] += sdata[tid + 64];
        }
        __syncthreads();
    }
    if (tid < 32) warpReduce<blockSize>(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

// The same in a loop, and nothing is volatile.
__global__ void reduce4(const int *in, int *out, unsigned n) {
    __shared__ int s[128];
    unsigned t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        int v = s[t] + s[t + 32];
        for (int d = 16; d; d /= 2) {
            __syncwarp();
            s[t] = v;
            __syncwarp();
            v += s[(t + d) % 32];
        }
        if (t == 0) out[blockIdx.x] = v;
    }
}

__inline__ __device__ int warpReduceSum(int val) {
    for (int mask = warpSize / 2; mask > 0; mask /= 2) val += __shfl_down_sync(0xffffffff, val, mask);
    return val;
}

__inline__ __device__ int blockReduceSum(int val) {
    static __shared__ int shared[32];
    int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0) val = warpReduceSum(val);
    return val;
}

__global__ void reduce5(const int *in, int *out, unsigned n) {
    int sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += in[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void reduce6(const int *in, int *out, unsigned n) {
    cg::thread_block cta = cg::this_thread_block();
    __shared__ int sdata[256];
    cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[threadIdx.x] = i < n ? in[i] : 0;
    cg::sync(cta);
    for (unsigned s = blockDim.x / 2; s > 32; s >>= 1) {
        if (threadIdx.x < s) sdata[threadIdx.x] += sdata[threadIdx.x + s];
        cg::sync(cta);
    }
    if (cta.thread_rank() < 32) {
        int mySum = sdata[threadIdx.x] + sdata[threadIdx.x + 32];
        for (int offset = tile32.size() / 2; offset > 0; offset /= 2) mySum += tile32.shfl_down(mySum, offset);
        if (cta.thread_rank() == 0) out[blockIdx.x] = mySum;
    }
}

// Tiles of 8, 16 and 4 that exchange through shared memory and synchronise among themselves.
template <int TILE>
__global__ void reduce7(const int *in, int *out, unsigned n) {
    __shared__ int s[256];
    auto tile = cg::tiled_partition<TILE>(cg::this_thread_block());
    int *mine = s + tile.meta_group_rank() * TILE;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    for (int d = TILE / 2; d; d /= 2) {
        mine[tile.thread_rank()] = v;
        tile.sync();
        if (tile.thread_rank() < d) v += mine[tile.thread_rank() + d];
        tile.sync();
    }
    if (tile.thread_rank() == 0) atomicAdd(&out[blockIdx.x], v);
}

__device__ unsigned retirementCount = 0;

__global__ void reduceLastBlock(const int *in, int *partial, int *total, unsigned n) {
    __shared__ int sdata[256];
    __shared__ bool amLast;
    unsigned tid = threadIdx.x;
    int sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sum = blockReduceSum(sum);
    if (tid == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        unsigned ticket = atomicInc(&retirementCount, gridDim.x);
        amLast = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (amLast) {
        int v = 0;
        for (unsigned i = tid; i < gridDim.x; i += blockDim.x) v += ((volatile int *)partial)[i];
        sdata[tid] = v;
        __syncthreads();
        for (unsigned s = blockDim.x / 2; s; s >>= 1) {
            if (tid < s) sdata[tid] += sdata[tid + s];
            __syncthreads();
        }
        if (tid == 0) {
            *total = sdata[0];
            retirementCount = 0;
        }
    }
}

__global__ void reduceAtomics(const int *in, int *total, unsigned n) {
    __shared__ int block_sum;
    if (threadIdx.x == 0) block_sum = 0;
    __syncthreads();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = cg::reduce(warp, i < n ? in[i] : 0, cg::plus<int>());
    if (warp.thread_rank() == 0) atomicAdd(&block_sum, v);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, block_sum);
}

__global__ void reduceRedux(const int *in, int *total, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = __reduce_add_sync(0xffffffffu, i < n ? in[i] : 0);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, v);
}

int main() {
    const unsigned n = 10000;
    std::vector<int> h(n);
    for (unsigned i = 0; i < n; ++i) h[i] = int(i * 7919 % 1009) - 500;
    const int want = std::accumulate(h.begin(), h.end(), 0);
    int *in, *out, *total;
    CK(cudaMalloc(&in, n * sizeof(int)));
    CK(cudaMalloc(&out, 1024 * sizeof(int)));
    CK(cudaMalloc(&total, sizeof(int)));
    CK(cudaMemcpy(in, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    for (int kind = 0; kind < 14; ++kind) {
        CK(cudaMemset(out, 0, 1024 * sizeof(int)));
        CK(cudaMemset(total, 0, sizeof(int)));
        int threads = 256;
        unsigned blocks = (n + threads - 1) / threads;
        bool single = false;
        switch (kind) {
            case 0:
                reduce0<<<blocks, threads, threads * sizeof(int)>>>(in, out, n);
                break;
            case 1:
                reduce1<<<blocks, threads, threads * sizeof(int)>>>(in, out, n);
                break;
            case 2:
                reduce2<<<blocks, threads, threads * sizeof(int)>>>(in, out, n);
                break;
            case 3:
                reduce3<512><<<5, 512>>>(in, out, n);
                blocks = 5;
                break;
            case 4:
                reduce3<128><<<7, 128>>>(in, out, n);
                blocks = 7;
                break;
            case 5:
                blocks = (n + 127) / 128;
                reduce4<<<blocks, 128>>>(in, out, n);
                break;
            case 6:
                blocks = 6;
                reduce5<<<blocks, 224>>>(in, out, n);
                break;
            case 7:
                reduce6<<<blocks, threads>>>(in, out, n);
                break;
            case 8:
                reduce7<8><<<blocks, threads>>>(in, out, n);
                break;
            case 9:
                reduce7<16><<<blocks, threads>>>(in, out, n);
                break;
            case 10:
                reduce7<4><<<blocks, threads>>>(in, out, n);
                break;
            case 11:
                reduceLastBlock<<<13, threads>>>(in, out, total, n);
                single = true;
                break;
            case 12:
                reduceAtomics<<<blocks, threads>>>(in, total, n);
                single = true;
                break;
            case 13:
                reduceRedux<<<blocks, threads>>>(in, total, n);
                single = true;
                break;
        }
        CK(cudaGetLastError());
        std::vector<int> parts(single ? 1 : blocks);
        CK(cudaMemcpy(parts.data(), single ? total : out, parts.size() * sizeof(int), cudaMemcpyDeviceToHost));
        const int got = std::accumulate(parts.begin(), parts.end(), 0);
        if (got != want) {
            printf("reduction %d: %d, want %d\n", kind, got, want);
            return 1;
        }
    }
    printf("OK\n");
    return 0;
}

}  // namespace reductions

// Prefix sums: Hillis-Steele with two buffers, Blelloch with conflict-free padding, warp shuffles, three phases over
// blocks, and a single pass with decoupled look-back over volatile flags.
namespace scan {

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

}  // namespace scan

// Bitonic sort in shared and in global memory, odd-even sort with a shared "changed" flag, radix sort by bits with a
// block scan, merge by binary search.
namespace sort {

__device__ inline void Comparator(unsigned &a, unsigned &b, unsigned dir) {
    if ((a > b) == dir) {
        unsigned t = a;
        a = b;
        b = t;
    }
}

__global__ void bitonicShared(unsigned *d, unsigned n, unsigned dir) {
    __shared__ unsigned s[512];
    s[threadIdx.x] = d[threadIdx.x];
    s[threadIdx.x + n / 2] = d[threadIdx.x + n / 2];
    for (unsigned size = 2; size < n; size <<= 1) {
        unsigned ddd = dir ^ ((threadIdx.x & (size / 2)) != 0);
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            Comparator(s[pos], s[pos + stride], ddd);
        }
    }
    for (unsigned stride = n / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        unsigned pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        Comparator(s[pos], s[pos + stride], dir);
    }
    __syncthreads();
    d[threadIdx.x] = s[threadIdx.x];
    d[threadIdx.x + n / 2] = s[threadIdx.x + n / 2];
}

__global__ void bitonicStep(unsigned *v, int j, int k) {
    unsigned i = threadIdx.x + blockDim.x * blockIdx.x, ixj = i ^ j;
    if (ixj > i) {
        if ((i & k) == 0 && v[i] > v[ixj]) {
            unsigned t = v[i];
            v[i] = v[ixj];
            v[ixj] = t;
        }
        if ((i & k) != 0 && v[i] < v[ixj]) {
            unsigned t = v[i];
            v[i] = v[ixj];
            v[ixj] = t;
        }
    }
}

__global__ void oddEven(unsigned *d, int n) {
    extern __shared__ unsigned s[];
    __shared__ bool changed;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = d[i];
    do {
        __syncthreads();
        if (threadIdx.x == 0) changed = false;
        __syncthreads();
        for (int phase = 0; phase < 2; ++phase) {
            int i = 2 * threadIdx.x + phase;
            if (i + 1 < n && s[i] > s[i + 1]) {
                unsigned t = s[i];
                s[i] = s[i + 1];
                s[i + 1] = t;
                changed = true;
            }
            __syncthreads();
        }
    } while (changed);
    for (int i = threadIdx.x; i < n; i += blockDim.x) d[i] = s[i];
}

__global__ void radixByBit(unsigned *d, int n) {
    __shared__ unsigned keys[256];
    __shared__ int zeros[256];
    const int t = threadIdx.x;
    keys[t] = t < n ? d[t] : 0xffffffffu;
    for (int bit = 0; bit < 32; ++bit) {
        __syncthreads();
        unsigned key = keys[t];
        int zero = !(key >> bit & 1);
        zeros[t] = zero;
        __syncthreads();
        for (int o = 1; o < 256; o *= 2) {
            int v = t >= o ? zeros[t - o] : 0;
            __syncthreads();
            zeros[t] += v;
            __syncthreads();
        }
        int before = zeros[t] - zero, all = zeros[255];
        keys[zero ? before : all + t - before] = key;
    }
    __syncthreads();
    if (t < n) d[t] = keys[t];
}

__global__ void mergeByRank(unsigned *out, const unsigned *a, int na, const unsigned *b, int nb) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= na + nb) return;
    const bool from_a = i < na;
    const unsigned key = from_a ? a[i] : b[i - na];
    const unsigned *other = from_a ? b : a;
    int lo = 0, hi = from_a ? nb : na;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (other[mid] < key || (!from_a && other[mid] == key))
            lo = mid + 1;
        else
            hi = mid;
    }
    out[(from_a ? i : i - na) + lo] = key;
}

int main() {
    unsigned *d, *e;
    CHECK(cudaMalloc(&d, 4096));
    CHECK(cudaMalloc(&e, 4096));
    for (int kind = 0; kind < 5; ++kind) {
        const int n = kind == 2 ? 150 : kind == 3 ? 200 : 512;
        std::vector<unsigned> v(n), got(n);
        for (auto &x : v) x = kind == 2 ? rand() % 1000 : rand() * 2u;
        if (kind == 4) {
            std::sort(v.begin(), v.begin() + 200);
            std::sort(v.begin() + 200, v.end());
        }
        CHECK(cudaMemcpy(d, v.data(), n * 4, cudaMemcpyHostToDevice));
        if (kind == 0) bitonicShared<<<1, n / 2>>>(d, n, 1);
        if (kind == 1) {
            for (int k = 2; k <= n; k <<= 1) {
                for (int j = k >> 1; j > 0; j >>= 1) bitonicStep<<<n / 128, 128>>>(d, j, k);
            }
        }
        if (kind == 2) oddEven<<<1, 96, n * sizeof(unsigned)>>>(d, n);
        if (kind == 3) radixByBit<<<1, 256>>>(d, n);
        if (kind == 4) mergeByRank<<<4, 128>>>(e, d, 200, d + 200, n - 200);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(got.data(), kind == 4 ? e : d, n * 4, cudaMemcpyDeviceToHost));
        std::sort(v.begin(), v.end());
        if (got != v) return printf("sort %d is wrong\n", kind), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace sort

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(histogram),
                         PROGRAM(reductions),
                         PROGRAM(scan),
                         PROGRAM(sort),
                     });
}
