// Values that nobody wrote, and where they matter: one kernel for each mistake. "//! kind: words" marks the read that
// brings the value and "//~" the line where it matters, if that is another. With -DMENDED all are right.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>
#include <cstring>

#ifdef MENDED
constexpr bool kMended = true;
#else
constexpr bool kMended = false;
#endif
// Threads of a block that fill their part of a tile: 40 of 64.
#define FILLED(n) (threadIdx.x < (kMended ? 64 : (n)))

__global__ void branch(float *out, const float *in, int n) {
    __shared__ float s[64];
    if (FILLED(n)) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = s[threadIdx.x];  //! uninitialized_shared: thread 40 | decides a branch
    if (x > 3)                       //~
        for (int i = 0; i < n; ++i) atomicAdd(out + i, 1.0f);
}

__global__ void store(float *out, const float *in, int n) {
    __shared__ float s[64];
    if (FILLED(n)) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = s[63 - threadIdx.x];  //! uninitialized_shared: thread 0 | stored to global memory
    out[threadIdx.x] = 2 * x + 1;         //~
}

__global__ void address(float *out, const float *in, int n) {
    __shared__ int s[64];
    if (FILLED(n)) s[threadIdx.x] = 63 - threadIdx.x;
    __syncthreads();
    const int i = s[threadIdx.x];  //! uninitialized_shared: part of an address
    out[threadIdx.x] = in[i];      //~
}

__global__ void shared_address(float *out, const float *in, int n) {
    __shared__ int index[64];
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    if (FILLED(n)) index[threadIdx.x] = threadIdx.x ^ 1;
    __syncthreads();
    const int i = index[threadIdx.x] & 63;  //! uninitialized_shared: part of an address
    out[threadIdx.x] = s[i];                //~
}

__global__ void guard(float *out, const float *in, int n) {
    __shared__ int valid[64];
    if (FILLED(n)) valid[threadIdx.x] = in[threadIdx.x] > 2;
    __syncthreads();
    const int is_valid = valid[threadIdx.x];       //! uninitialized_shared: decides
    if (is_valid) out[threadIdx.x] = threadIdx.x;  //~
}

__global__ void atomic(float *out, const float *in, int n) {
    __shared__ float s[64];
    if (FILLED(n)) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = s[threadIdx.x];  //! uninitialized_shared: atomic operation on global memory
    atomicAdd(out, x);               //~
}

__global__ void shuffled(float *out, const float *in, int n) {
    __shared__ float s[64];
    if (FILLED(n)) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = s[threadIdx.x];  //! uninitialized_shared: thread 63 | in thread 32
    const float y = __shfl_xor_sync(0xffffffff, x, 31);
    out[threadIdx.x] = y;  //~
}

__global__ void shuffle_lane(float *out, const float *in, int n) {
    __shared__ int lane[64];
    if (FILLED(n)) lane[threadIdx.x] = threadIdx.x ^ 3;
    __syncthreads();
    const int from = lane[threadIdx.x] & 31;                            //! uninitialized_shared: which lanes
    out[threadIdx.x] = __shfl_sync(0xffffffff, in[threadIdx.x], from);  //~
}

__global__ void ballot(float *out, const float *in, int n) {
    __shared__ float s[64];
    if (FILLED(n)) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = s[threadIdx.x];  //! uninitialized_shared: thread 40 | in thread 32
    const unsigned large = __ballot_sync(0xffffffff, x > 3);
    out[threadIdx.x] = __popc(large);  //~
}

__global__ void maximum(float *out, const float *in, int n) {
    __shared__ int s[64];
    if (FILLED(n)) s[threadIdx.x] = int(in[threadIdx.x]);
    __syncthreads();
    const int x = s[threadIdx.x];                         //! uninitialized_shared: stored to global memory
    out[threadIdx.x] = __reduce_max_sync(0xffffffff, x);  //~
}

__global__ void copied(float *out, const float *in, int n) {
    __shared__ float a[64], b[64];
    if (FILLED(n)) a[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    b[63 - threadIdx.x] = a[threadIdx.x];  //! uninitialized_shared: thread 63 | in thread 0
    __syncthreads();
    out[threadIdx.x] = b[threadIdx.x] + 1;  //~
}

__global__ void barrier(float *out, const float *in, int n) {
    __shared__ int flag[64];
    if (FILLED(n)) flag[threadIdx.x] = in[threadIdx.x] > 100;
    __syncthreads();
    const int mine = flag[threadIdx.x];         //! uninitialized_shared: goes into bar
    out[threadIdx.x] = __syncthreads_or(mine);  //~
}

__global__ void printed(float *out, const float *in, int n) {
    __shared__ int s[64];
    if (FILLED(n)) s[threadIdx.x] = int(in[threadIdx.x]);
    __syncthreads();
    const int x = s[50];                      //! uninitialized_shared: an argument of a call
    if (threadIdx.x == 0) printf("%d\n", x);  //~
}

__global__ void one_byte(float *out, const float *in, int n) {
    __shared__ uchar4 s[64];
    uchar4 &mine = s[threadIdx.x];
    mine.x = mine.y = mine.z = 1;
    if (kMended) mine.w = 1;
    __syncthreads();
    uchar4 *const bytes = reinterpret_cast<uchar4 *>(out);
    bytes[threadIdx.x] = s[threadIdx.x ^ 1];  //! uninitialized_shared: stored to global memory
}

__global__ void one_half(float *out, const float *in, int n) {
    __shared__ __half s[128];
    s[2 * threadIdx.x] = __float2half(in[threadIdx.x]);
    if (kMended) s[2 * threadIdx.x + 1] = __float2half(0);
    __syncthreads();
    const __half2 h = reinterpret_cast<__half2 *>(s)[threadIdx.x ^ 1];  //! uninitialized_shared: stored
    const __half2 twice = __hadd2(h, h);
    out[threadIdx.x] = __high2float(twice);  //~
}

__global__ void fourth(float *out, const float *in, int n) {
    __shared__ float4 s[64];
    float4 &mine = s[threadIdx.x];
    mine.x = mine.y = mine.z = in[threadIdx.x];
    if (kMended) mine.w = 0;
    __syncthreads();
    const float4 v = s[threadIdx.x ^ 1];       //! uninitialized_shared: stored to global memory
    out[threadIdx.x] = v.x + v.y + v.z + v.w;  //~
}

__global__ void warp_sums(float *out, const float *in, int n) {
    __shared__ float sums[32];
    float x = in[threadIdx.x];
    for (int d = 16; d; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);
    if (kMended && threadIdx.x < 32) sums[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        float y = sums[threadIdx.x];  //! uninitialized_shared: thread 16 | in thread 0
        for (int d = 16; d; d /= 2) y += __shfl_down_sync(0xffffffff, y, d);
        if (threadIdx.x == 0) *out = y;  //~
    }
}

__global__ void loop_bound(float *out, const float *in, int n) {
    __shared__ int count;
    if (threadIdx.x == 0 && (kMended || n > 100)) count = n;
    __syncthreads();
    const int m = count & 7;  //! uninitialized_shared: decides a branch
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < m; ++i) sum += in[i];  //~
    out[threadIdx.x] = sum;
}

__global__ void tensor_cores(float *out, const float *in, int n) {
    using namespace nvcuda::wmma;
    __shared__ __half s[256];
    const int filled = kMended ? 256 : 224;
    for (int i = threadIdx.x; i < filled; i += 64) s[i] = __float2half(in[i % 64]);
    __syncthreads();
    fragment<matrix_a, 16, 16, 16, __half, row_major> a;
    fragment<matrix_b, 16, 16, 16, __half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0);
    fill_fragment(b, __float2half(1));
    load_matrix_sync(a, s, 16);  //! uninitialized_shared: stored to global memory
    mma_sync(c, a, b, c);
    if (threadIdx.x < 32) store_matrix_sync(out, c, 16, mem_row_major);  //~
}

__global__ void local_array(float *out, const float *in, int n) {
    float kept[8];
    for (int i = 0; i < (kMended ? 8 : 5); ++i) kept[i] = in[threadIdx.x + i];
    const float x = kept[(threadIdx.x + n) % 8];  //! uninitialized_variable: thread 5 | a local variable
    out[threadIdx.x] = x;                         //~
}

__device__ __noinline__ void result_of(const float *in, float *result) {
    if (kMended || threadIdx.x < 10) *result = in[threadIdx.x];
}
__global__ void out_parameter(float *out, const float *in, int n) {
    float x;
    result_of(in, &x);
    const float y = x;     //! uninitialized_variable: thread 10 | a local variable
    out[threadIdx.x] = y;  //~
}

__global__ void accumulator_not_cleared(float *out, const float *in, int n) {
    float sum[2];
    if (kMended) sum[0] = sum[1] = 0;
    for (int i = 0; i < n; ++i) {
        sum[0] += in[i], sum[1] -= in[i];  //! uninitialized_variable: a variable that nothing has written
    }
    out[threadIdx.x] = sum[0] * sum[1];  //~
}

__global__ void lock_not_set(float *out, const float *in, int n) {
    __shared__ int lock;
    if (kMended && threadIdx.x == 0) lock = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        const int before = atomicCAS(&lock, 0, 1);  //! uninitialized_shared: by thread 0
        if (before == 0) *out = in[0];              //~
    }
}

__global__ void switched(float *out, const float *in, int n) {
    __shared__ int kind[64];
    if (FILLED(n)) kind[threadIdx.x] = threadIdx.x % 6;
    __syncthreads();
    float x = in[threadIdx.x];
    const int what = kind[threadIdx.x];  //! uninitialized_shared: decides a branch
    switch (what) {                      //~
        case 0:
            x = sinf(x);
            break;
        case 1:
            x = cosf(x);
            break;
        case 2:
            x = expf(x);
            break;
        case 3:
            x = logf(x);
            break;
        case 4:
            x = sqrtf(x);
            break;
        default:
            x = 1 / x;
    }
    out[threadIdx.x] = x;
}

__global__ void selected(float *out, const float *in, int n) {
    __shared__ int side[64];
    if (FILLED(n)) side[threadIdx.x] = threadIdx.x & 1;
    __syncthreads();
    const int right = side[threadIdx.x];                 //! uninitialized_shared: part of an address
    out[threadIdx.x] = right ? in[threadIdx.x] : in[0];  //~
}

int main(int argc, char **argv) {
    struct Case {
        const char *name;
        void (*kernel)(float *, const float *, int);
    };
#define CASE(name)  \
    {               \
        #name, name \
    }
    const Case cases[] = {
        CASE(branch),        CASE(store),
        CASE(address),       CASE(shared_address),
        CASE(guard),         CASE(atomic),
        CASE(shuffled),      CASE(shuffle_lane),
        CASE(ballot),        CASE(maximum),
        CASE(copied),        CASE(barrier),
        CASE(printed),       CASE(one_byte),
        CASE(one_half),      CASE(fourth),
        CASE(warp_sums),     CASE(loop_bound),
        CASE(tensor_cores),  CASE(local_array),
        CASE(out_parameter), CASE(accumulator_not_cleared),
        CASE(lock_not_set),  CASE(switched),
        CASE(selected),
    };
    float values[1024], *in, *out;
    for (int i = 0; i < 1024; ++i) values[i] = float(i % 7);
    cudaMalloc(&in, sizeof values);
    cudaMalloc(&out, sizeof values);
    cudaMemcpy(in, values, sizeof values, cudaMemcpyHostToDevice);
    cudaMemset(out, 0, sizeof values);
    for (const Case &one : cases) {
        if (argc < 2 || std::strcmp(argv[1], one.name)) continue;
        one.kernel<<<1, 64>>>(out, in, 40);
        const cudaError_t error = cudaDeviceSynchronize();
        std::printf("%s\n", cudaGetErrorName(error));
        return error == cudaSuccess ? 0 : 3;
    }
    return 1;
}
