// Loops and branches: values that change places from turn to turn, exits from the middle, a switch.
#include <cuda_runtime.h>

__device__ unsigned greatest_divisor(unsigned a, unsigned b) {
    while (b) {
        const unsigned rest = a % b;
        a = b, b = rest;
    }
    return a;
}

extern "C" __global__ void k(const unsigned *in, unsigned *out) {
    const unsigned a = in[threadIdx.x], b = in[threadIdx.x + 64];
    unsigned *to = out + threadIdx.x * 16;
    to[0] = greatest_divisor(a >> 8, b >> 8);
    unsigned x = a, y = b, z = a ^ b;
#pragma unroll 1
    for (unsigned i = 0; i < (a & 15); ++i) {  // three values in a ring
        const unsigned old = x;
        x = y, y = z, z = old;
    }
    to[1] = x, to[2] = y, to[3] = z;
    unsigned sum = 0, last = 0;
#pragma unroll 1
    for (unsigned i = 0; i < 40; ++i) {
        if ((a >> i % 32 & 3) == 1) continue;
        last = sum;
        sum += i * b;
        if (sum % 11 == 3) break;
    }
    to[4] = sum, to[5] = last;
    switch (a % 7) {
        case 0:
            to[6] = 1;
            break;
        case 1:
            to[6] = a;
            [[fallthrough]];
        case 2:
            to[7] = b;
            break;
        case 5:
            to[6] = a * b;
            break;
        default:
            to[7] = 9;
    }
    unsigned steps = 0;
#pragma unroll 1
    for (unsigned i = 0; i < (b & 7); ++i)
#pragma unroll 1
        for (unsigned k = i; k < 9; k += 1 + (a >> k & 1)) {
            if (k == (a & 7)) goto out_of_both;
            steps = steps * 3 + k;
        }
out_of_both:
    to[8] = steps;
    bool found = false;
    float f = 1.0f, g = 2.0f;
#pragma unroll 1
    for (unsigned i = 0; i < 20 && !found; ++i) {
        found = (a >> i & 15) == (b & 15);
        const float h = f;
        f = found ? g : g + 1.0f, g = h;
    }
    to[9] = found, to[10] = __float_as_uint(f), to[11] = __float_as_uint(g);
    if (threadIdx.x & 1) return;
    to[12] = threadIdx.x > 20 ? x : y;
}
