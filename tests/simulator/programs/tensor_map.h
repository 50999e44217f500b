// Tensor maps and their copies, for the programs here.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "mbarrier.h"

// clang-format off
#define LOAD_BOX(to, map, x, y, bar) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(SHARED(to)), "l"(map), "r"(x), "r"(y), "r"(SHARED(bar)) : "memory")
#define STORE_BOX(map, x, y, from) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(SHARED(from)) : "memory")
// clang-format on

// cuTensorMapEncodeTiled, as a program without the driver's library finds it.
inline decltype(&cuTensorMapEncodeTiled) encoder() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult status;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &status) ||
        status != cudaDriverEntryPointSuccess) {
        std::printf("there is no cuTensorMapEncodeTiled\n");
        std::exit(1);
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

// A map of a matrix of floats: rows of `pitch` bytes.
inline CUtensorMap map_of(float *matrix, unsigned columns, unsigned rows, unsigned pitch, unsigned box_columns,
                          unsigned box_rows, CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
    static CUtensorMap map;  // g++ 12 has placed a local one at no multiple of 64
    const cuuint64_t size[] = {columns, rows}, stride[] = {pitch};
    const cuuint32_t box[] = {box_columns, box_rows}, step[] = {1, 1};
    if (encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, size, stride, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
        std::printf("the tensor map was refused\n");
        std::exit(1);
    }
    return map;
}
