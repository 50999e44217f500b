// Texture and surface objects.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "instructions/arithmetic/numbers.h"
#include "runtime/arrays.h"
#include "runtime/copy.h"
#include "runtime/cuda_api.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

// A channel of the border as tex returns it: borderColor (its bits) as the texels' own format holds it, as an H200
// shows.
uint32_t border_channel(const TexelFormat &format, bool returns_floats, uint32_t bits) {
    using Kind = TexelFormat::Kind;
    const bool is_signed = format.kind == Kind::signed_integer || format.kind == Kind::snorm;
    const float colour = std::bit_cast<float>(bits);
    if (format.channel_bytes == 4) return bits;
    if (format.kind == Kind::floating) return std::bit_cast<uint32_t>(f16_to_float(float_to_f16(colour)));
    if (returns_floats) {
        const float greatest = static_cast<float>((1 << (8 * format.channel_bytes - (is_signed ? 1 : 0))) - 1);
        const float least = is_signed ? -1.0f : 0.0f;
        const float inside = colour > least ? std::min(colour, 1.0f) : least;  // NaN: the least
        return std::bit_cast<uint32_t>(std::ceil(inside * greatest - 0.5f) / greatest);
    }
    if (format.channel_bytes == 1) return is_signed ? static_cast<uint32_t>(static_cast<int8_t>(bits)) : bits & 0xff;
    return is_signed ? static_cast<uint32_t>(static_cast<int16_t>(bits)) : bits & 0xffff;
}

// Linear and pitched memory: `rows` of `width` texels.
void take_memory(Runtime &runtime, const char *name, TextureObject &object, const void *pointer, uint64_t width,
                 uint64_t rows, uint64_t pitch) {
    const uint64_t address = address_of(pointer);
    if (!runtime.memory->find(address))
        refuse(name, cudaErrorInvalidValue, "the memory is " + runtime.memory->explain(address, 1));
    if (address % kTextureAlignment)
        refuse(name, cudaErrorInvalidValue,
               "the memory begins " + std::to_string(address % kTextureAlignment) + " bytes past a multiple of " +
                   std::to_string(kTextureAlignment) + " (cudaDeviceProp::textureAlignment)");
    object.levels = {{address, width, rows, 1, pitch, pitch * rows}};
}

void take_resource(Runtime &runtime, const char *name, TextureObject &object, const cudaResourceDesc &resource,
                   bool normalized) {
    const auto take_array = [&](const DeviceArray &array) {
        object.format = array.format;
        object.geometry = array.geometry;
        object.levels = array.levels;
        object.storage = array.storage;
        object.gather = array.flags & cudaArrayTextureGather;
    };
    switch (number_of(resource.resType)) {
        case cudaResourceTypeArray:
            return take_array(runtime.arrays.find(name, resource.res.array.array));
        case cudaResourceTypeMipmappedArray:
            if (!normalized) refuse(name, cudaErrorInvalidValue, "a mipmapped array wants normalizedCoords");
            return take_array(runtime.arrays.find(name, resource.res.mipmap.mipmap));
        case cudaResourceTypeLinear: {
            const auto &linear = resource.res.linear;
            object.format = format_of(name, linear.desc);
            const uint64_t texels = linear.sizeInBytes / object.format.bytes();
            if (texels > kLinearTexels)
                refuse(name, cudaErrorInvalidValue, std::to_string(texels) + " texels of linear memory are too many");
            object.linear_memory = true;
            return take_memory(runtime, name, object, linear.devPtr, texels, 1, linear.sizeInBytes);
        }
        case cudaResourceTypePitch2D: {
            const auto &pitched = resource.res.pitch2D;
            object.format = format_of(name, pitched.desc);
            object.geometry = TextureGeometry::d2;
            if (!pitched.width || !pitched.height || pitched.width > kPitchedWidth || pitched.height > kPitchedHeight ||
                pitched.pitchInBytes > kPitchedBytes)
                refuse(name, cudaErrorInvalidValue,
                       std::to_string(pitched.width) + " x " + std::to_string(pitched.height) +
                           " texels of pitched memory, " + std::to_string(pitched.pitchInBytes) + " bytes a row");
            if (pitched.pitchInBytes % kTexturePitchAlignment ||
                pitched.pitchInBytes < pitched.width * object.format.bytes())
                refuse(name, cudaErrorInvalidValue,
                       "a pitch of " + std::to_string(pitched.pitchInBytes) +
                           " bytes: it must hold a row and be a "
                           "multiple of " +
                           std::to_string(kTexturePitchAlignment) + " (cudaDeviceProp::texturePitchAlignment)");
            return take_memory(runtime, name, object, pitched.devPtr, pitched.width, pitched.height,
                               pitched.pitchInBytes);
        }
        default:
            throw Failure{cudaErrorInvalidValue};
    }
}

void take_sampling(const char *name, TextureObject &object, const cudaTextureDesc &d) {
    using Kind = TexelFormat::Kind;
    const TexelFormat &format = object.format;
    for (unsigned k = 0; k < 3; ++k) {
        if (number_of(d.addressMode[k]) > cudaAddressModeBorder)
            refuse(name, cudaErrorInvalidValue, "unknown address mode");
        object.address_mode[k] = static_cast<AddressMode>(d.addressMode[k]);
        object.border[k] = std::bit_cast<uint32_t>(d.borderColor[k]);
    }
    object.border[3] = std::bit_cast<uint32_t>(d.borderColor[3]);
    if (number_of(d.filterMode) > cudaFilterModeLinear || number_of(d.mipmapFilterMode) > cudaFilterModeLinear ||
        number_of(d.readMode) > cudaReadModeNormalizedFloat)
        refuse(name, cudaErrorInvalidValue, "unknown filter or read mode");
    const bool integer = format.kind == Kind::signed_integer || format.kind == Kind::unsigned_integer;
    if (d.readMode == cudaReadModeNormalizedFloat && (!integer || format.channel_bytes == 4))
        refuse(name, cudaErrorInvalidNormSetting, "cudaReadModeNormalizedFloat reads integers of 8 and of 16 bits");
    object.returns_floats = !integer || (d.readMode == cudaReadModeNormalizedFloat && format.channel_bytes < 4);
    for (uint32_t &channel : object.border) channel = border_channel(format, object.returns_floats, channel);
    object.filter = d.filterMode == cudaFilterModeLinear && !object.linear_memory;
    object.filter_levels = d.mipmapFilterMode == cudaFilterModeLinear && object.levels.size() > 1;
    if ((object.filter || object.filter_levels) && !object.returns_floats)
        refuse(name, cudaErrorInvalidFilterSetting,
               std::string("a linear filter needs texels that are read as floats; these are integers of ") +
                   std::to_string(8 * format.channel_bytes) + " bits" +
                   (format.channel_bytes < 4 ? " (cudaReadModeNormalizedFloat reads them so)" : ""));
    if (d.seamlessCubemap) refuse(name, cudaErrorNotSupported, "seamlessCubemap is not supported");
    object.normalized_coordinates = d.normalizedCoords;
    object.srgb = d.sRGB;
    object.level_bias = d.mipmapLevelBias;
    object.least_level = d.minMipmapLevelClamp;
    object.greatest_level = d.maxMipmapLevelClamp;
}

// What a handle's object was made from. Throws Failure.
template <class Objects>
const auto &find_object(const Objects &objects, typename Objects::key_type handle) {
    const auto found = objects.find(handle);
    if (found == objects.end()) throw Failure{cudaErrorInvalidValue};
    return found->second;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *result, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *texture, const cudaResourceViewDesc *view) {
    constexpr const char *kName = "cudaCreateTextureObject";
    return api([&](Runtime &runtime) {
        if (!result || !resource || !texture) return cudaErrorInvalidValue;
        if (view) refuse(kName, cudaErrorNotSupported, "resource views are not supported");
        TextureObject object;
        take_resource(runtime, kName, object, *resource, texture->normalizedCoords);
        take_sampling(kName, object, *texture);
        *result = runtime.memory->images.add(std::move(object));
        runtime.arrays.textures[*result] = {*resource, *texture};
        return cudaSuccess;
    });
}

// Does not wait: a kernel that has not run yet will not find the object.
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) {
    return api([&](Runtime &runtime) {
        runtime.arrays.textures.erase(handle);
        return runtime.memory->images.remove_texture(handle) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, cudaTextureObject_t handle) {
    return api([&](Runtime &runtime) {
        if (!resource) return cudaErrorInvalidValue;
        *resource = find_object(runtime.arrays.textures, handle).resource;
        return cudaSuccess;
    });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *texture, cudaTextureObject_t handle) {
    return api([&](Runtime &runtime) {
        if (!texture) return cudaErrorInvalidValue;
        *texture = find_object(runtime.arrays.textures, handle).texture;
        return cudaSuccess;
    });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *result, const cudaResourceDesc *resource) {
    constexpr const char *kName = "cudaCreateSurfaceObject";
    return api([&](Runtime &runtime) {
        if (!result || !resource) return cudaErrorInvalidValue;
        if (number_of(resource->resType) != cudaResourceTypeArray)
            refuse(kName, cudaErrorInvalidValue, "a surface object is made of a CUDA array");
        const DeviceArray &array = runtime.arrays.find(kName, resource->res.array.array);
        if (!(array.flags & cudaArraySurfaceLoadStore))
            refuse(kName, cudaErrorInvalidValue, "the array was made without cudaArraySurfaceLoadStore");
        SurfaceObject object{array.format, array.geometry, array.levels[0], array.storage};
        if (object.geometry == TextureGeometry::cube || object.geometry == TextureGeometry::acube)
            object.geometry = TextureGeometry::a2d;
        *result = runtime.memory->images.add(std::move(object));
        runtime.arrays.surfaces[*result] = *resource;
        return cudaSuccess;
    });
}

// As cudaDestroyTextureObject.
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) {
    return api([&](Runtime &runtime) {
        runtime.arrays.surfaces.erase(handle);
        return runtime.memory->images.remove_surface(handle) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource, cudaSurfaceObject_t handle) {
    return api([&](Runtime &runtime) {
        if (!resource) return cudaErrorInvalidValue;
        *resource = find_object(runtime.arrays.surfaces, handle);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *texels, const cudaChannelFormatDesc *channels, int device) {
    return api([&](Runtime &runtime) {
        if (!texels || !channels) return cudaErrorInvalidValue;
        if (!runtime.devices->has(device)) return cudaErrorInvalidDevice;
        format_of("cudaDeviceGetTexture1DLinearMaxWidth", *channels);
        *texels = kLinearTexels;
        return cudaSuccess;
    });
}
