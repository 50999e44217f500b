// Functions of the driver that make tensor maps.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "core/tensor_map.h"
#include "runtime/cuda_api.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

CUresult refusal(Runtime &runtime, const char *function, CUresult code, const std::string &why) {
    say(std::string(function) + " refuses: " + why);
    runtime.reports.host.refused(function, why);
    return code;
}

// Enumerators as numbers.
CUresult encode(Runtime &runtime, CUtensorMap *to, unsigned type, cuuint32_t rank, void *address,
                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step,
                unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill) {
    const char *const name = "cuTensorMapEncodeTiled";
    const auto invalid = [&](const std::string &why) { return refusal(runtime, name, CUDA_ERROR_INVALID_VALUE, why); };
    const auto missing = [&](const std::string &why) { return refusal(runtime, name, CUDA_ERROR_NOT_SUPPORTED, why); };
    if (runtime.profile.compute < 90)
        return missing(std::string("tensor maps need compute capability 9.0, and ") + runtime.profile.name +
                       " has less");
    if (!to || reinterpret_cast<uintptr_t>(to) % kTensorMapAlignment)
        return invalid("the map's own address is no multiple of 64");
    if (rank == 0 || rank > kMostDimensions)
        return invalid("it has " + std::to_string(rank) + " dimensions, and 1 to 5 are possible");
    if (!size || !box || !step || (rank > 1 && !stride)) return invalid("an array of sizes or strides is null");
    if (type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) return invalid("there is no such element type");
    if (type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B)
        return missing("packed elements of 4 and 6 bits are newer than the simulated device");
    if (interleave > CU_TENSOR_MAP_INTERLEAVE_32B) return invalid("there is no such interleaved layout");
    if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) return invalid("there is no such swizzle");
    if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return missing("swizzles of pieces of 32 and 64 bytes are newer than the simulated device");
    if (promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) return invalid("there is no such L2 promotion");
    if (fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) return invalid("there is no such fill");
    TensorMap map;
    map.address = reinterpret_cast<uint64_t>(address);
    map.dimensions = rank;
    for (unsigned d = 0; d < rank; ++d) {
        map.size[d] = size[d];
        map.stride[d] = d ? stride[d - 1] : 0;
        map.box[d] = box[d];
        map.step[d] = step[d];
    }
    map.type = TensorType(type);
    map.swizzle = TensorSwizzle(swizzle);
    map.fill = TensorFill(fill);
    map.interleave = TensorInterleave(interleave);
    if (const std::string fault = tensor_map_fault(map); !fault.empty()) return invalid(fault);
    encode_tensor_map(map, reinterpret_cast<std::byte *>(to));
    return CUDA_SUCCESS;
}

template <class F>
CUresult driver_api(F body) {
    Runtime *runtime = Runtime::get();
    if (!runtime) return CUDA_ERROR_NOT_INITIALIZED;
    const std::lock_guard guard(runtime->mutex);
    return body(*runtime);
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    return driver_api([&](Runtime &runtime) {
        return encode(runtime, to, number_of(type), rank, address, size, stride, box, step, number_of(interleave),
                      number_of(swizzle), number_of(promotion), number_of(fill));
    });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                 const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,
                                 const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
    const char *const name = "cuTensorMapEncodeIm2col";
    return driver_api([&](Runtime &runtime) {
        return refusal(runtime, name, CUDA_ERROR_NOT_SUPPORTED, "im2col maps are not simulated: only tiled ones are");
    });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
    const char *const name = "cuTensorMapReplaceAddress";
    return driver_api([&](Runtime &runtime) {
        TensorMap decoded;
        if (!map || reinterpret_cast<uintptr_t>(map) % kTensorMapAlignment ||
            !decode_tensor_map(reinterpret_cast<std::byte *>(map), decoded))
            return refusal(runtime, name, CUDA_ERROR_INVALID_VALUE, "there is no tensor map");
        decoded.address = reinterpret_cast<uint64_t>(address);
        if (const std::string fault = tensor_map_fault(decoded); !fault.empty())
            return refusal(runtime, name, CUDA_ERROR_INVALID_VALUE, fault);
        encode_tensor_map(decoded, reinterpret_cast<std::byte *>(map));
        return CUDA_SUCCESS;
    });
}
