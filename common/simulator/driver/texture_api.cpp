// CUDA arrays, texture and surface objects: cuArray*, cuMipmappedArray*, cuTexObject*, cuSurfObject*.
#include <algorithm>

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

namespace {

static_assert(int(CU_RESOURCE_TYPE_PITCH2D) == int(cudaResourceTypePitch2D));
static_assert(int(CU_TR_ADDRESS_MODE_BORDER) == int(cudaAddressModeBorder));
static_assert(int(CU_TR_FILTER_MODE_LINEAR) == int(cudaFilterModeLinear));

cudaResourceDesc same(const CUDA_RESOURCE_DESC *p) {
    want(p && !p->flags);
    cudaResourceDesc resource{};
    resource.resType = static_cast<cudaResourceType>(p->resType);
    switch (p->resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            resource.res.array.array = reinterpret_cast<cudaArray_t>(p->res.array.hArray);
            return resource;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            resource.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(p->res.mipmap.hMipmappedArray);
            return resource;
        case CU_RESOURCE_TYPE_LINEAR:
            resource.res.linear.devPtr = reinterpret_cast<void *>(p->res.linear.devPtr);
            resource.res.linear.desc = channels_of(p->res.linear.format, p->res.linear.numChannels);
            resource.res.linear.sizeInBytes = p->res.linear.sizeInBytes;
            return resource;
        case CU_RESOURCE_TYPE_PITCH2D:
            resource.res.pitch2D.devPtr = reinterpret_cast<void *>(p->res.pitch2D.devPtr);
            resource.res.pitch2D.desc = channels_of(p->res.pitch2D.format, p->res.pitch2D.numChannels);
            resource.res.pitch2D.width = p->res.pitch2D.width;
            resource.res.pitch2D.height = p->res.pitch2D.height;
            resource.res.pitch2D.pitchInBytes = p->res.pitch2D.pitchInBytes;
            return resource;
        default:
            throw Refusal{CUDA_ERROR_INVALID_VALUE};
    }
}

CUDA_RESOURCE_DESC same(const cudaResourceDesc &p) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = static_cast<CUresourcetype>(p.resType);
    if (p.resType == cudaResourceTypeArray) {
        resource.res.array.hArray = reinterpret_cast<CUarray>(p.res.array.array);
    } else if (p.resType == cudaResourceTypeMipmappedArray) {
        resource.res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(p.res.mipmap.mipmap);
    } else if (p.resType == cudaResourceTypeLinear) {
        const ArrayFormat format = format_of(p.res.linear.desc);
        resource.res.linear.devPtr = reinterpret_cast<CUdeviceptr>(p.res.linear.devPtr);
        resource.res.linear.format = format.format;
        resource.res.linear.numChannels = format.channels;
        resource.res.linear.sizeInBytes = p.res.linear.sizeInBytes;
    } else {
        const ArrayFormat format = format_of(p.res.pitch2D.desc);
        resource.res.pitch2D.devPtr = reinterpret_cast<CUdeviceptr>(p.res.pitch2D.devPtr);
        resource.res.pitch2D.format = format.format;
        resource.res.pitch2D.numChannels = format.channels;
        resource.res.pitch2D.width = p.res.pitch2D.width;
        resource.res.pitch2D.height = p.res.pitch2D.height;
        resource.res.pitch2D.pitchInBytes = p.res.pitch2D.pitchInBytes;
    }
    return resource;
}

cudaChannelFormatDesc channels_of(const cudaResourceDesc &resource) {
    cudaChannelFormatDesc channels{};
    cudaArray_t array = resource.res.array.array;
    switch (resource.resType) {
        case cudaResourceTypeMipmappedArray:
            check(cudaGetMipmappedArrayLevel(&array, resource.res.mipmap.mipmap, 0));
            [[fallthrough]];
        case cudaResourceTypeArray:
            check(cudaGetChannelDesc(&channels, array));
            return channels;
        case cudaResourceTypeLinear:
            return resource.res.linear.desc;
        default:
            return resource.res.pitch2D.desc;
    }
}

cudaTextureDesc same(const CUDA_TEXTURE_DESC *p, const cudaResourceDesc &resource) {
    want(p);
    cudaTextureDesc texture{};
    for (int i = 0; i < 3; ++i) texture.addressMode[i] = static_cast<cudaTextureAddressMode>(p->addressMode[i]);
    texture.filterMode = static_cast<cudaTextureFilterMode>(p->filterMode);
    // Integers of 8 and 16 bits are read as fractions unless the flag is set, those of 32 bits never.
    const cudaChannelFormatDesc channels = channels_of(resource);
    const bool fractions =
        channels.f != cudaChannelFormatKindFloat && channels.x < 32 && !(p->flags & CU_TRSF_READ_AS_INTEGER);
    texture.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    texture.sRGB = (p->flags & CU_TRSF_SRGB) != 0;
    std::copy(std::begin(p->borderColor), std::end(p->borderColor), texture.borderColor);
    texture.normalizedCoords = (p->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    texture.maxAnisotropy = p->maxAnisotropy;
    texture.mipmapFilterMode = static_cast<cudaTextureFilterMode>(p->mipmapFilterMode);
    texture.mipmapLevelBias = p->mipmapLevelBias;
    texture.minMipmapLevelClamp = p->minMipmapLevelClamp;
    texture.maxMipmapLevelClamp = p->maxMipmapLevelClamp;
    texture.disableTrilinearOptimization = (p->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    texture.seamlessCubemap = (p->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    return texture;
}

CUDA_TEXTURE_DESC same(const cudaTextureDesc &p) {
    CUDA_TEXTURE_DESC texture{};
    for (int i = 0; i < 3; ++i) texture.addressMode[i] = static_cast<CUaddress_mode>(p.addressMode[i]);
    texture.filterMode = static_cast<CUfilter_mode>(p.filterMode);
    if (p.readMode == cudaReadModeElementType) texture.flags |= CU_TRSF_READ_AS_INTEGER;
    if (p.normalizedCoords) texture.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (p.sRGB) texture.flags |= CU_TRSF_SRGB;
    if (p.disableTrilinearOptimization) texture.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    std::copy(std::begin(p.borderColor), std::end(p.borderColor), texture.borderColor);
    texture.maxAnisotropy = p.maxAnisotropy;
    texture.mipmapFilterMode = static_cast<CUfilter_mode>(p.mipmapFilterMode);
    texture.mipmapLevelBias = p.mipmapLevelBias;
    texture.minMipmapLevelClamp = p.minMipmapLevelClamp;
    texture.maxMipmapLevelClamp = p.maxMipmapLevelClamp;
    return texture;
}

// `get` is the runtime's function.
template <class Description, class Found>
CUresult get_description(Description *result, cudaError_t (*get)(Found *, unsigned long long),
                         unsigned long long object, const char *function) {
    return call(
        [&] {
            want(result);
            Found found{};
            check(get(&found, object));
            *result = same(found);
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                           const CUDA_RESOURCE_VIEW_DESC *view) {
    return call([&] {
        want(object);
        if (view) {
            rt::say("cuTexObjectCreate: resource views are not supported");
            return cudaErrorNotSupported;
        }
        const cudaResourceDesc same_resource = same(resource);
        const cudaTextureDesc same_texture = same(texture, same_resource);
        return cudaCreateTextureObject(object, &same_resource, &same_texture, nullptr);
    });
}

CUresult cuTexObjectDestroy(CUtexObject object) {
    return call([&] { return cudaDestroyTextureObject(object); });
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject object) {
    return get_description(resource, cudaGetTextureObjectResourceDesc, object, __func__);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *texture, CUtexObject object) {
    return get_description(texture, cudaGetTextureObjectTextureDesc, object, __func__);
}

CUresult cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource) {
    return call([&] {
        want(object);
        const cudaResourceDesc same_resource = same(resource);
        return cudaCreateSurfaceObject(object, &same_resource);
    });
}

CUresult cuSurfObjectDestroy(CUsurfObject object) {
    return call([&] { return cudaDestroySurfaceObject(object); });
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject object) {
    return get_description(resource, cudaGetSurfaceObjectResourceDesc, object, __func__);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *texels, CUarray_format format, unsigned channels, CUdevice device) {
    return call(
        [&] {
            const cudaChannelFormatDesc same_channels = driver::channels_of(format, channels);
            return cudaDeviceGetTexture1DLinearMaxWidth(texels, &same_channels, device);
        },
        Needs::driver);
}
