// Managed, pinned, mapped and registered host memory, __device__ and __constant__ symbols, pitched and 3D allocations,
// 2D copies, stream-ordered allocation, in-kernel malloc-free linked structures over managed memory.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../check.h"

__constant__ int table[16];
__constant__ float scalar = 2.5f;
__device__ int counter = 5;
__device__ float grid_values[4][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10}};
__managed__ int managed_total = 0;
struct Params {
    int n;
    float f[5];
    const int *p;
};
__constant__ Params params;

__global__ void use_symbols(float *out) {
    int i = threadIdx.x;
    atomicAdd(&counter, table[i % 16]);
    out[i] = scalar * grid_values[i / 8 % 4][i % 8] + params.f[i % 5] + params.p[i % params.n];
    if (i == 0) atomicAdd(&managed_total, 3);
}
__global__ void increment(int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i]++;
}
__global__ void row_sums(const float *p, size_t pitch, int w, int h, float *out) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    const float *row = (const float *)((const char *)p + r * pitch);
    float s = 0;
    for (int c = 0; c < w; ++c) s += row[c];
    out[r] = s;
}
struct Node {
    int value;
    Node *next;
};
__global__ void list_sum(Node *head, int *out) {
    int s = 0;
    for (; head; head = head->next) s += head->value;
    *out = s;
}

int main() {
    int h_table[16], ints[64];
    float floats[32];
    for (int i = 0; i < 16; ++i) h_table[i] = i;
    CHECK(cudaMemcpyToSymbol(table, h_table, sizeof h_table));
    int *d_ints;
    CHECK(cudaMalloc(&d_ints, sizeof ints));
    for (int i = 0; i < 64; ++i) ints[i] = 100 * i;
    CHECK(cudaMemcpy(d_ints, ints, sizeof ints, cudaMemcpyDefault));
    Params p = {7, {1, 2, 3, 4, 5}, d_ints};
    CHECK(cudaMemcpyToSymbol(params, &p, sizeof p));
    float *out;
    CHECK(cudaMallocManaged(&out, 32 * sizeof(float)));
    use_symbols<<<1, 32>>>(out);
    CHECK(cudaDeviceSynchronize());
    int c = 0;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    if (c != 5 + 2 * 120 || managed_total != 3) return printf("symbols %d %d\n", c, managed_total), 1;
    for (int i = 0; i < 32; ++i) {
        float g = i < 8 ? i + 1 : i == 8 ? 9 : i == 9 ? 10 : 0;
        if (out[i] != 2.5f * g + (i % 5 + 1) + 100 * (i % 7)) return printf("out[%d] = %f\n", i, out[i]), 1;
    }
    void *address;
    size_t bytes;
    CHECK(cudaGetSymbolAddress(&address, grid_values));
    CHECK(cudaGetSymbolSize(&bytes, grid_values));
    CHECK(cudaMemcpy(floats, (float *)address + 8, 8, cudaMemcpyDeviceToHost));
    if (bytes != 128 || floats[0] != 9 || floats[1] != 10) return printf("symbol address\n"), 1;

    int *mapped, *mapped_device, *registered = (int *)malloc(400), *registered_device;
    CHECK(cudaHostAlloc(&mapped, 400, cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaHostGetDevicePointer(&mapped_device, mapped, 0));
    CHECK(cudaHostRegister(registered, 400, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&registered_device, registered, 0));
    for (int i = 0; i < 100; ++i) mapped[i] = registered[i] = i;
    increment<<<1, 128>>>(mapped_device, 100);
    increment<<<1, 128>>>(registered_device, 100);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 100; ++i)
        if (mapped[i] != i + 1 || registered[i] != i + 1) return printf("mapped %d\n", i), 1;
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, mapped));
    if (attributes.type != cudaMemoryTypeHost) return printf("pinned memory is of type %d\n", attributes.type), 1;
    CHECK(cudaPointerGetAttributes(&attributes, out));
    if (attributes.type != cudaMemoryTypeManaged) return printf("managed memory is of type %d\n", attributes.type), 1;
    CHECK(cudaPointerGetAttributes(&attributes, d_ints));
    if (attributes.type != cudaMemoryTypeDevice) return printf("device memory is of type %d\n", attributes.type), 1;
    CHECK(cudaHostUnregister(registered));
    CHECK(cudaFreeHost(mapped));

    const int w = 13, h = 9;
    float host[h][w], sums[h], *pitched, *d_sums;
    size_t pitch;
    for (int r = 0; r < h; ++r)
        for (int i = 0; i < w; ++i) host[r][i] = r * 10 + i;
    CHECK(cudaMallocPitch((void **)&pitched, &pitch, w * 4, h));
    CHECK(cudaMemset2D(pitched, pitch, 0, w * 4, h));
    CHECK(cudaMemcpy2D(pitched, pitch, host, w * 4, w * 4, h, cudaMemcpyHostToDevice));
    CHECK(cudaMallocAsync((void **)&d_sums, sizeof sums, 0));
    row_sums<<<1, 32>>>(pitched, pitch, w, h, d_sums);
    CHECK(cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaFreeAsync(d_sums, 0));
    for (int r = 0; r < h; ++r)
        if (sums[r] != r * 10 * w + w * (w - 1) / 2) return printf("row %d\n", r), 1;

    Node *nodes;
    CHECK(cudaMallocManaged(&nodes, 10 * sizeof(Node)));
    for (int i = 0; i < 10; ++i) nodes[i] = {i * i, i < 9 ? &nodes[i + 1] : nullptr};
    int *total;
    CHECK(cudaMallocManaged(&total, 4));
    list_sum<<<1, 1>>>(nodes, total);
    CHECK(cudaDeviceSynchronize());
    if (*total != 285) return printf("list %d\n", *total), 1;
    size_t free_bytes, all;
    CHECK(cudaMemGetInfo(&free_bytes, &all));
    if (free_bytes > all) return 1;
    CHECK(cudaFree(nodes));
    CHECK(cudaFree(nullptr));
    printf("OK\n");
    return 0;
}
