#include "tensor_maps.h"

#include <cudaTypedefs.h>  // PFN_cuTensorMapEncodeTiled

#include <algorithm>

#include "launch_backward.h"

namespace flash {
namespace {

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

// The driver's function, by way of the runtime: a stage links with no driver library, so that it also starts where
// there is none.
Encode find_encode() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
        cudaGetLastError();  // reported here: not again at the caller's next check
        return nullptr;
    }
    return reinterpret_cast<Encode>(function);
}

}  // namespace

FlashStatus make_tensor_map(const char *name, const FlashTensor &tensor, const TensorShape &shape, int box_rows,
                            CUtensorMap &map) {
    static const Encode encode = find_encode();
    if (!encode) return fail(FLASH_CUDA_ERROR, "the CUDA driver has no cuTensorMapEncodeTiled: it is too old for TMA");
    const bool narrow = shape.dtype == FLASH_E4M3;
    const cuuint64_t element = narrow ? 1 : 2;  // bytes
    const cuuint64_t panel =
        std::min(128 / element, static_cast<cuuint64_t>(shape.d_head));  // elements swizzled together
    // The stride of a dimension of size 1 says nothing: the caller's may be anything.
    const auto bytes = [&](int size, int64_t stride) { return size == 1 ? panel * element : stride * element; };
    const cuuint64_t sizes[] = {panel, static_cast<cuuint64_t>(shape.rows), shape.d_head / panel,
                                static_cast<cuuint64_t>(shape.heads), static_cast<cuuint64_t>(shape.B)};
    const cuuint64_t strides[] = {bytes(shape.rows, tensor.stride_row), panel * element,
                                  bytes(shape.heads, tensor.stride_head),
                                  bytes(shape.B, tensor.stride_batch)};  // of the dimensions from 1 on, in bytes
    for (const cuuint64_t stride : strides) {
        if (stride >> 40) {
            return fail(FLASH_UNSUPPORTED, "TMA needs strides below 2^40 bytes; one of %s's is %llu bytes", name,
                        static_cast<unsigned long long>(stride));
        }
    }
    const cuuint32_t box[] = {static_cast<cuuint32_t>(panel), static_cast<cuuint32_t>(box_rows),
                              static_cast<cuuint32_t>(shape.d_head / panel), 1, 1};
    const cuuint32_t every[] = {1, 1, 1, 1, 1};
    const CUtensorMapDataType type = narrow                      ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : shape.dtype == FLASH_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                                 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const CUtensorMapSwizzle swizzle = panel * element == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
    const CUtensorMapL2promotion promotion =
        shape.read_once ? CU_TENSOR_MAP_L2_PROMOTION_NONE : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    const CUresult result =
        encode(&map, type, 5, tensor.data, sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
               promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // outside of the tensor: 0
    if (result == CUDA_SUCCESS) return FLASH_OK;
    return fail(FLASH_CUDA_ERROR, "cuTensorMapEncodeTiled refuses the tensor map of %s (CUresult %d)", name,
                static_cast<int>(result));
}

FlashStatus make_tensor_maps(const FlashParams &params, int Q_rows, int KV_rows, TensorMaps &maps) {
    const TensorShape Q{params.B, params.Hq, params.Nq, params.d_head, params.dtype};
    const TensorShape KV{params.B, params.Hkv, params.Nkv, params.d_head, params.dtype};
    const TensorShape O{params.B, params.Hq, params.Nq, params.d_head,
                        params.dtype == FLASH_E4M3 ? int{FLASH_BF16} : params.dtype};
    FlashStatus status = make_tensor_map("Q", params.Q, Q, Q_rows, maps.Q);
    if (status == FLASH_OK) status = make_tensor_map("K", params.K, KV, KV_rows, maps.K);
    if (status == FLASH_OK) status = make_tensor_map("V", params.V, KV, KV_rows, maps.V);
    if (status == FLASH_OK) status = make_tensor_map("O", params.O, O, O_box_rows, maps.O);
    return status;
}

}  // namespace flash
