// A correct kernel: a producer warp fills a ring of swizzled boxes by TMA, four warps double what is in them, and their
// results go back by TMA stores from two buffers in turn. Ragged edges are filled and clipped. Prints OK.
#include <vector>

#include "../check.h"
#include "../tensor_map.h"

namespace {

constexpr unsigned kRows = 16, kColumns = 32, kStages = 3, kThreads = 128;
constexpr unsigned kBox = kRows * kColumns, kBytes = kBox * sizeof(float);

__device__ float *place(float *box, unsigned row, unsigned column) {
    return box + row * kColumns + ((column / 4 ^ row % 8) * 4 + column % 4);
}

__global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int tiles) {
    extern __shared__ __align__(1024) float memory[];
    float *const in = memory, *const out = memory + kStages * kBox;
    __shared__ uint64_t full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < kStages; ++s) {
            INIT(&full[s], 1);
            INIT(&empty[s], kThreads);
        }
        FENCE_INIT();
    }
    __syncthreads();
    const int first = blockIdx.x * kColumns;
    if (threadIdx.x >= kThreads) {
        if (threadIdx.x > kThreads) return;
        for (int i = 0; i < tiles; ++i) {
            const unsigned s = i % kStages;
            WAIT(&empty[s], (i / kStages & 1) ^ 1);
            ARRIVE_EXPECT(&full[s], kBytes);
            LOAD_BOX(in + s * kBox, &from, first, i * int(kRows), &full[s]);
        }
        return;
    }
    for (int i = 0; i < tiles; ++i) {
        const unsigned s = i % kStages;
        float *const result = out + (i % 2) * kBox;
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
        WAIT(&full[s], i / kStages & 1);
        for (unsigned e = threadIdx.x; e < kBox; e += kThreads)
            *place(result, e / kColumns, e % kColumns) = 2 * *place(in + s * kBox, e / kColumns, e % kColumns);
        ARRIVE(&empty[s]);
        FENCE_PROXY();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (threadIdx.x == 0) {
            STORE_BOX(&to, first, i * int(kRows), result);
            COMMIT();
        }
    }
    if (threadIdx.x == 0) WAIT_GROUP();
}

}  // namespace

int main() {
    constexpr unsigned columns = 88, rows = 100, pitch = 96;
    std::vector<float> host(rows * pitch);
    for (size_t i = 0; i < host.size(); ++i) host[i] = float(i % 1009);
    float *in, *out;
    const size_t bytes = host.size() * sizeof(float);
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    CHECK(cudaMemcpy(in, host.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, bytes));
    const auto swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    const CUtensorMap from = map_of(in, columns, rows, pitch * 4, kColumns, kRows, swizzle);
    const CUtensorMap to = map_of(out, columns, rows, pitch * 4, kColumns, kRows, swizzle);
    constexpr unsigned tiles = (rows + kRows - 1) / kRows, blocks = (columns + kColumns - 1) / kColumns;
    twice<<<blocks, kThreads + 32, (kStages + 2) * kBytes>>>(from, to, tiles);
    std::vector<float> result(host.size());
    CHECK(cudaMemcpy(result.data(), out, bytes, cudaMemcpyDeviceToHost));
    for (unsigned r = 0; r < rows; ++r) {
        for (unsigned c = 0; c < pitch; ++c) {
            const float expected = c < columns ? 2 * host[r * pitch + c] : 0;
            if (result[r * pitch + c] != expected) return std::printf("wrong at %u, %u\n", r, c), 1;
        }
    }
    std::puts("OK");
}
