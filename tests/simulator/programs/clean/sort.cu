// Bitonic sort in shared and in global memory, odd-even sort with a shared "changed" flag, radix sort by bits with a
// block scan, merge by binary search.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../check.h"

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
