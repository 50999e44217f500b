// What C++ makes of PTX: virtual functions, function pointers, recursion, tables with addresses, switch, printf,
// assert.
#include <cassert>
#include <cstdio>

struct Shape {
    float size;
    __device__ explicit Shape(float size) : size(size) {}
    __device__ virtual float area() const { return 0; }
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    using Shape::Shape;
    __device__ float area() const override { return size * size; }
};
struct Large {
    int values[9];
};

__device__ __noinline__ int twice(int x) {
    return 2 * x;
}
__device__ __noinline__ int thrice(int x) {
    return 3 * x;
}
using Function = int (*)(int);
__device__ Function functions[2] = {twice, thrice};
__device__ int numbers[4] = {10, 20, 30, 40};
__constant__ int *addresses[2] = {&numbers[1], numbers + 3};
__constant__ float weights[2][3] = {{1.5f, -2, 3}, {4}};
__device__ const char *words[] = {"one\n", "two \"quoted\""};
__device__ volatile long long counter;
__device__ double grid_total;

__device__ __noinline__ unsigned fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ Large shuffle_values(Large in, int by) {
    Large out;
    for (int i = 0; i < 9; ++i) out.values[i] = in.values[(i + by) % 9];
    return out;
}

extern "C" __global__ void __launch_bounds__(128, 2) features(int *out, Large large, int n, short narrow, bool flag) {
    extern __shared__ double dynamic[];
    __shared__ float tile[32][33];
    assert(n >= 0);
    tile[threadIdx.x % 32][threadIdx.y] = weights[n & 1][threadIdx.x % 3];
    dynamic[threadIdx.x] = narrow;
    __syncthreads();
    Square square(tile[0][n & 31]);
    Shape *shape = flag ? &square : new Shape(2);
    int result = functions[n & 1](n) + *addresses[n & 1] + static_cast<int>(shape->area());
    switch (n) {
        case 0:
            result += 1;
            break;
        case 1:
            result *= 7;
            break;
        case 2:
            result ^= 77;
            break;
        case 3:
            result = __popc(result);
            break;
        case 4:
            result = __brev(result);
            break;
        case 5:
            result -= narrow;
            break;
        case 6:
            result = fibonacci(result & 7);
            break;
        default:
            result = shuffle_values(large, n).values[n % 9];
    }
    printf("%s %d %f\n", words[n & 1], result, static_cast<float>(dynamic[0]));
    out[blockIdx.x * blockDim.x + threadIdx.x] = result + large.values[n % 9];
    if (n == 99) __trap();
}
