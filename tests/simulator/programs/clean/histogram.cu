// 256 bins of bytes: global atomics, shared atomics, one shared sub-histogram for each warp, and 4-byte loads.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
