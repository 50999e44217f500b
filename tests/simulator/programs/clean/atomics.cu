// All the atomics: integers, floats, 64 bits, the CAS loop for double add and float max, inc and dec with wrap, on
// global and shared memory.
#include <cuda_runtime.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "../check.h"

__device__ double atomicAddDouble(double *address, double val) {
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__device__ float atomicMaxFloat(float *addr, float value) {
    return value >= 0 ? __int_as_float(atomicMax((int *)addr, __float_as_int(value)))
                      : __uint_as_float(atomicMin((unsigned *)addr, __float_as_uint(value)));
}

struct Sums {
    int add, sub, min, max, exch;
    unsigned inc, dec, and_, or_, xor_;
    unsigned long long add64, max64, or64;
    long long min64;
    float addf, maxf;
    double addd, addd_cas;
    unsigned short cas16;
};

template <class S>
__device__ void update(S *s, int i, int n) {
    atomicAdd(&s->add, i);
    atomicSub(&s->sub, 2 * i);
    atomicMin(&s->min, (i * 7919) % 1000 - 500);
    atomicMax(&s->max, (i * 7919) % 1000 - 500);
    atomicExch(&s->exch, i);
    atomicInc(&s->inc, 99);
    atomicDec(&s->dec, 50);
    atomicAnd(&s->and_, ~(1u << (i % 20)));
    atomicOr(&s->or_, 1u << (i % 20));
    atomicXor(&s->xor_, i * 2654435761u);
    atomicAdd(&s->add64, 1ull << (i % 40));
    atomicMax(&s->max64, (unsigned long long)i << 33);
    atomicMin(&s->min64, -((long long)i << 33));
    atomicOr(&s->or64, 1ull << (i % 64));
    atomicAdd(&s->addf, 0.5f);
    atomicMaxFloat(&s->maxf, i * 0.25f - 10.0f);
    atomicAdd(&s->addd, 0.25);
    atomicAddDouble(&s->addd_cas, 0.125);
    unsigned short seen = s->cas16, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&s->cas16, assumed, (unsigned short)(assumed + 3));
    } while (seen != assumed);
}

__global__ void on_global(Sums *s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) update((Sums *)s, i, n);
}
__global__ void on_shared(Sums *out, const Sums *start, int n) {
    __shared__ Sums s;
    if (threadIdx.x == 0) s = *start;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(&s.add, i);
        atomicSub(&s.sub, 2 * i);
        atomicMin(&s.min, (i * 7919) % 1000 - 500);
        atomicMax(&s.max, (i * 7919) % 1000 - 500);
        atomicExch(&s.exch, i);
        atomicInc(&s.inc, 99);
        atomicDec(&s.dec, 50);
        atomicAnd(&s.and_, ~(1u << (i % 20)));
        atomicOr(&s.or_, 1u << (i % 20));
        atomicXor(&s.xor_, i * 2654435761u);
        atomicAdd(&s.add64, 1ull << (i % 40));
        atomicMax(&s.max64, (unsigned long long)i << 33);
        atomicMin(&s.min64, -((long long)i << 33));
        atomicOr(&s.or64, 1ull << (i % 64));
        atomicAdd(&s.addf, 0.5f);
        atomicMaxFloat(&s.maxf, i * 0.25f - 10.0f);
        atomicAdd(&s.addd, 0.25);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = s;
}

int main() {
    const int n = 700;
    Sums start = {}, want, got, *d;
    start.and_ = ~0u;
    start.min = INT_MAX;
    start.max = INT_MIN;
    start.maxf = -100;
    start.dec = 20;
    want = start;
    for (int i = 0; i < n; ++i) {
        int h = i * 7919 % 1000 - 500;
        want.add += i;
        want.sub -= 2 * i;
        want.min = h < want.min ? h : want.min;
        want.max = h > want.max ? h : want.max;
        want.inc = want.inc >= 99 ? 0 : want.inc + 1;
        want.dec = want.dec == 0 || want.dec > 50 ? 50 : want.dec - 1;
        want.and_ &= ~(1u << (i % 20));
        want.or_ |= 1u << (i % 20);
        want.xor_ ^= i * 2654435761u;
        want.add64 += 1ull << (i % 40);
        want.max64 = (unsigned long long)i << 33;
        want.min64 = -((long long)i << 33);
        want.or64 |= 1ull << (i % 64);
        want.addf += 0.5f;
        want.maxf = i * 0.25f - 10.0f;
        want.addd += 0.25;
        want.addd_cas += 0.125;
        want.cas16 += 3;
    }
    CHECK(cudaMalloc(&d, 2 * sizeof(Sums)));
    for (int kind = 0; kind < 2; ++kind) {
        CHECK(cudaMemcpy(d, &start, sizeof start, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(d + 1, &start, sizeof start, cudaMemcpyHostToDevice));
        if (kind == 0)
            on_global<<<(n + 127) / 128, 128>>>(d, n);
        else
            on_shared<<<1, 128>>>(d, d + 1, n);
        CHECK(cudaMemcpy(&got, d, sizeof got, cudaMemcpyDeviceToHost));
        if (got.exch < 0 || got.exch >= n) return printf("exch %d\n", got.exch), 1;
#define SAME(f) \
    if (got.f != want.f) return printf("kind %d: " #f " differs: %g, want %g\n", kind, double(got.f), double(want.f)), 1
        SAME(add);
        SAME(sub);
        SAME(min);
        SAME(max);
        SAME(inc);
        SAME(dec);
        SAME(and_);
        SAME(or_);
        SAME(xor_);
        SAME(add64);
        SAME(max64);
        SAME(min64);
        SAME(or64);
        SAME(addf);
        SAME(maxf);
        SAME(addd);
        if (kind == 0) {
            SAME(addd_cas);
            SAME(cas16);
        }
    }
    printf("OK\n");
    return 0;
}
