#include "driver/formats.h"

namespace warpsim::driver {
namespace {

struct Row {
    CUarray_format format;
    cudaChannelFormatKind kind;
    int bits;
};

constexpr Row kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};

}  // namespace

cudaChannelFormatDesc channels_of(CUarray_format format, unsigned channels) {
    for (const Row &row : kFormats) {
        if (row.format != format) continue;
        want(channels == 1 || channels == 2 || channels == 4);
        const auto bits = [&](unsigned channel) { return channel < channels ? row.bits : 0; };
        return {bits(0), bits(1), bits(2), bits(3), row.kind};
    }
    want(format > 0 && format <= 0xff);
    rt::say(std::string(current_function()) +
            ": formats that are normalized, compressed, planar or packed are not "
            "supported");
    throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
}

ArrayFormat format_of(const cudaChannelFormatDesc &d) {
    const unsigned channels = d.w ? 4 : d.z ? 3 : d.y ? 2 : 1;
    for (const Row &row : kFormats) {
        if (row.kind == d.f && row.bits == d.x) return {row.format, channels};
    }
    throw Refusal{CUDA_ERROR_INVALID_VALUE};
}

cudaMemcpyKind kind_of(CUmemorytype to, CUmemorytype from) {
    if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
    if (to == CU_MEMORYTYPE_HOST) return from == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
    return from == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

}  // namespace warpsim::driver
