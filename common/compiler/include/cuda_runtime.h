// What kernels use of CUDA's headers, for clang and this compiler: the language's words, vector types, and the device
// functions that are in common use. What is missing is an unknown name to clang, with the line.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...) __attribute__((annotate("cluster_dims " #__VA_ARGS__)))  // clang drops its own
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __CUDA_ARCH__ 900
#define INFINITY __builtin_huge_valf()
#define NAN __builtin_nanf("")
#define FLASH_DEVICE static __device__ __forceinline__

// ---- vector types ----

#define FLASH_VECTORS(T, name, align2, align4)                              \
    struct name##1 {                                                        \
        T x;                                                                \
    };                                                                      \
    struct __align__(align2) name##2 {                                      \
        T x, y;                                                             \
    };                                                                      \
    struct name##3 {                                                        \
        T x, y, z;                                                          \
    };                                                                      \
    struct __align__(align4) name##4 {                                      \
        T x, y, z, w;                                                       \
    };                                                                      \
    __host__ __device__ inline name##1 make_##name##1(T x) {                \
        return {x};                                                         \
    }                                                                       \
    __host__ __device__ inline name##2 make_##name##2(T x, T y) {           \
        return {x, y};                                                      \
    }                                                                       \
    __host__ __device__ inline name##3 make_##name##3(T x, T y, T z) {      \
        return {x, y, z};                                                   \
    }                                                                       \
    __host__ __device__ inline name##4 make_##name##4(T x, T y, T z, T w) { \
        return {x, y, z, w};                                                \
    }
FLASH_VECTORS(char, char, 2, 4)
FLASH_VECTORS(unsigned char, uchar, 2, 4)
FLASH_VECTORS(short, short, 4, 8)
FLASH_VECTORS(unsigned short, ushort, 4, 8)
FLASH_VECTORS(int, int, 8, 16)
FLASH_VECTORS(unsigned, uint, 8, 16)
FLASH_VECTORS(long long, longlong, 16, 16)
FLASH_VECTORS(unsigned long long, ulonglong, 16, 16)
FLASH_VECTORS(float, float, 8, 16)
FLASH_VECTORS(double, double, 16, 16)
#undef FLASH_VECTORS

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// ---- where a thread is ----

#define FLASH_SPECIAL(field, name)                             \
    __declspec(property(get = get_##field)) unsigned field;    \
    static __device__ __forceinline__ unsigned get_##field() { \
        return __nvvm_read_ptx_sreg_##name##_##field();        \
    }
#define FLASH_SPECIAL_VECTOR(type, name)                                                                        \
    struct type {                                                                                               \
        FLASH_SPECIAL(x, name) FLASH_SPECIAL(y, name) FLASH_SPECIAL(z, name) __device__ operator dim3() const { \
            return dim3(get_x(), get_y(), get_z());                                                             \
        }                                                                                                       \
        __device__ operator uint3() const { return {get_x(), get_y(), get_z()}; }                               \
    };
FLASH_SPECIAL_VECTOR(flash_thread_index, tid)
FLASH_SPECIAL_VECTOR(flash_block_index, ctaid)
FLASH_SPECIAL_VECTOR(flash_block_size, ntid)
FLASH_SPECIAL_VECTOR(flash_grid_size, nctaid)
#undef FLASH_SPECIAL
#undef FLASH_SPECIAL_VECTOR
extern const __device__ __attribute__((weak)) flash_thread_index threadIdx;
extern const __device__ __attribute__((weak)) flash_block_index blockIdx;
extern const __device__ __attribute__((weak)) flash_block_size blockDim;
extern const __device__ __attribute__((weak)) flash_grid_size gridDim;
constexpr int warpSize = 32;

FLASH_DEVICE void *memcpy(void *to, const void *from, size_t bytes) {
    return __builtin_memcpy(to, from, bytes);
}

// ---- barriers and fences ----

FLASH_DEVICE int __syncthreads_count(int x) {
    return __nvvm_bar0_popc(x);
}
FLASH_DEVICE int __syncthreads_and(int x) {
    return __nvvm_bar0_and(x);
}
FLASH_DEVICE int __syncthreads_or(int x) {
    return __nvvm_bar0_or(x);
}
FLASH_DEVICE void __syncwarp(unsigned lanes = 0xffffffff) {
    __nvvm_bar_warp_sync(lanes);
}
FLASH_DEVICE void __threadfence_block() {
    __nvvm_membar_cta();
}
FLASH_DEVICE void __threadfence() {
    __nvvm_membar_gl();
}
FLASH_DEVICE void __threadfence_system() {
    __nvvm_membar_sys();
}
FLASH_DEVICE void __trap() {
    __builtin_trap();
}
FLASH_DEVICE void __nanosleep(unsigned t) {
    __nvvm_nanosleep(t);
}
FLASH_DEVICE long long clock64() {
    return __nvvm_read_ptx_sreg_clock64();
}

// ---- a warp ----

FLASH_DEVICE int __any_sync(unsigned lanes, int x) {
    return __nvvm_vote_any_sync(lanes, x);
}
FLASH_DEVICE int __all_sync(unsigned lanes, int x) {
    return __nvvm_vote_all_sync(lanes, x);
}
FLASH_DEVICE unsigned __ballot_sync(unsigned lanes, int x) {
    return __nvvm_vote_ballot_sync(lanes, x);
}
FLASH_DEVICE unsigned __activemask() {
    unsigned lanes;
    asm volatile("activemask.b32 %0;" : "=r"(lanes));
    return lanes;
}
// The last argument of the instruction: where the pieces of `width` lanes end, and how many lanes they leave out.
#define FLASH_SHUFFLE(name, kind, bound)                                                                            \
    FLASH_DEVICE int name(unsigned lanes, int x, int by, int width = 32) {                                          \
        return __nvvm_shfl_sync_##kind##_i32(lanes, x, by, (32 - width) << 8 | bound);                              \
    }                                                                                                               \
    FLASH_DEVICE unsigned name(unsigned lanes, unsigned x, int by, int width = 32) {                                \
        return __nvvm_shfl_sync_##kind##_i32(lanes, x, by, (32 - width) << 8 | bound);                              \
    }                                                                                                               \
    FLASH_DEVICE float name(unsigned lanes, float x, int by, int width = 32) {                                      \
        return __nvvm_shfl_sync_##kind##_f32(lanes, x, by, (32 - width) << 8 | bound);                              \
    }                                                                                                               \
    FLASH_DEVICE long long name(unsigned lanes, long long x, int by, int width = 32) {                              \
        const unsigned low = name(lanes, unsigned(x), by, width), high = name(lanes, unsigned(x >> 32), by, width); \
        return (unsigned long long)high << 32 | low;                                                                \
    }                                                                                                               \
    FLASH_DEVICE double name(unsigned lanes, double x, int by, int width = 32) {                                    \
        return __builtin_bit_cast(double, name(lanes, __builtin_bit_cast(long long, x), by, width));                \
    }
FLASH_SHUFFLE(__shfl_sync, idx, 0x1f)
FLASH_SHUFFLE(__shfl_xor_sync, bfly, 0x1f)
FLASH_SHUFFLE(__shfl_down_sync, down, 0x1f)
FLASH_SHUFFLE(__shfl_up_sync, up, 0)
#undef FLASH_SHUFFLE
FLASH_DEVICE unsigned __reduce_add_sync(unsigned lanes, unsigned x) {
    return __nvvm_redux_sync_add(x, lanes);
}
FLASH_DEVICE unsigned __reduce_max_sync(unsigned lanes, unsigned x) {
    return __nvvm_redux_sync_umax(x, lanes);
}
FLASH_DEVICE unsigned __reduce_min_sync(unsigned lanes, unsigned x) {
    return __nvvm_redux_sync_umin(x, lanes);
}

// ---- numbers ----

template <typename T>
__host__ __device__ constexpr T min(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
__host__ __device__ constexpr T max(T a, T b) {
    return a < b ? b : a;
}
__host__ __device__ constexpr unsigned min(unsigned a, int b) {
    return min(a, unsigned(b));
}
__host__ __device__ constexpr unsigned min(int a, unsigned b) {
    return min(unsigned(a), b);
}
__host__ __device__ constexpr unsigned max(unsigned a, int b) {
    return max(a, unsigned(b));
}
__host__ __device__ constexpr unsigned max(int a, unsigned b) {
    return max(unsigned(a), b);
}
FLASH_DEVICE float min(float a, float b) {
    return __builtin_fminf(a, b);
}
FLASH_DEVICE float max(float a, float b) {
    return __builtin_fmaxf(a, b);
}
FLASH_DEVICE float fminf(float a, float b) {
    return __builtin_fminf(a, b);
}
FLASH_DEVICE float fmaxf(float a, float b) {
    return __builtin_fmaxf(a, b);
}
FLASH_DEVICE double fmin(double a, double b) {
    return __builtin_fmin(a, b);
}
FLASH_DEVICE double fmax(double a, double b) {
    return __builtin_fmax(a, b);
}
FLASH_DEVICE float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
FLASH_DEVICE double fma(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
FLASH_DEVICE float fabsf(float x) {
    return __builtin_fabsf(x);
}
FLASH_DEVICE float sqrtf(float x) {
    return __nvvm_sqrt_rn_f(x);
}
FLASH_DEVICE float rsqrtf(float x) {
    return __nvvm_rsqrt_approx_f(x);
}
FLASH_DEVICE float floorf(float x) {
    return __builtin_floorf(x);
}
FLASH_DEVICE float ceilf(float x) {
    return __builtin_ceilf(x);
}
FLASH_DEVICE float truncf(float x) {
    return __builtin_truncf(x);
}
FLASH_DEVICE bool isnan(float x) {
    return x != x;
}
FLASH_DEVICE bool isinf(float x) {
    return __builtin_fabsf(x) == INFINITY;
}
FLASH_DEVICE bool isfinite(float x) {
    return __builtin_fabsf(x) < INFINITY;
}
FLASH_DEVICE float __fdiv_rn(float a, float b) {
    return __nvvm_div_rn_f(a, b);
}
FLASH_DEVICE float __frcp_rn(float x) {
    return __nvvm_rcp_rn_f(x);
}
FLASH_DEVICE float __fsqrt_rn(float x) {
    return __nvvm_sqrt_rn_f(x);
}
FLASH_DEVICE float __fdividef(float a, float b) {
    return __nvvm_div_approx_f(a, b);
}
FLASH_DEVICE float __exp2f(float x) {
    return __nvvm_ex2_approx_f(x);
}
FLASH_DEVICE float __expf(float x) {
    return __nvvm_ex2_approx_f(x * 1.442695041f);
}
FLASH_DEVICE float __log2f(float x) {
    return __nvvm_lg2_approx_f(x);
}
FLASH_DEVICE float __logf(float x) {
    return __nvvm_lg2_approx_f(x) * 0.693147181f;
}
FLASH_DEVICE float exp2f(float x) {
    return __nvvm_ex2_approx_f(x);
}
// e^x = 2^n 2^f, n whole, and ln 2 in two parts, so that f is exact to the last bits.
FLASH_DEVICE float expf(float x) {
    const float n = __builtin_rintf(fmaxf(fminf(x, 128.0f), -128.0f) * 1.442695041f);
    const float f = fmaf(n, -1.904654323e-9f, fmaf(n, -0.693147182f, x));
    return __nvvm_ex2_approx_f(f * 1.442695041f) * __nvvm_ex2_approx_f(n);
}
// x = 2^n m, m from 2/3 to 4/3; log(m) by the series of 2 artanh((m - 1) / (m + 1)).
FLASH_DEVICE float logf(float x) {
    if (!(x > 0.0f) || x == INFINITY) return x == 0.0f ? -INFINITY : x < 0.0f ? NAN : x;
    const bool small = x < 1.17549435e-38f;
    const int bits = __builtin_bit_cast(int, small ? x * 8388608.0f : x);
    const int exponent = (bits - 0x3f2aaaab) & 0xff800000;
    const float m = __builtin_bit_cast(float, bits - exponent);
    const float n = (exponent >> 23) - (small ? 23 : 0);
    const float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    const float series = fmaf(s2, fmaf(s2, fmaf(s2, 0.222222222f, 0.285714286f), 0.4f), 0.666666667f);
    return fmaf(n, 0.693147182f, fmaf(n, -1.904654323e-9f, fmaf(s * s2, series, 2.0f * s)));
}
FLASH_DEVICE float __fadd_rn(float a, float b) {
    return __nvvm_add_rn_f(a, b);
}
FLASH_DEVICE float __fsub_rn(float a, float b) {
    return __nvvm_add_rn_f(a, -b);
}
FLASH_DEVICE float __fmul_rn(float a, float b) {
    return __nvvm_mul_rn_f(a, b);
}
FLASH_DEVICE float __fmaf_rn(float a, float b, float c) {
    return __nvvm_fma_rn_f(a, b, c);
}
FLASH_DEVICE int __float2int_rn(float x) {
    return __nvvm_f2i_rn(x);
}
FLASH_DEVICE int __float2int_rz(float x) {
    return __nvvm_f2i_rz(x);
}
FLASH_DEVICE float __int2float_rn(int x) {
    return x;
}
FLASH_DEVICE int __popc(unsigned x) {
    return __builtin_popcount(x);
}
FLASH_DEVICE int __clz(int x) {
    return __builtin_clzg(unsigned(x), 32);
}
FLASH_DEVICE int __ffs(int x) {
    return __builtin_ffs(x);
}
FLASH_DEVICE unsigned __brev(unsigned x) {
    return __builtin_bitreverse32(x);
}
FLASH_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    return __nvvm_prmt(a, b, s);
}
FLASH_DEVICE int __mulhi(int a, int b) {
    return (long long)a * b >> 32;
}
FLASH_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned long long)a * b >> 32;
}
FLASH_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return ((unsigned long long)high << 32 | low) << (by & 31) >> 32;
}
FLASH_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return ((unsigned long long)high << 32 | low) >> (by & 31);
}
FLASH_DEVICE int __float_as_int(float x) {
    return __builtin_bit_cast(int, x);
}
FLASH_DEVICE unsigned __float_as_uint(float x) {
    return __builtin_bit_cast(unsigned, x);
}
FLASH_DEVICE float __int_as_float(int x) {
    return __builtin_bit_cast(float, x);
}
FLASH_DEVICE float __uint_as_float(unsigned x) {
    return __builtin_bit_cast(float, x);
}

// ---- memory ----

FLASH_DEVICE size_t __cvta_generic_to_shared(const void *pointer) {
    return (size_t)(const __attribute__((address_space(3))) void *)pointer;
}
FLASH_DEVICE size_t __cvta_generic_to_global(const void *pointer) {
    return (size_t)(const __attribute__((address_space(1))) void *)pointer;
}
FLASH_DEVICE void *__cvta_shared_to_generic(size_t address) {
    return (void *)(__attribute__((address_space(3))) void *)address;
}
FLASH_DEVICE void *__cvta_global_to_generic(size_t address) {
    return (void *)(__attribute__((address_space(1))) void *)address;
}
template <typename T>
FLASH_DEVICE T __ldg(const T *pointer) {
    return *pointer;
}

#define FLASH_ATOMIC(name, builtin, T)                                  \
    FLASH_DEVICE T name(T *to, T x) {                                   \
        return builtin(to, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); \
    }
#define FLASH_ATOMICS(T)                                                                                \
    FLASH_ATOMIC(atomicAdd, __scoped_atomic_fetch_add, T)                                               \
    FLASH_ATOMIC(atomicSub, __scoped_atomic_fetch_sub, T)                                               \
    FLASH_ATOMIC(atomicMin, __scoped_atomic_fetch_min, T)                                               \
    FLASH_ATOMIC(atomicMax, __scoped_atomic_fetch_max, T)                                               \
    FLASH_ATOMIC(atomicAnd, __scoped_atomic_fetch_and, T)                                               \
    FLASH_ATOMIC(atomicOr, __scoped_atomic_fetch_or, T)                                                 \
    FLASH_ATOMIC(atomicXor, __scoped_atomic_fetch_xor, T)                                               \
    FLASH_ATOMIC(atomicExch, __scoped_atomic_exchange_n, T)                                             \
    FLASH_DEVICE T atomicCAS(T *to, T expected, T x) {                                                  \
        __scoped_atomic_compare_exchange_n(to, &expected, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                           __MEMORY_SCOPE_DEVICE);                                      \
        return expected;                                                                                \
    }
FLASH_ATOMICS(int)
FLASH_ATOMICS(unsigned)
FLASH_ATOMICS(unsigned long long)
FLASH_ATOMIC(atomicAdd, __scoped_atomic_fetch_add, float)
FLASH_ATOMIC(atomicAdd, __scoped_atomic_fetch_add, double)
#undef FLASH_ATOMIC
#undef FLASH_ATOMICS

// ---- what launchers name ----

enum cudaError_t { cudaSuccess };
typedef struct CUstream_st *cudaStream_t;
struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount;
    size_t sharedMemPerBlockOptin;
};
cudaError_t cudaGetDevice(int *);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *, int);
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81 };
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, void * = nullptr);
