// Structs with padding in shared memory: the compiler reads them with wider loads, padding included, though nobody
// wrote that.
#include <cub/cub.cuh>

#include <cstdio>

#include "../check.h"

struct alignas(16) Point {
    float x, y, z;
};

struct alignas(8) Pair {
    short first;
    float second;
};

__global__ void turn(Point *out, const Point *in) {
    __shared__ Point s[64];
    const int i = threadIdx.x;
    s[i].x = in[i].x;
    s[i].y = in[i].y;
    s[i].z = in[i].z;
    __syncthreads();
    const Point p = s[63 - i];
    out[i].x = p.y;
    out[i].y = p.z;
    out[i].z = p.x;
}

// z is read while the neighbour's thread writes the padding behind it.
__global__ void neighbours(float *out, const float *in) {
    __shared__ union {
        Point point;
        float word[4];
    } s[64];
    const int i = threadIdx.x;
    for (int k = 0; k < 3; ++k) s[i].word[k] = in[3 * i + k];
    __syncthreads();
    s[i].word[3] = in[i];
    const Point p = s[(i + 1) % 64].point;
    out[i] = p.x + p.y * p.z;
}

__global__ void pairs(float *out) {
    __shared__ Pair s[64];
    const int i = threadIdx.x;
    s[i].first = short(i);
    s[i].second = 0.5f * i;
    __syncthreads();
    const Pair p = s[i ^ 33];
    out[i] = p.first + p.second;
}

__global__ void sort(int *keys) {
    using Sort = cub::BlockRadixSort<int, 96, 2>;
    __shared__ typename Sort::TempStorage storage;
    int mine[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};
    Sort(storage).Sort(mine);
    keys[2 * threadIdx.x] = mine[0];
    keys[2 * threadIdx.x + 1] = mine[1];
}

int main() {
    Point *in, *out;
    float *numbers, *sums;
    int *keys;
    CHECK(cudaMallocManaged(&in, 64 * sizeof(Point)));
    CHECK(cudaMallocManaged(&out, 64 * sizeof(Point)));
    CHECK(cudaMallocManaged(&numbers, 192 * sizeof(float)));
    CHECK(cudaMallocManaged(&sums, 64 * sizeof(float)));
    CHECK(cudaMallocManaged(&keys, 192 * sizeof(int)));
    for (int i = 0; i < 64; ++i) in[i] = {i + 0.25f, i + 0.5f, i + 0.75f};
    for (int i = 0; i < 192; ++i) numbers[i] = i % 13, keys[i] = i * 97 % 192;
    turn<<<1, 64>>>(out, in);
    neighbours<<<1, 64>>>(sums, numbers);
    sort<<<1, 96>>>(keys);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i) {
        const Point &p = in[63 - i];
        if (out[i].x != p.y || out[i].y != p.z || out[i].z != p.x) return std::printf("turn %d\n", i), 1;
        const float *n = &numbers[3 * ((i + 1) % 64)];
        if (sums[i] != n[0] + n[1] * n[2]) return std::printf("neighbours %d\n", i), 1;
    }
    for (int i = 0; i < 192; ++i)
        if (keys[i] != i) return std::printf("sort %d\n", i), 1;
    pairs<<<1, 64>>>(sums);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i)
        if (sums[i] != 1.5f * (i ^ 33)) return std::printf("pairs %d\n", i), 1;
    std::printf("OK\n");
}
