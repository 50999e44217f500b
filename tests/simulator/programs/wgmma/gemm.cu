// C = A B^T of 512 x 512 x 512, bf16, as Hopper's GEMMs do it: a producer warp fills a ring of swizzled boxes by TMA,
// two warpgroups multiply 64 x 128 each with wgmma. Nothing may be said of it. Prints OK.
//
//     gemm [OFFSET]    bytes that the ring begins behind a multiple of 1,024, a multiple of 128: TMA and wgmma both
//                      swizzle by the address, so that a box is right wherever it lies
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../tensor_map.h"

constexpr int kSize = 512, kTileM = 128, kTileN = 128, kTileK = 64, kStages = 3, kSteps = kSize / kTileK;
constexpr unsigned kBytesA = kTileM * kTileK * 2, kBytesB = kTileN * kTileK * 2;
constexpr unsigned kShared = kStages * (kBytesA + kBytesB) + 2048;

// clang-format off
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define MMA(d, a, b) asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
    "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
    "%62, %63}, %64, %65, 1, 1, 1, 0, 0;" \
    : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56) : "l"(a), "l"(b))
// clang-format on

// Rows of 128 bytes, swizzled; 8 of them are 1,024 bytes.
__device__ inline uint64_t describe(const char *tile) {
    return uint64_t((SHARED(tile) & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

__global__ void __launch_bounds__(288, 1)
    gemm(float *c, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, unsigned offset) {
    extern __shared__ char memory[];
    char *const tiles = memory + (1024 - SHARED(memory) % 1024) % 1024 + offset;
    __shared__ uint64_t full[kStages], empty[kStages];
    const int t = threadIdx.x, row = blockIdx.y * kTileM, column = blockIdx.x * kTileN;
    const auto tile_a = [=](int i) { return tiles + i % kStages * (kBytesA + kBytesB); };
    if (t == 0) {
        for (int s = 0; s < kStages; ++s) {
            INIT(&full[s], 1);
            INIT(&empty[s], 2);
        }
        FENCE_INIT();
    }
    __syncthreads();
    if (t >= 256) {
        for (int i = 0; i < kSteps && t == 256; ++i) {
            const int s = i % kStages;
            WAIT(&empty[s], (i / kStages & 1) ^ 1);
            ARRIVE_EXPECT(&full[s], kBytesA + kBytesB);
            LOAD_BOX(tile_a(i), &a, i * kTileK, row, &full[s]);
            LOAD_BOX(tile_a(i) + kBytesA, &b, i * kTileK, column, &full[s]);
        }
        return;
    }
    const int group = t / 128;
    float d[64] = {};
    for (int i = 0; i < kSteps; ++i) {
        const int s = i % kStages;
        WAIT(&full[s], i / kStages & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < kTileK * 2; k += 32)
            MMA(d, describe(tile_a(i) + group * (kBytesA / 2) + k), describe(tile_a(i) + kBytesA + k));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (t % 128 == 0) ARRIVE(&empty[s]);
    }
    const int lane = t % 32;
    c += size_t(row + t / 32 * 16 + lane / 4) * kSize + column + lane % 4 * 2;
    for (int j = 0; j < 16; ++j)
        for (int e = 0; e < 4; ++e) c[e / 2 * 8 * kSize + j * 8 + e % 2] = d[j * 4 + e];
}

CUtensorMap map_of_tiles(void *matrix, unsigned rows) {
    CUtensorMap map;
    const cuuint64_t size[] = {kSize, kSize}, stride[] = {kSize * 2};
    const cuuint32_t box[] = {kTileK, rows}, step[] = {1, 1};
    if (encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, size, stride, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
        std::exit(1);
    return map;
}

int main(int argc, char **argv) {
    std::vector<int> small[2];
    uint16_t *device[2];
    for (int m = 0; m < 2; ++m) {
        std::vector<uint16_t> bits;
        for (int i = 0; i < kSize * kSize; ++i) {
            small[m].push_back(std::rand() % 17 - 8);
            const float value = float(small[m].back());
            uint32_t word;
            std::memcpy(&word, &value, 4);
            bits.push_back(uint16_t(word >> 16));
        }
        cudaMalloc(&device[m], bits.size() * 2);
        cudaMemcpy(device[m], bits.data(), bits.size() * 2, cudaMemcpyHostToDevice);
    }
    float *c;
    cudaMalloc(&c, kSize * kSize * 4);
    cudaFuncSetAttribute((const void *)gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    gemm<<<dim3(kSize / kTileN, kSize / kTileM), 288, kShared>>>(
        c, map_of_tiles(device[0], kTileM), map_of_tiles(device[1], kTileN), argc > 1 ? std::atoi(argv[1]) : 0);
    std::vector<float> got(kSize * kSize);
    const cudaError_t error = cudaMemcpy(got.data(), c, got.size() * 4, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) return std::printf("%s\n", cudaGetErrorString(error)), 1;
    for (int row = 0; row < kSize; ++row) {
        for (int column = 0; column < kSize; ++column) {
            const int *x = &small[0][row * kSize], *y = &small[1][column * kSize];
            int want = 0;
            for (int k = 0; k < kSize; ++k) want += x[k] * y[k];
            if (got[row * kSize + column] != float(want))
                return std::printf("row %d, column %d: %g, not %d\n", row, column, got[row * kSize + column], want), 1;
        }
    }
    std::printf("OK\n");
}
