// Values that nobody wrote, read and never used: padding behind a tile, lanes without a partner, parts of structs.
#include <cuda_runtime.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/merge.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>

#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <vector>

#include "../check.h"

struct Greater {
    __host__ __device__ bool operator()(int a, int b) const { return a > b; }
};

struct Pair {
    char tag;
    int value;
};

__global__ void lanes_without_partner(int *out, const int *in, int warps) {
    __shared__ int s[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int x = in[threadIdx.x];
    for (int d = 16; d; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);
    if (lane == 0) s[warp] = x;
    __syncthreads();
    int v = s[lane];
    if (lane >= warps) v = 0;
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) *out = v;
}

// Scan of the warps' sums in the style of the CUDA sample shfl_scan.
__global__ void shfl_scan(int *data, int *partial) {
    extern __shared__ int sums[];
    const int id = blockIdx.x * blockDim.x + threadIdx.x, lane = id % 32, warp = threadIdx.x / 32;
    int value = data[id];
    for (int i = 1; i <= 32; i *= 2) {
        const int n = __shfl_up_sync(0xffffffff, value, i, 32);
        if (lane >= i) value += n;
    }
    if (threadIdx.x % 32 == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0 && lane < blockDim.x / 32) {
        int sum = sums[lane];
        const unsigned mask = (1u << (blockDim.x / 32)) - 1;
        for (int i = 1; i <= blockDim.x / 32; i *= 2) {
            const int n = __shfl_up_sync(mask, sum, i, blockDim.x / 32);
            if (lane >= i) sum += n;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    if (warp > 0) value += sums[warp - 1];
    data[id] = value;
    if (threadIdx.x == blockDim.x - 1) partial[blockIdx.x] = value;
}

__global__ void masked(int *out, int n) {
    __shared__ int s[64];
    __shared__ unsigned char bytes[256];
    if (threadIdx.x < n) s[threadIdx.x] = threadIdx.x;
    bytes[4 * threadIdx.x] = threadIdx.x;
    __syncthreads();
    const int x = s[threadIdx.x];
    const unsigned word = reinterpret_cast<unsigned *>(bytes)[threadIdx.x];  // three of its bytes are unwritten
    const int y = threadIdx.x < n ? x : -1;
    const int none = x ^ x;
    out[threadIdx.x] = y + (word & 0xff) + none + (x & 0) + int(word << 24 >> 31) * 0;
}

__global__ void pairs(int *out, Pair *copies) {
    __shared__ Pair s[64];
    s[threadIdx.x].tag = char(threadIdx.x);
    s[threadIdx.x].value = 2 * threadIdx.x;
    __syncthreads();
    const Pair p = s[63 - threadIdx.x];  // padding comes along
    out[threadIdx.x] = p.tag + p.value;
    copies[threadIdx.x] = p;
}

template <class F>
void expect(const char *name, const std::vector<int> &got, F want) {
    for (size_t i = 0; i < got.size(); ++i) {
        if (got[i] == want(i)) continue;
        printf("%s: element %zu is %d, not %d\n", name, i, got[i], want(i));
        exit(1);
    }
}

int main() {
    int *out, *in;
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMalloc(&in, 4096));
    std::vector<int> ones(256, 1), got(64);
    CHECK(cudaMemcpy(in, ones.data(), 1024, cudaMemcpyHostToDevice));
    lanes_without_partner<<<1, 256>>>(out, in, 8);
    CHECK(cudaMemcpy(got.data(), out, 4, cudaMemcpyDeviceToHost));
    expect("sum", {got[0]}, [](size_t) { return 256; });
    shfl_scan<<<1, 256, 32 * sizeof(int)>>>(in, out);
    std::vector<int> scanned(256);
    CHECK(cudaMemcpy(scanned.data(), in, 1024, cudaMemcpyDeviceToHost));
    expect("shfl_scan", scanned, [](size_t i) { return int(i) + 1; });
    masked<<<1, 64>>>(out, 40);
    CHECK(cudaMemcpy(got.data(), out, 256, cudaMemcpyDeviceToHost));
    expect("masked", got, [](size_t i) { return (i < 40 ? int(i) : -1) + int(i); });
    pairs<<<1, 64>>>(out, reinterpret_cast<Pair *>(in));
    CHECK(cudaMemcpy(got.data(), out, 256, cudaMemcpyDeviceToHost));
    expect("pairs", got, [](size_t i) { return 3 * (63 - int(i)); });

    for (int n : {7, 1000, 5000}) {
        thrust::host_vector<int> a(n), b(n / 2);
        for (int i = 0; i < n; ++i) a[i] = int(i * 7919ll % 4001);
        for (int i = 0; i < n / 2; ++i) b[i] = int(i * 104729ll % 4001);
        thrust::device_vector<int> x = a, y = b, merged(a.size() + b.size()), both(a.size() + b.size());
        thrust::sort(x.begin(), x.end(), Greater());
        thrust::sort(a.begin(), a.end(), Greater());
        expect("thrust::sort", {x.begin(), x.end()}, [&](size_t i) { return a[i]; });
        thrust::sort(y.begin(), y.end(), Greater());
        thrust::sort(b.begin(), b.end(), Greater());
        thrust::merge(x.begin(), x.end(), y.begin(), y.end(), merged.begin(), Greater());
        std::vector<int> want(merged.size());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Greater());
        expect("thrust::merge", {merged.begin(), merged.end()}, [&](size_t i) { return want[i]; });
        const auto end = thrust::set_intersection(x.begin(), x.end(), y.begin(), y.end(), both.begin(), Greater());
        const auto want_end = std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), want.begin(), Greater());
        if (end - both.begin() != want_end - want.begin()) return printf("set_intersection: another length\n"), 1;
        expect("thrust::set_intersection", {both.begin(), end}, [&](size_t i) { return want[i]; });

        thrust::device_vector<int> keys(n);
        thrust::host_vector<int> unsorted(n);
        for (int i = 0; i < n; ++i) unsorted[i] = int(i * 31337ll % 9973);
        keys = unsorted;
        size_t bytes = 0;
        CHECK(cub::DeviceMergeSort::SortKeys(nullptr, bytes, keys.data(), n, Greater()));
        thrust::device_vector<char> room(bytes);
        CHECK(cub::DeviceMergeSort::SortKeys(room.data().get(), bytes, keys.data(), n, Greater()));
        thrust::sort(unsorted.begin(), unsorted.end(), Greater());
        expect("cub::DeviceMergeSort", {keys.begin(), keys.end()}, [&](size_t i) { return unsorted[i]; });
    }
    printf("OK\n");
}
