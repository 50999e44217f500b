// CUDA arrays: cuArray*, cuMipmappedArray*.
#include "driver/call.h"
#include "driver/formats.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

// The flags have the same values.
static_assert(CUDA_ARRAY3D_LAYERED == cudaArrayLayered && CUDA_ARRAY3D_SURFACE_LDST == cudaArraySurfaceLoadStore);
static_assert(CUDA_ARRAY3D_CUBEMAP == cudaArrayCubemap && CUDA_ARRAY3D_TEXTURE_GATHER == cudaArrayTextureGather);

cudaArray_t same(CUarray array) {
    return reinterpret_cast<cudaArray_t>(array);
}

CUDA_ARRAY3D_DESCRIPTOR description_of(CUarray array) {
    cudaChannelFormatDesc channels;
    cudaExtent extent;
    unsigned flags = 0;
    check(cudaArrayGetInfo(&channels, &extent, &flags, same(array)));
    const ArrayFormat format = format_of(channels);
    return {extent.width, extent.height, extent.depth, format.format, format.channels, flags};
}

}  // namespace

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *p) {
    return call([&] {
        want(array && p);
        const cudaChannelFormatDesc channels = channels_of(p->Format, p->NumChannels);
        return cudaMallocArray(reinterpret_cast<cudaArray_t *>(array), &channels, p->Width, p->Height, 0);
    });
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *p) {
    return call([&] {
        want(array && p);
        const cudaChannelFormatDesc channels = channels_of(p->Format, p->NumChannels);
        return cudaMalloc3DArray(reinterpret_cast<cudaArray_t *>(array), &channels, {p->Width, p->Height, p->Depth},
                                 p->Flags);
    });
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *p, CUarray array) {
    return call([&] {
        want(p);
        const CUDA_ARRAY3D_DESCRIPTOR d = description_of(array);
        *p = {d.Width, d.Height, d.Format, d.NumChannels};
        return CUDA_SUCCESS;
    });
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *p, CUarray array) {
    return call([&] {
        want(p);
        *p = description_of(array);
        return CUDA_SUCCESS;
    });
}

CUresult cuArrayDestroy(CUarray array) {
    return call([&] { return array ? cudaFreeArray(same(array)) : cudaErrorInvalidResourceHandle; });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *p, unsigned levels) {
    return call([&] {
        want(array && p);
        const cudaChannelFormatDesc channels = channels_of(p->Format, p->NumChannels);
        return cudaMallocMipmappedArray(reinterpret_cast<cudaMipmappedArray_t *>(array), &channels,
                                        {p->Width, p->Height, p->Depth}, levels, p->Flags);
    });
}

CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array, unsigned number) {
    return call([&] {
        return cudaGetMipmappedArrayLevel(reinterpret_cast<cudaArray_t *>(level),
                                          reinterpret_cast<cudaMipmappedArray_const_t>(array), number);
    });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    return call([&] { return cudaFreeMipmappedArray(reinterpret_cast<cudaMipmappedArray_t>(array)); });
}
