// What a tour of the device's language meets: tables of functions, virtual functions of objects made by kernels,
// recursion, clocks, cached loads, pairs of halves, assembly, printf, assert, unified and mapped memory, occupancy.
#include <cuda_fp16.h>

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "../check.h"

using Function = float (*)(float);
__device__ float twice(float x) {
    return 2 * x;
}
__device__ float square(float x) {
    return x * x;
}
__device__ Function table[] = {twice, square};

__global__ void call(float *out, Function given) {
    out[threadIdx.x] = table[threadIdx.x % 2](threadIdx.x) + given(3);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Strip : Shape {
    float length;
    __device__ Strip(float l) : length(l) {}
    __device__ float area() const override { return length / 4; }
};

__global__ void make(Shape **shapes) {
    const int i = threadIdx.x;
    shapes[i] = i % 2 ? static_cast<Shape *>(new Square(i)) : new Strip(i);
}
__global__ void measure(float *out, Shape **shapes) {
    out[threadIdx.x] = shapes[threadIdx.x]->area();
    delete shapes[threadIdx.x];
}

__device__ void quicksort(int *v, int first, int last) {
    int i = first, j = last;
    for (const int pivot = v[(first + last) / 2]; i <= j;) {
        while (v[i] < pivot) ++i;
        while (v[j] > pivot) --j;
        if (i > j) break;
        const int t = v[i];
        v[i++] = v[j];
        v[j--] = t;
    }
    if (first < j) quicksort(v, first, j);
    if (i < last) quicksort(v, i, last);
}
__global__ void sort(int *v, int n) {
    quicksort(v, 0, n - 1);
}

__global__ void ways(float *out, const float *in, long long *ticks) {
    const long long start = clock64();
    const int i = threadIdx.x;
    assert(blockDim.x == 32);
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const half2 pair = __hfma2(__floats2half2_rn(i, 1), __float2half2_rn(2), __float2half2_rn(0.5f));
    const float4 four = __ldg(reinterpret_cast<const float4 *>(in) + i % 8);
    out[i] = __ldg(in + i) + __ldcs(in + i) + four.w + __low2float(pair) + __high2float(pair) + lane;
    if (i == 31) printf("lane %d %.1f\n", i, out[i]);
    ticks[i] = clock64() - start;
}

int main() {
    float *out;
    CHECK(cudaMallocManaged(&out, 32 * sizeof(float)));
    Function given;
    CHECK(cudaMemcpyFromSymbol(&given, table, sizeof given, sizeof given));
    call<<<1, 32>>>(out, given);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; ++i)
        if (out[i] != (i % 2 ? i * i : 2 * i) + 9) return std::printf("function %d\n", i), 1;

    Shape **shapes;
    CHECK(cudaMalloc(&shapes, 32 * sizeof(Shape *)));
    make<<<1, 32>>>(shapes);
    measure<<<1, 32>>>(out, shapes);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; ++i)
        if (out[i] != (i % 2 ? i * i : i / 4.0f)) return std::printf("shape %d\n", i), 1;

    const int n = 200;
    int *numbers, *mapped;
    CHECK(cudaHostAlloc(&numbers, n * sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&mapped, numbers, 0));
    for (int i = 0; i < n; ++i) numbers[i] = i * 7919 % 211;
    sort<<<1, 1>>>(mapped, n);
    CHECK(cudaDeviceSynchronize());
    if (!std::is_sorted(numbers, numbers + n)) return std::printf("sort\n"), 1;

    float *in;
    long long *ticks;
    CHECK(cudaMallocManaged(&in, 32 * sizeof(float)));
    CHECK(cudaMallocManaged(&ticks, 32 * sizeof(long long)));
    for (int i = 0; i < 32; ++i) in[i] = i;
    const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaMemAdvise(in, 32 * sizeof(float), cudaMemAdviseSetReadMostly, device));
    CHECK(cudaMemPrefetchAsync(in, 32 * sizeof(float), device, 0, 0));
    int blocks;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, ways, 32, 0));
    if (blocks < 1) return std::printf("occupancy %d\n", blocks), 1;
    ways<<<1, 32>>>(out, in, ticks);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; ++i)
        if (out[i] != 2 * i + (i % 8 * 4 + 3) + (2 * i + 0.5f) + 2.5f + i || ticks[i] <= 0)
            return std::printf("way %d\n", i), 1;
    std::printf("OK\n");
    return 0;
}
