// Tensor maps that kernels change: one mistake in each kernel, and the same kernel without it; and a map of which every
// field is replaced.
//
//     changed_maps NAME 0|1        runs NAME's kernel, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` the other line that is named.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../fault_run.h"
#include "../tensor_map.h"

// clang-format off
// The map that is changed is one of bytes; made of it is one of 32 x 64 floats, boxes of 8 rows, at `matrix`.
constexpr unsigned columns = 32, rows = 64, n = 8 * columns, bytes = n * sizeof(float);
#define REPLACE(FIELD, TYPE, LETTER, map, value) asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], %1;" ::"r"(SHARED(map)), LETTER(value) : "memory")
#define REPLACE_AT(FIELD, TYPE, LETTER, map, ord, value) asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], " #ord ", %1;" ::"r"(SHARED(map)), LETTER(value) : "memory")
#define REPLACE_BY(FIELD, map, number) asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024.b32 [%0], " #number ";" ::"r"(SHARED(map)) : "memory")
#define COPY_MAP(to, from) asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to), "r"(SHARED(from)) : "memory")
#define ACQUIRE(map) asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory")
#define KERNEL(name) template <bool mended> __global__ void name(const __grid_constant__ CUtensorMap from, CUtensorMap *maps, float *matrix, float *out)
#define BEGIN __shared__ alignas(1024) float buffer[2 * n]; __shared__ alignas(128) CUtensorMap map; __shared__ uint64_t bar; const unsigned t = threadIdx.x; \
    if (t < 32) reinterpret_cast<unsigned *>(&map)[t] = reinterpret_cast<const unsigned *>(&from)[t]; if (t == 0) { INIT(&bar, 1); FENCE_INIT(); } __syncthreads();
#define ADDRESS(map) REPLACE("global_address", "b64", "l", map, matrix)
#define LOAD_CHANGED(map) if (t == 0) { ARRIVE_EXPECT(&bar, bytes); LOAD_BOX(buffer, map, 0, 8, &bar); }
#define END WAIT(&bar, 0); out[t] = buffer[t];
#define CHANGE CUtensorMap *const changed = maps; if (t == 0) ADDRESS(&map); __syncwarp();
#define USE if (t < 32) ACQUIRE(changed); __syncthreads(); LOAD_CHANGED(changed) END

KERNEL(all_fields) {
    BEGIN
    CUtensorMap *const changed = maps;
    if (t == 0) {
        ADDRESS(&map);
        REPLACE("rank", "b32", "r", &map, 1);
        REPLACE_AT("box_dim", "b32", "r", &map, 0, columns);
        REPLACE_AT("box_dim", "b32", "r", &map, 1, 8);
        REPLACE_AT("global_dim", "b32", "r", &map, 0, columns);
        REPLACE_AT("global_dim", "b32", "r", &map, 1, rows);
        REPLACE_AT("global_stride", "b64", "l", &map, 0, columns * sizeof(float));
        REPLACE_AT("element_stride", "b32", "r", &map, 0, 1);
        REPLACE_AT("element_stride", "b32", "r", &map, 1, 1);
        REPLACE_BY("elemtype", &map, 7);
        REPLACE_BY("interleave_layout", &map, 0);
        REPLACE_BY("swizzle_mode", &map, 3);
        REPLACE_BY("fill_mode", &map, 1);
        // In a box of 256 columns 8 rows and one dimension more are too much: a fault that is in no map that is used.
        if constexpr (!mended) REPLACE_AT("box_dim", "b32", "r", &map, 1, 300);
    }
    __syncwarp();
    if (t < 32) {
        COPY_MAP(changed, &map);
        ACQUIRE(changed);
    }
    __syncthreads();
    LOAD_CHANGED(changed)  //! all_fields invalid_argument: a tensor map that cannot be: the box has 300 elements in dimension 1
    WAIT(&bar, 0);
    for (unsigned i = t; i < n; i += blockDim.x) out[i] = buffer[i / columns * columns + ((i % columns / 4 ^ i / columns % 8) * 4 + i % 4)];
}

KERNEL(no_acquire) {
    BEGIN
    CUtensorMap *const changed = maps;
    if (t == 0) ADDRESS(&map);
    __syncwarp();
    if (t < 32) COPY_MAP(changed, &map);  //~ no_acquire
    if (mended && t < 32) ACQUIRE(changed);
    __syncthreads();
    LOAD_CHANGED(changed)  //! no_acquire proxy_fence: which tensormap.cp_fenceproxy | without fence.proxy.tensormap::generic.acquire
    END
}

KERNEL(acquired_too_early) {
    BEGIN
    CUtensorMap *const changed = maps;
    if constexpr (!mended) ACQUIRE(changed);
    if (t == 0) ADDRESS(&map);
    __syncwarp();
    if (t < 32) COPY_MAP(changed, &map);  //~ acquired_too_early
    if constexpr (mended) ACQUIRE(changed);
    __syncthreads();
    LOAD_CHANGED(changed)  //! acquired_too_early proxy_fence: may still see the old map
    END
}

KERNEL(changed_in_global_memory) {
    BEGIN
    CUtensorMap *const changed = maps + 1;
    if (t == 0) {
        asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(changed), "l"(matrix) : "memory");  //~ changed_in_global_memory
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        if constexpr (mended) ACQUIRE(changed);
    }
    LOAD_CHANGED(changed)  //! changed_in_global_memory proxy_fence: which tensormap.replace
    END
}

KERNEL(copied_before_the_change) {
    BEGIN
    CUtensorMap *const changed = maps;
    if (t == 0) ADDRESS(&map);  //~ copied_before_the_change
    if constexpr (mended) __syncwarp();
    if (t < 32) COPY_MAP(changed, &map);  //! copied_before_the_change shared_race: nothing orders the two
    if (t < 32) ACQUIRE(changed);
    __syncthreads();
    LOAD_CHANGED(changed)
    END
}

KERNEL(no_elements) {
    BEGIN
    CUtensorMap *const changed = maps;
    if (t == 0) ADDRESS(&map);
    if (t == 0) REPLACE_AT("global_dim", "b32", "r", &map, 1, mended ? rows : 0);  //! no_elements invalid_argument: makes the tensor 0 elements long in dimension 1
    __syncwarp();
    if (t < 32) COPY_MAP(changed, &map);
    if (t < 32) ACQUIRE(changed);
    __syncthreads();
    LOAD_CHANGED(changed)
    END
}

KERNEL(no_map) {
    BEGIN
    __shared__ alignas(128) CUtensorMap empty;
    if (t < 32) reinterpret_cast<unsigned *>(&empty)[t] = 0;
    __syncthreads();
    CUtensorMap *const changed = maps;
    if (t == 0) ADDRESS(mended ? &map : &empty);  //! no_map invalid_argument: finds no tensor map
    __syncwarp();
    if (t < 32) COPY_MAP(changed, &map);
    if (t < 32) ACQUIRE(changed);
    __syncthreads();
    LOAD_CHANGED(changed)
    END
}

KERNEL(map_off_by_32) {
    BEGIN
    CHANGE
    if (t < 32) COPY_MAP(reinterpret_cast<char *>(changed) + (mended ? 0 : 32), &map);  //! map_off_by_32 misaligned: no multiple of 64
    USE
}

KERNEL(each_lane_its_own) {
    BEGIN
    CHANGE
    if (t < 32) COPY_MAP(mended ? changed : maps + t, &map);  //! each_lane_its_own invalid_argument: the whole warp asks for one copy
    USE
}

KERNEL(past_the_allocation) {
    BEGIN
    CHANGE
    if (t < 32) COPY_MAP(mended ? changed : maps + 32, &map);  //! past_the_allocation out_of_bounds: writes a tensor map at
    USE
}

// clang-format on
struct Case {
    const char *name;
    void (*kernel[2])(CUtensorMap, CUtensorMap *, float *, float *);
};
#define CASE(name)                  \
    {                               \
        #name, {                    \
            name<false>, name<true> \
        }                           \
    }
const Case cases[] = {
    CASE(all_fields),
    CASE(no_acquire),
    CASE(acquired_too_early),
    CASE(changed_in_global_memory),
    CASE(copied_before_the_change),
    CASE(no_elements),
    CASE(no_map),
    CASE(map_off_by_32),
    CASE(each_lane_its_own),
    CASE(past_the_allocation),
};

int main(int argc, char **argv) {
    static float numbers[rows * columns], results[n];
    float *matrix, *other, *out;
    cudaMalloc(&matrix, sizeof numbers);
    cudaMalloc(&other, sizeof numbers);
    cudaMalloc(&out, sizeof results);
    for (unsigned i = 0; i < rows * columns; ++i) numbers[i] = float(i);
    const bool all = argc >= 3 && !std::strcmp(argv[1], "all_fields");
    CUtensorMap map = map_of(other, columns, rows, 128, columns, 8);
    if (all) {  // of which nothing is kept
        const cuuint64_t size = 64;
        const cuuint32_t box = 16, step = 2;
        encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, other, &size, nullptr, &box, &step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
    CUtensorMap *maps;
    cudaMalloc(&maps, 32 * sizeof map);
    const auto prepare = [&](bool) {
        cudaMemcpy(matrix, numbers, sizeof numbers, cudaMemcpyHostToDevice);
        cudaMemset(other, 0, sizeof numbers);
        cudaMemset(out, 0, sizeof results);
        cudaMemset(maps, 0, 32 * sizeof map);
        cudaMemcpy(maps + 1, &map, sizeof map, cudaMemcpyHostToDevice);
    };
    for (const auto &it : cases) {
        if (argc < 3 || std::strcmp(argv[1], it.name)) continue;
        const auto launch = [&](bool mended) { it.kernel[mended]<<<1, 64>>>(map, maps, matrix, out); };
        const int status = run_fault(argc, argv, out, all ? sizeof results : 64 * sizeof(float), prepare, launch);
        if (status || argc > 3) return status;
        cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost);
        for (unsigned i = 0; i < (all ? n : 64); ++i)
            if (results[i] != float(n + i)) return 4;
        return 0;
    }
    return 2;
}
