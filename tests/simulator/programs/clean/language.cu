// What the language and the runtime offer: correct programs, each of which prints OK as its last line.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "../check.h"
#include "../programs.h"

// C++ in kernels: function pointers, recursion, virtual functions, lambdas, templates, operators, structs by value,
// local arrays with run-time indices, unions, bit fields, placement new, 64-bit and double arithmetic, assert, printf.
namespace cpp_features {

typedef float (*Op)(float, float);
__host__ __device__ float plus(float a, float b) {
    return a + b;
}
__host__ __device__ float times(float a, float b) {
    return a * b;
}
__host__ __device__ float minus(float a, float b) {
    return a - b;
}
__device__ Op op_table[3] = {plus, times, minus};

__host__ __device__ unsigned long long fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__host__ __device__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float a;
    __device__ Square(float a) : a(a) {}
    __device__ float area() const override { return a * a; }
};
struct Circle : Shape {
    float r;
    __device__ Circle(float r) : r(r) {}
    __device__ float area() const override { return 3.0f * r * r; }
};

template <class F>
__global__ void transform(float *out, int n, F f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = f(i);
}

struct Complex {
    double re, im;
    __host__ __device__ Complex operator*(const Complex &o) const {
        return {re * o.re - im * o.im, re * o.im + im * o.re};
    }
    __host__ __device__ Complex operator+(const Complex &o) const { return {re + o.re, im + o.im}; }
    __host__ __device__ double norm() const { return re * re + im * im; }
};
__host__ __device__ int mandelbrot(double x, double y) {
    Complex c{x, y}, z{0, 0};
    int i = 0;
    while (i < 60 && z.norm() < 4) {
        z = z * z + c;
        ++i;
    }
    return i;
}

struct Big {
    int a[40];
    double d;
    char tag[3];
};
__host__ __device__ int digest(Big b) {
    int s = int(b.d) + b.tag[1];
    for (int i = 0; i < 40; ++i) s = s * 31 + b.a[i];
    return s;
}

union Bits {
    float f;
    unsigned u;
    struct {
        unsigned mantissa : 23, exponent : 8, sign : 1;
    } p;
};

__global__ void features(float *f, unsigned long long *u, int *in, Big big, Op host_side_unused) {
    const int t = threadIdx.x;
    f[t] = op_table[t % 3](t, 3.0f);
    u[t] = fibonacci(t % 12);
    alignas(16) unsigned char storage[sizeof(Circle) > sizeof(Square) ? sizeof(Circle) : sizeof(Square)];
    Shape *shape;
    if (t % 2) {
        shape = new (storage) Square(t);
    } else {
        shape = new (storage) Circle(t);
    }
    f[64 + t] = shape->area();
    shape->~Shape();
    int local[16];
    for (int i = 0; i < 16; ++i) local[i] = i * t;
    int k = in[t] & 15;
    local[k] += 1000;
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += local[(i * 5 + k) & 15] * (i + 1);
    in[t] = sum;
    Bits b;
    b.f = t * 1.5f;
    u[64 + t] =
        (unsigned long long)digest(big) * 1000003ull ^ (unsigned long long)b.p.exponent << 40 ^ (long long)b.p.mantissa;
    u[128 + t] = ackermann(2, t % 4);
    assert(sum != 123456789);
    if (t == 3) printf("thread %d of block %d: %5.2f %s %llu %c%%\n", t, blockIdx.x, f[t], "text", u[t], 'x');
}

__global__ void wide_math(double *d, long long *q, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    double x = d[i];
    d[i] = sqrt(fabs(x)) + sin(x) * exp(-x * x) + pow(fabs(x) + 1, 1.25) + fmod(x, 0.7) + floor(x) + atan2(x, 2.0) +
           log1p(fabs(x));
    long long v = q[i];
    q[i] = v / 7 + v % 13 * 1000 + (v >> 3) + __popcll(v) + __clzll(v) + __brevll(v) % 97 +
           (unsigned long long)v / 11u + __mul64hi(v, v);
}

int main() {
    float *f, hf[128];
    unsigned long long *u, hu[192];
    int *in, hi[64], before[64];
    CHECK(cudaMalloc(&f, sizeof hf));
    CHECK(cudaMalloc(&u, sizeof hu));
    CHECK(cudaMalloc(&in, sizeof hi));
    for (int i = 0; i < 64; ++i) before[i] = hi[i] = rand();
    CHECK(cudaMemcpy(in, hi, sizeof hi, cudaMemcpyHostToDevice));
    Big big;
    for (int i = 0; i < 40; ++i) big.a[i] = i * i;
    big.d = 2.75;
    big.tag[1] = 'q';
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16 * 1024));
    features<<<1, 64>>>(f, u, in, big, plus);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hu, u, sizeof hu, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hi, in, sizeof hi, cudaMemcpyDeviceToHost));
    Op ops[3] = {plus, times, minus};
    for (int t = 0; t < 64; ++t) {
        if (hf[t] != ops[t % 3](t, 3)) return printf("function pointer %d: %f\n", t, hf[t]), 1;
        if (hu[t] != fibonacci(t % 12)) return printf("fibonacci %d: %llu\n", t, hu[t]), 1;
        if (hf[64 + t] != (t % 2 ? 1.f : 3.f) * t * t) return printf("virtual %d: %f\n", t, hf[64 + t]), 1;
        int local[16], k = before[t] & 15, sum = 0;
        for (int i = 0; i < 16; ++i) local[i] = i * t;
        local[k] += 1000;
        for (int i = 0; i < 16; ++i) sum += local[(i * 5 + k) & 15] * (i + 1);
        if (hi[t] != sum) return printf("local array %d: %d\n", t, hi[t]), 1;
        Bits b;
        b.f = t * 1.5f;
        unsigned long long want = (unsigned long long)digest(big) * 1000003ull ^
                                  (unsigned long long)b.p.exponent << 40 ^ (long long)b.p.mantissa;
        if (hu[64 + t] != want) return printf("struct %d\n", t), 1;
        if (hu[128 + t] != ackermann(2, t % 4)) return printf("ackermann %d: %llu\n", t, hu[128 + t]), 1;
    }
    float factor = 1.5f;
    transform<<<2, 32>>>(f, 100, [=] __device__(int i) { return i * factor + (i % 2 ? 1 : -1); });
    CHECK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; ++i)
        if (hf[i] != i * factor + (i % 2 ? 1 : -1)) return printf("lambda %d\n", i), 1;
    transform<<<2, 32>>>(f, 100, [] __device__(int i) { return float(mandelbrot(-2 + 0.03 * i, 0.01 * i)); });
    CHECK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; ++i)
        if (hf[i] != mandelbrot(-2 + 0.03 * i, 0.01 * i)) return printf("mandelbrot %d: %f\n", i, hf[i]), 1;
    double *d, hd[32], x[32];
    long long *q, hq[32], v[32];
    CHECK(cudaMalloc(&d, sizeof hd));
    CHECK(cudaMalloc(&q, sizeof hq));
    for (int i = 0; i < 32; ++i) {
        x[i] = (i - 16) * 0.37;
        v[i] = (long long)rand() * rand() * (i % 2 ? 1 : -1);
    }
    CHECK(cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(q, v, sizeof v, cudaMemcpyHostToDevice));
    wide_math<<<1, 32>>>(d, q, 32);
    CHECK(cudaMemcpy(hd, d, sizeof hd, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hq, q, sizeof hq, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        double want = sqrt(fabs(x[i])) + sin(x[i]) * exp(-x[i] * x[i]) + pow(fabs(x[i]) + 1, 1.25) + fmod(x[i], 0.7) +
                      floor(x[i]) + atan2(x[i], 2.0) + log1p(fabs(x[i]));
        if (!(fabs(hd[i] - want) < 1e-12 * (1 + fabs(want))))
            return printf("double %d: %.17g, want %.17g\n", i, hd[i], want), 1;
        unsigned long long reversed = 0;
        for (int b = 0; b < 64; ++b) reversed |= ((unsigned long long)v[i] >> b & 1) << (63 - b);
        long long wq = v[i] / 7 + v[i] % 13 * 1000 + (v[i] >> 3) + __builtin_popcountll(v[i]) +
                       (v[i] ? __builtin_clzll(v[i]) : 64) + reversed % 97 + (unsigned long long)v[i] / 11u +
                       (long long)((__int128)v[i] * v[i] >> 64);
        if (hq[i] != wq) return printf("long long %d: %lld, want %lld\n", i, hq[i], wq), 1;
    }
    printf("OK\n");
    return 0;
}

}  // namespace cpp_features

// What a tour of the device's language meets: tables of functions, virtual functions of objects made by kernels,
// recursion, clocks, cached loads, pairs of halves, assembly, printf, assert, unified and mapped memory, occupancy.
namespace device_language {

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

}  // namespace device_language

// Managed, pinned, mapped and registered host memory, __device__ and __constant__ symbols, pitched and 3D allocations,
// 2D copies, stream-ordered allocation, in-kernel malloc-free linked structures over managed memory.
namespace memories {

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

}  // namespace memories

// Several streams and events: overlapped chunks from pinned memory, a pipeline ordered by events, priorities,
// callbacks.
namespace streams {

__global__ void scale(float *a, int offset, int n, float f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[offset + i] = a[offset + i] * f + 1.0f;
}
__global__ void add(float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += b[i];
}

static int calls;
static void CUDART_CB count_call(void *data) {
    calls += *(int *)data;
}

int main() {
    const int n = 1 << 12, kStreams = 4, chunk = n / kStreams;
    float *a, *d_a, *d_b, *pageable = (float *)malloc(n * 4);
    CHECK(cudaMallocHost((void **)&a, n * 4));
    CHECK(cudaMalloc((void **)&d_a, n * 4));
    CHECK(cudaMalloc((void **)&d_b, n * 4));
    cudaStream_t stream[kStreams];
    for (auto &s : stream) CHECK(cudaStreamCreate(&s));
    // Depth first: copy, kernel, copy for each stream.
    for (int i = 0; i < n; i++) a[i] = i;
    for (int i = 0; i < kStreams; i++) {
        int offset = i * chunk;
        CHECK(cudaMemcpyAsync(&d_a[offset], &a[offset], chunk * 4, cudaMemcpyHostToDevice, stream[i]));
        scale<<<chunk / 256, 256, 0, stream[i]>>>(d_a, offset, chunk, 2.0f);
        CHECK(cudaMemcpyAsync(&a[offset], &d_a[offset], chunk * 4, cudaMemcpyDeviceToHost, stream[i]));
    }
    for (auto &s : stream) CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; i++)
        if (a[i] != 2.0f * i + 1) return printf("depth first %d: %f\n", i, a[i]), 1;
    // Breadth first, on non-blocking streams, waiting for an event that was recorded behind the last work of each.
    cudaStream_t high, low;
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreateWithFlags(&low, cudaStreamNonBlocking));
    cudaEvent_t ready, done;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&done));
    memset(a, 0, n * 4);
    CHECK(cudaMemsetAsync(d_a, 0, n * 4, high));
    scale<<<n / 256, 256, 0, high>>>(d_a, 0, n, 1.0f);
    CHECK(cudaEventRecord(ready, high));
    for (int i = 0; i < n; i++) a[i] = 5;
    CHECK(cudaMemcpyAsync(d_b, a, n * 4, cudaMemcpyHostToDevice, low));
    CHECK(cudaStreamWaitEvent(low, ready, 0));
    add<<<n / 256, 256, 0, low>>>(d_a, d_b, n);
    int one = 1;
    CHECK(cudaLaunchHostFunc(low, count_call, &one));
    CHECK(cudaEventRecord(done, low));
    while (cudaEventQuery(done) == cudaErrorNotReady) {
    }
    if (calls != 1) return printf("host function ran %d times\n", calls), 1;
    CHECK(cudaMemcpy(pageable, d_a, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 6) return printf("events %d: %f\n", i, pageable[i]), 1;
    // The legacy default stream waits for blocking streams, and they for it.
    scale<<<n / 256, 256, 0, stream[0]>>>(d_a, 0, n, 2.0f);
    add<<<n / 256, 256>>>(d_a, d_b, n);
    scale<<<n / 256, 256, 0, stream[1]>>>(d_a, 0, n, 10.0f);
    CHECK(cudaStreamSynchronize(stream[1]));
    CHECK(cudaMemcpy(pageable, d_a, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 181) return printf("default stream %d: %f\n", i, pageable[i]), 1;
    // A pageable source may be reused as soon as the call returns.
    for (int i = 0; i < n; i++) pageable[i] = 3;
    CHECK(cudaMemcpyAsync(d_b, pageable, n * 4, cudaMemcpyHostToDevice, stream[2]));
    for (int i = 0; i < n; i++) pageable[i] = -1;
    CHECK(cudaMemcpyAsync(pageable, d_b, n * 4, cudaMemcpyDeviceToHost, stream[2]));
    CHECK(cudaStreamSynchronize(stream[2]));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 3) return printf("pageable %d: %f\n", i, pageable[i]), 1;
    float ms = -1;
    cudaEvent_t start;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventRecord(start, low));
    CHECK(cudaEventRecord(done, low));
    CHECK(cudaEventSynchronize(done));
    CHECK(cudaEventElapsedTime(&ms, start, done));
    if (!(ms >= 0)) return 1;
    for (auto &s : stream) CHECK(cudaStreamDestroy(s));
    CHECK(cudaStreamDestroy(high));
    CHECK(cudaStreamDestroy(low));
    CHECK(cudaEventDestroy(ready));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaFreeHost(a));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceReset());
    printf("OK\n");
    return 0;
}

}  // namespace streams

int main(int argc, char **argv) {
    return run_named(argc, argv,
                     {
                         PROGRAM(cpp_features),
                         PROGRAM(device_language),
                         PROGRAM(memories),
                         PROGRAM(streams),
                     });
}
