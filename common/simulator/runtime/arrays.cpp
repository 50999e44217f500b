#include "runtime/arrays.h"

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/runtime.h"

namespace warpsim::rt {

void refuse(const char *name, cudaError_t code, const std::string &why) {
    say(std::string(name) + ": " + why);
    throw Failure{code};
}

namespace {

constexpr unsigned kKnownFlags =
    cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather;

std::string text_of(const cudaExtent &e) {
    return std::to_string(e.width) + " x " + std::to_string(e.height) + " x " + std::to_string(e.depth);
}

// What width, height, depth and flags make; throws Failure where they fit no array.
TextureGeometry geometry_of(const char *name, const cudaExtent &e, unsigned flags, bool mipmapped) {
    const bool layered = flags & cudaArrayLayered;
    const auto fits = [&](size_t width, size_t height, size_t depth) {
        return e.width <= width && e.height <= height && e.depth <= depth;
    };
    const auto check = [&](bool good, const char *what) {
        if (!good) refuse(name, cudaErrorInvalidValue, "no " + std::string(what) + " can be " + text_of(e));
    };
    if (flags & ~kKnownFlags) {
        const bool sparse = flags & (cudaArraySparse | cudaArrayDeferredMapping);
        if (sparse) refuse(name, cudaErrorNotSupported, "sparse and deferred arrays are not supported");
        refuse(name, cudaErrorInvalidValue, "unknown flags");
    }
    check(e.width > 0, "array");
    if (flags & cudaArrayCubemap) {
        check(e.width == e.height && (layered ? e.depth > 0 && e.depth % 6 == 0 : e.depth == 6) &&
                  fits(kCubemap, kCubemap, kCubemapLayers * 6),
              layered ? "array of cubemaps" : "cubemap");
        return layered ? TextureGeometry::acube : TextureGeometry::cube;
    }
    if (layered) {
        check(e.depth > 0 && fits(kImage1DLayered, kImage2DSmall, kLayers), "layered array");
        return e.height ? TextureGeometry::a2d : TextureGeometry::a1d;
    }
    if (!e.height) {
        check(!e.depth && fits(mipmapped ? kImage1DMipmap : kImage1D, 0, 0), "1D array");
        return TextureGeometry::d1;
    }
    if (!e.depth) {
        const bool small = mipmapped || flags & cudaArrayTextureGather;
        check(small ? fits(kImage2DSmall, kImage2DSmall, 0) : fits(kImage2DWidth, kImage2DHeight, 0), "2D array");
        return TextureGeometry::d2;
    }
    check(fits(kImage3D, kImage3D, kImage3D), "3D array");
    return TextureGeometry::d3;
}

// The levels side by side; returns the bytes of all.
uint64_t lay_out(DeviceArray &array, unsigned levels) {
    uint64_t end = 0;
    const bool deep = array.geometry == TextureGeometry::d3;
    for (unsigned k = 0; k < levels; ++k) {
        Image image;
        image.address = end;
        image.width = std::max<uint64_t>(array.extent.width >> k, 1);
        image.height = std::max<uint64_t>(array.extent.height >> k, 1);
        image.depth = std::max<uint64_t>(deep ? array.extent.depth >> k : array.extent.depth, 1);
        image.pitch = image.width * array.format.bytes();
        image.slice = image.pitch * image.height;
        end = (end + image.slice * image.depth + 15) / 16 * 16;
        array.levels.push_back(image);
    }
    return end;
}

}  // namespace

TexelFormat format_of(const char *name, const cudaChannelFormatDesc &d) {
    using Kind = TexelFormat::Kind;
    TexelFormat format;
    if (d.f >= cudaChannelFormatKindUnsignedNormalized8X1 && d.f <= cudaChannelFormatKindSignedNormalized16X4) {
        // Two signs, two sizes, three numbers of channels, in this order.
        const int number = d.f - cudaChannelFormatKindUnsignedNormalized8X1;
        format.kind = number < 6 ? Kind::unorm : Kind::snorm;
        format.channel_bytes = number / 3 % 2 ? 2 : 1;
        format.channels = static_cast<uint8_t>(1 << number % 3);
        return format;
    }
    if (d.f > cudaChannelFormatKindNone)
        refuse(name, cudaErrorNotSupported, "compressed, planar and packed formats of texels are not supported");
    const int bits[] = {d.x, d.y, d.z, d.w};
    int channels = 0;
    while (channels < 4 && bits[channels]) ++channels;
    const bool same = std::all_of(bits, bits + channels, [&](int b) { return b == d.x; }) &&
                      std::all_of(bits + channels, bits + 4, [](int b) { return b == 0; });
    const bool wide = d.x == 16 || d.x == 32;
    const bool known =
        d.f == cudaChannelFormatKindFloat ? wide : d.f != cudaChannelFormatKindNone && (wide || d.x == 8);
    if (!same || !known || channels == 3)
        refuse(name, cudaErrorInvalidChannelDescriptor,
               "1, 2 or 4 channels of 8, 16 or 32 bits are needed (floats: 16 or 32), not (" + std::to_string(d.x) +
                   ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ", " + std::to_string(d.w) + ")");
    format.kind = d.f == cudaChannelFormatKindFloat    ? Kind::floating
                  : d.f == cudaChannelFormatKindSigned ? Kind::signed_integer
                                                       : Kind::unsigned_integer;
    format.channel_bytes = static_cast<uint8_t>(d.x / 8);
    format.channels = static_cast<uint8_t>(channels);
    return format;
}

DeviceArray &Arrays::make(Runtime &runtime, const char *name, const cudaChannelFormatDesc *channels,
                          const cudaExtent &extent, unsigned flags, unsigned levels) {
    if (!channels) throw Failure{cudaErrorInvalidValue};
    auto array = std::make_unique<DeviceArray>();
    array->channels = *channels;
    array->extent = extent;
    array->flags = flags;
    array->mipmapped = levels > 0;
    array->format = format_of(name, *channels);
    array->geometry = geometry_of(name, extent, flags, array->mipmapped);
    if (flags & cudaArrayTextureGather && array->geometry != TextureGeometry::d2)
        refuse(name, cudaErrorInvalidValue, "cudaArrayTextureGather is for 2D arrays");
    const size_t longest =
        std::max({extent.width, extent.height, array->geometry == TextureGeometry::d3 ? extent.depth : 1});
    const uint64_t bytes = lay_out(*array, std::clamp(levels, 1u, static_cast<unsigned>(std::bit_width(longest))));
    const uint64_t address = runtime.current_memory().allocate(bytes, MemoryKind::device);
    if (!address) {
        say_out_of_memory(runtime, bytes);
        throw Failure{cudaErrorMemoryAllocation};
    }
    for (Image &image : array->levels) image.address += address;
    array->storage = std::make_shared<ArrayStorage>(ArrayStorage{address});
    DeviceArray &made = *array;
    arrays_[&made] = std::move(array);
    return made;
}

DeviceArray &Arrays::level(DeviceArray &from, unsigned level) {
    if (level >= from.levels.size()) throw Failure{cudaErrorInvalidValue};
    DeviceArray *&handle = from.handles[level];
    if (!handle) {
        auto array = std::make_unique<DeviceArray>(from);
        array->mipmapped = false;
        array->is_level = true;
        array->handles.clear();
        array->levels = {from.levels[level]};
        const Image &image = array->levels[0];
        const auto size = [](uint64_t texels) { return static_cast<size_t>(texels); };
        array->extent = {size(image.width), size(from.extent.height ? image.height : 0),
                         size(from.extent.depth ? image.depth : 0)};
        handle = array.get();
        arrays_[handle] = std::move(array);
    }
    return *handle;
}

DeviceArray &Arrays::find(const char *name, const void *handle, bool mipmapped) const {
    const auto found = arrays_.find(handle);
    if (found == arrays_.end() || found->second->mipmapped != mipmapped) {
        refuse(name, handle ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue,
               handle ? "this is no CUDA array, or one that was freed" : "the array is a null pointer");
    }
    return *found->second;
}

DeviceArray &Arrays::find(const char *name, cudaArray_const_t handle) const {
    return find(name, handle, false);
}

DeviceArray &Arrays::find(const char *name, cudaMipmappedArray_const_t handle) const {
    return find(name, handle, true);
}

void Arrays::remove(Runtime &runtime, DeviceArray &array) {
    runtime.memory->release(array.storage->address);
    array.storage->address = 0;
    for (const auto &[number, level] : array.handles) arrays_.erase(level);
    arrays_.erase(&array);
}

}  // namespace warpsim::rt
