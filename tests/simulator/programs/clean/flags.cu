// Volatile flags between the warps of a block and between blocks, and cuda::atomic_ref with acquire and release.
#include <cuda_runtime.h>
#include <cuda/atomic>

#include <cstdio>

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
