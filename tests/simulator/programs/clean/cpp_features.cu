// C++ in kernels: function pointers, recursion, virtual functions, lambdas, templates, operators, structs by value,
// local arrays with run-time indices, unions, bit fields, placement new, 64-bit and double arithmetic, assert, printf.
#include <cuda_runtime.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "../check.h"

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
