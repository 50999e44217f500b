// Copies boxes of tensors, each as a record of a file says, and writes what came of it.
//
//     boxes CASES RESULTS
//
// A case: the numbers of `Case`, then the tensor's memory, then what shared memory holds before. Its result: the offset
// of that piece of shared memory, then the tensor's memory and shared memory after.
#include <cstring>
#include <vector>

#include "../check.h"
#include "../tensor_map.h"

struct Case {
    int64_t operation;  // 0 load, 1 store, 2 add, 3 min, 4 max, 5 and, 6 or, 7 xor, 8 inc, 9 dec
    int64_t type, dimensions, swizzle, fill, interleave;
    int64_t size[5], stride[5], box[5], step[5], at[5];  // stride[0] is not used
    int64_t address;                                     // bytes into the tensor's memory
    int64_t offset;                                      // of the box, in the piece of shared memory
    int64_t tensor_bytes, shared_bytes, box_bytes;
};

struct Places {
    int at[5];
};

#define LOAD_TILE(N, COORDINATES, ...)                                                                \
    asm volatile("cp.async.bulk.tensor." N                                                            \
                 ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" COORDINATES \
                 "}], [%2];" ::"r"(SHARED(box)),                                                      \
                 "l"(map), "r"(SHARED(&bar)), __VA_ARGS__                                             \
                 : "memory")
#define STORE_TILE(INSTRUCTION, COORDINATES, ...)                                                                   \
    asm volatile(INSTRUCTION ".bulk_group [%0, {" COORDINATES "}], [%1];" ::"l"(map), "r"(SHARED(box)), __VA_ARGS__ \
                 : "memory")
#define STORE_OF(OPCODE, END)                                                                                         \
    do {                                                                                                              \
        if (dimensions == 1) STORE_TILE(OPCODE ".async.bulk.tensor.1d.global.shared::cta" END, "%2", "r"(c[0]));      \
        if (dimensions == 2)                                                                                          \
            STORE_TILE(OPCODE ".async.bulk.tensor.2d.global.shared::cta" END, "%2, %3", "r"(c[0]), "r"(c[1]));        \
        if (dimensions == 3)                                                                                          \
            STORE_TILE(OPCODE ".async.bulk.tensor.3d.global.shared::cta" END, "%2, %3, %4", "r"(c[0]), "r"(c[1]),     \
                       "r"(c[2]));                                                                                    \
        if (dimensions == 4)                                                                                          \
            STORE_TILE(OPCODE ".async.bulk.tensor.4d.global.shared::cta" END, "%2, %3, %4, %5", "r"(c[0]), "r"(c[1]), \
                       "r"(c[2]), "r"(c[3]));                                                                         \
        if (dimensions == 5)                                                                                          \
            STORE_TILE(OPCODE ".async.bulk.tensor.5d.global.shared::cta" END, "%2, %3, %4, %5, %6", "r"(c[0]),        \
                       "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]));                                                   \
    } while (0)

__device__ void load(unsigned char *box, const CUtensorMap *map, uint64_t &bar, int dimensions, const int *c) {
    if (dimensions == 1) LOAD_TILE("1d", "%3", "r"(c[0]));
    if (dimensions == 2) LOAD_TILE("2d", "%3, %4", "r"(c[0]), "r"(c[1]));
    if (dimensions == 3) LOAD_TILE("3d", "%3, %4, %5", "r"(c[0]), "r"(c[1]), "r"(c[2]));
    if (dimensions == 4) LOAD_TILE("4d", "%3, %4, %5, %6", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    if (dimensions == 5) LOAD_TILE("5d", "%3, %4, %5, %6, %7", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]));
}

__device__ void store(unsigned char *box, const CUtensorMap *map, int dimensions, const int *c, int operation) {
    switch (operation) {
        case 1:
            STORE_OF("cp", ".tile");
            break;
        case 2:
            STORE_OF("cp.reduce", ".add.tile");
            break;
        case 3:
            STORE_OF("cp.reduce", ".min.tile");
            break;
        case 4:
            STORE_OF("cp.reduce", ".max.tile");
            break;
        case 5:
            STORE_OF("cp.reduce", ".and.tile");
            break;
        case 6:
            STORE_OF("cp.reduce", ".or.tile");
            break;
        case 7:
            STORE_OF("cp.reduce", ".xor.tile");
            break;
        case 8:
            STORE_OF("cp.reduce", ".inc.tile");
            break;
        case 9:
            STORE_OF("cp.reduce", ".dec.tile");
            break;
    }
}

extern __shared__ __align__(1024) unsigned char piece[];

__global__ void copy(const __grid_constant__ CUtensorMap map, Places at, int dimensions, int operation, int offset,
                     int box_bytes, unsigned char *before, int shared_bytes, int64_t *place) {
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        INIT(&bar, 1);
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
        *place = SHARED(piece);
    }
    for (int i = threadIdx.x; i < shared_bytes; i += blockDim.x) piece[i] = before[i];
    FENCE_PROXY();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (operation == 0) {
            ARRIVE_EXPECT(&bar, box_bytes);
            load(piece + offset, &map, bar, dimensions, at.at);
        } else {
            store(piece + offset, &map, dimensions, at.at, operation);
            COMMIT();
            WAIT_GROUP();
        }
    }
    if (operation == 0) WAIT(&bar, 0);
    for (int i = threadIdx.x; i < shared_bytes; i += blockDim.x) before[i] = piece[i];
}

int main(int argc, char **argv) {
    std::FILE *in = std::fopen(argv[1], "rb"), *out = std::fopen(argv[2], "wb");
    const auto encode = encoder();
    CHECK(cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
    int64_t *place;
    CHECK(cudaMalloc(&place, 8));
    int number = 0;
    for (Case c; std::fread(&c, sizeof c, 1, in) == 1; ++number) {
        std::vector<unsigned char> tensor(c.tensor_bytes), shared(c.shared_bytes);
        if (std::fread(tensor.data(), 1, tensor.size(), in) != tensor.size()) return 1;
        if (std::fread(shared.data(), 1, shared.size(), in) != shared.size()) return 1;
        unsigned char *on_device, *before;
        CHECK(cudaMalloc(&on_device, tensor.size()));
        CHECK(cudaMalloc(&before, shared.size()));
        CHECK(cudaMemcpy(on_device, tensor.data(), tensor.size(), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(before, shared.data(), shared.size(), cudaMemcpyHostToDevice));
        CUtensorMap map;
        cuuint64_t size[5], stride[5];
        cuuint32_t box[5], step[5];
        Places at;
        for (int d = 0; d < 5; ++d) {
            size[d] = c.size[d];
            if (d) stride[d - 1] = c.stride[d];
            box[d] = c.box[d];
            step[d] = c.step[d];
            at.at[d] = int(c.at[d]);
        }
        const CUresult error =
            encode(&map, CUtensorMapDataType(c.type), cuuint32_t(c.dimensions), on_device + c.address, size, stride,
                   box, step, CUtensorMapInterleave(c.interleave), CUtensorMapSwizzle(c.swizzle),
                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CUtensorMapFloatOOBfill(c.fill));
        if (error) {
            std::printf("case %d: error %d\n", number, error);
            return 1;
        }
        copy<<<1, 96, c.shared_bytes>>>(map, at, int(c.dimensions), int(c.operation), int(c.offset), int(c.box_bytes),
                                        before, int(c.shared_bytes), place);
        CHECK(cudaDeviceSynchronize());
        int64_t where;
        CHECK(cudaMemcpy(&where, place, 8, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(tensor.data(), on_device, tensor.size(), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(shared.data(), before, shared.size(), cudaMemcpyDeviceToHost));
        std::fwrite(&where, 8, 1, out);
        std::fwrite(tensor.data(), 1, tensor.size(), out);
        std::fwrite(shared.data(), 1, shared.size(), out);
        CHECK(cudaFree(on_device));
        CHECK(cudaFree(before));
    }
    std::fclose(out);
    std::printf("%d cases\n", number);
}
