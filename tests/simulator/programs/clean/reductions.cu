// The sum of an array in ten styles, from the interleaved tree to cooperative groups and the last block.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

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

// The last warp without barriers, on volatile memory: how it was written before __syncwarp.
template <unsigned blockSize>
__device__ void warpReduce(volatile int *sdata, unsigned tid) {
    if (blockSize >= 64) sdata[tid] += sdata[tid + 32];
    if (blockSize >= 32) sdata[tid] += sdata[tid + 16];
    if (blockSize >= 16) sdata[tid] += sdata[tid + 8];
    if (blockSize >= 8) sdata[tid] += sdata[tid + 4];
    if (blockSize >= 4) sdata[tid] += sdata[tid + 2];
    if (blockSize >= 2) sdata[tid] += sdata[tid + 1];
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

// The same with __syncwarp between reading and writing.
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
