// CUDA arrays by handle, what texture and surface objects were made of, and how large they may be.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "memory/images.h"
#include "runtime/cuda_api.h"

namespace warpsim::rt {

inline constexpr int kImage1D = 131072, kImage1DMipmap = 32768, kImage1DLayered = 32768, kLayers = 2048;
inline constexpr int kImage2DWidth = 131072, kImage2DHeight = 65536, kImage2DSmall = 32768;  // mipmap, gather, layered
inline constexpr int kPitchedWidth = 131072, kPitchedHeight = 65000, kPitchedBytes = 2097120;
inline constexpr int kImage3D = 16384, kCubemap = 32768, kCubemapLayers = 2046;
inline constexpr int kLinearTexels = 1 << 28;
inline constexpr int kSurface1D = 32768;
inline constexpr int kTextureAlignment = 512, kTexturePitchAlignment = 32;

class Runtime;

// A CUDA array, a mipmapped one, or a level of one.
struct DeviceArray {
    cudaChannelFormatDesc channels{};
    cudaExtent extent{};  // as it was asked for: 0 where there is no such dimension
    unsigned flags = 0;
    bool mipmapped = false;
    bool is_level = false;
    TexelFormat format;
    TextureGeometry geometry = TextureGeometry::d1;
    std::vector<Image> levels;  // one, but of mipmapped arrays
    std::shared_ptr<ArrayStorage> storage;
    std::map<unsigned, DeviceArray *> handles;  // of its levels, where the program has asked for them
};

class Arrays {
  public:
    // All throw Failure. `name`: the API call, for messages.
    // levels 0: an array that is not mipmapped. The description must fit an array, and the array the memory.
    DeviceArray &make(Runtime &, const char *name, const cudaChannelFormatDesc *, const cudaExtent &, unsigned flags,
                      unsigned levels = 0);
    DeviceArray &level(DeviceArray &mipmapped, unsigned level);
    // Any pointer may come: cudaErrorInvalidResourceHandle.
    DeviceArray &find(const char *name, cudaArray_const_t) const;
    DeviceArray &find(const char *name, cudaMipmappedArray_const_t) const;
    // Nothing may use it any more.
    void remove(Runtime &, DeviceArray &);

    struct TextureRecord {
        cudaResourceDesc resource;
        cudaTextureDesc texture;
    };
    std::map<cudaTextureObject_t, TextureRecord> textures;
    std::map<cudaSurfaceObject_t, cudaResourceDesc> surfaces;

  private:
    DeviceArray &find(const char *name, const void *handle, bool mipmapped) const;
    std::map<const void *, std::unique_ptr<DeviceArray>> arrays_;
};

// How a texel of these channels is stored. Throws Failure{cudaErrorInvalidChannelDescriptor}, or
// {cudaErrorNotSupported} for compressed and planar formats.
TexelFormat format_of(const char *name, const cudaChannelFormatDesc &);

// Says why the API call `name` does not do it, and throws Failure.
[[noreturn]] void refuse(const char *name, cudaError_t, const std::string &why);

}  // namespace warpsim::rt
