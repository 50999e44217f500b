// half and bfloat16: conversions, half2 arithmetic, fma, comparisons, intrinsics, atomics, a dot product, integer SIMD
// dp4a.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "../check.h"

__global__ void axpy(__half2 *y, const __half2 *x, float a, int n2) {
    __half2 a2 = __float2half2_rn(a);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n2; i += blockDim.x * gridDim.x)
        y[i] = __hfma2(a2, x[i], y[i]);
}
template <class T>
__global__ void dot(float *out, const T *a, const T *b, int n) {
    __shared__ float s[128];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += float(a[i]) * float(b[i]);
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = s[0];
}
__global__ void half_ops(float *out, const float *in) {
    int i = threadIdx.x;
    half a = __float2half(in[i]), b = __float2half_rn(in[i] * 0.5f + 1.0f);
    half c = a * b + __hsub(a, b);
    if (__hgt(c, __float2half(3.0f))) c = __hdiv(c, b);
    c = __hmax(c, hsqrt(__habs(a)));
    __nv_bfloat16 x = __float2bfloat16(in[i]), y = x * x + __float2bfloat16(0.25f);
    out[i] = __half2float(c);
    out[32 + i] = __bfloat162float(y) + __bfloat162float(hexp(__float2bfloat16(in[i] * 0.1f)));
    out[64 + i] =
        float(__half2int_rn(a)) + __half2float(__int2half_rn(i)) + __low2float(__floats2half2_rn(in[i], 1.0f));
}
__global__ void half_atomics(half *h, __half2 *h2, __nv_bfloat16 *b) {
    atomicAdd(h, __float2half(0.5f));
    atomicAdd(h2, __floats2half2_rn(1.0f, -0.25f));
    atomicAdd(b, __float2bfloat16(1.0f));
}
__global__ void packed_dot(int *out, const int *a, const int *b) {
    int i = threadIdx.x;
    out[i] = __dp4a(a[i], b[i], 7) + int(__vadd4(a[i], b[i]) & 0xff) + __byte_perm(a[i], b[i], 0x5140) % 100;
}

int main() {
    const int n = 1000;
    static half hx[n], hy[n], got[n];
    static __nv_bfloat16 bx[n], by[n];
    double want_dot = 0, want_bdot = 0;
    for (int i = 0; i < n; ++i) {
        hx[i] = __float2half((rand() % 401 - 200) / 64.0f);
        hy[i] = __float2half((rand() % 401 - 200) / 64.0f);
        bx[i] = __float2bfloat16((rand() % 401 - 200) / 64.0f);
        by[i] = __float2bfloat16((rand() % 401 - 200) / 64.0f);
        want_dot += double(__half2float(hx[i])) * __half2float(hy[i]);
        want_bdot += double(__bfloat162float(bx[i])) * __bfloat162float(by[i]);
    }
    half *x, *y;
    __nv_bfloat16 *b1, *b2;
    float *out, h[96], in[32];
    CHECK(cudaMalloc(&x, sizeof hx));
    CHECK(cudaMalloc(&y, sizeof hy));
    CHECK(cudaMalloc(&b1, sizeof bx));
    CHECK(cudaMalloc(&b2, sizeof by));
    CHECK(cudaMalloc(&out, sizeof h));
    CHECK(cudaMemcpy(x, hx, sizeof hx, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(y, hy, sizeof hy, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b1, bx, sizeof bx, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b2, by, sizeof by, cudaMemcpyHostToDevice));
    dot<half><<<1, 128>>>(out, x, y, n);
    dot<__nv_bfloat16><<<1, 128>>>(out + 1, b1, b2, n);
    axpy<<<2, 64>>>((__half2 *)y, (const __half2 *)x, 0.375f, n / 2);
    CHECK(cudaMemcpy(h, out, 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost));
    if (std::fabs(h[0] - want_dot) > 1e-2 || std::fabs(h[1] - want_bdot) > 1e-2)
        return printf("dot %f %f\n", h[0], h[1]), 1;
    for (int i = 0; i < n; ++i) {
        half want = __float2half(0.375f * __half2float(hx[i]) + __half2float(hy[i]));
        if (__half2float(got[i]) != __half2float(want)) return printf("axpy %d\n", i), 1;
    }
    for (int i = 0; i < 32; ++i) in[i] = (i - 16) * 0.3125f;
    float *d_in;
    CHECK(cudaMalloc(&d_in, sizeof in));
    CHECK(cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice));
    half_ops<<<1, 32>>>(out, d_in);
    CHECK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        double a = in[i], b = a * 0.5 + 1, c = a * b + (a - b);
        if (c > 3) c /= b;
        c = std::fmax(c, std::sqrt(std::fabs(a)));
        if (std::fabs(h[i] - c) > 4e-3 * (1 + std::fabs(c))) return printf("half_ops %d: %f, want %f\n", i, h[i], c), 1;
        double y2 = a * a + 0.25 + std::exp(a * 0.1);
        if (std::fabs(h[32 + i] - y2) > 2e-2 * (1 + std::fabs(y2)))
            return printf("bf16 %d: %f, want %f\n", i, h[32 + i], y2), 1;
        double z = std::nearbyint(a) + i + a;
        if (std::fabs(h[64 + i] - z) > 1e-3) return printf("conversions %d: %f, want %f\n", i, h[64 + i], z), 1;
    }
    struct {
        half h;
        short pad;
        __half2 h2;
        __nv_bfloat16 b;
    } sums, *d_sums;
    sums.h = __float2half(0);
    sums.h2 = __floats2half2_rn(0, 0);
    sums.b = __float2bfloat16(0);
    CHECK(cudaMalloc((void **)&d_sums, sizeof sums));
    CHECK(cudaMemcpy(d_sums, &sums, sizeof sums, cudaMemcpyHostToDevice));
    half_atomics<<<2, 64>>>(&d_sums->h, &d_sums->h2, &d_sums->b);
    CHECK(cudaMemcpy(&sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost));
    if (__half2float(sums.h) != 64 || __low2float(sums.h2) != 128 || __high2float(sums.h2) != -32 ||
        __bfloat162float(sums.b) != 128) {
        return printf("atomics %f %f\n", __half2float(sums.h), __bfloat162float(sums.b)), 1;
    }
    int ia[32], ib[32], io[32], *da, *db, *dout;
    for (int i = 0; i < 32; ++i) ia[i] = rand() * 3, ib[i] = rand() * 5;
    CHECK(cudaMalloc(&da, sizeof ia));
    CHECK(cudaMalloc(&db, sizeof ib));
    CHECK(cudaMalloc(&dout, sizeof io));
    CHECK(cudaMemcpy(da, ia, sizeof ia, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, ib, sizeof ib, cudaMemcpyHostToDevice));
    packed_dot<<<1, 32>>>(dout, da, db);
    CHECK(cudaMemcpy(io, dout, sizeof io, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        int s = 7;
        unsigned a = ia[i], b = ib[i];
        for (int k = 0; k < 4; ++k) s += int((signed char)(a >> 8 * k)) * int((signed char)(b >> 8 * k));
        s += (a + b) & 0xff;
        unsigned perm = (a & 0xff) | (b & 0xff) << 8 | (a >> 8 & 0xff) << 16 | (b >> 8 & 0xff) << 24;
        s += int(perm % 100);
        if (io[i] != s) return printf("packed %d: %d, want %d\n", i, io[i], s), 1;
    }
    printf("OK\n");
    return 0;
}
