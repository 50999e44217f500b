// What kernels reach through handles instead of addresses: texture and surface objects, and the texels behind them.
// The runtime makes and destroys them; while a kernel runs they do not change, so that lookups take no lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op_formats.h"

namespace warpsim {

// How a texel's bytes are to be read.
struct TexelFormat {
    enum class Kind : uint8_t { signed_integer, unsigned_integer, floating, unorm, snorm };
    Kind kind = Kind::floating;
    uint8_t channel_bytes = 4;  // 1, 2 or 4
    uint8_t channels = 1;       // 1, 2 or 4
    unsigned bytes() const { return unsigned{channel_bytes} * channels; }
};

// Texels in device memory, row by row.
struct Image {
    uint64_t address = 0;                       // of the first one
    uint64_t width = 1, height = 1, depth = 1;  // in texels; layers and cube faces count as depth
    uint64_t pitch = 0, slice = 0;              // bytes from row to row, and from one z (or layer) to the next
};

// The memory of a CUDA array, which its levels and all objects that read it share.
struct ArrayStorage {
    uint64_t address = 0;  // of its allocation; 0: freed
};

enum class AddressMode : uint8_t { wrap, clamp, mirror, border };

struct TextureObject {
    TexelFormat format;
    TextureGeometry geometry = TextureGeometry::d1;
    std::vector<Image> levels;                    // the largest first
    std::shared_ptr<const ArrayStorage> storage;  // null: linear or pitched memory of the program's own
    bool linear_memory = false;                   // one row that only tex1Dfetch reads
    bool gather = true;                           // tld4 may read it
    std::array<AddressMode, 3> address_mode{};
    std::array<uint32_t, 4> border{};  // bits as tex returns them
    bool filter = false;               // between texels, and
    bool filter_levels = false;        // between levels
    bool normalized_coordinates = false;
    bool returns_floats = false;  // also of integers, which become [0, 1] or [-1, 1]
    bool srgb = false;
    float level_bias = 0, least_level = 0, greatest_level = 0;
};

struct SurfaceObject {
    TexelFormat format;
    TextureGeometry geometry = TextureGeometry::d1;  // of cubes a2d: a layer for each face
    Image image;
    std::shared_ptr<const ArrayStorage> storage;
};

class ImageObjects {
  public:
    // A new handle, which no object ever had.
    uint64_t add(TextureObject);
    uint64_t add(SurfaceObject);
    // False where no such object lives.
    bool remove_texture(uint64_t handle);
    bool remove_surface(uint64_t handle);
    // Any number may come as a handle. Null: explain_* says why.
    const TextureObject *texture(uint64_t handle) const;
    const SurfaceObject *surface(uint64_t handle) const;
    // "0x5, which is no texture object", for messages.
    std::string explain_texture(uint64_t handle) const;
    std::string explain_surface(uint64_t handle) const;

  private:
    std::vector<std::unique_ptr<const TextureObject>> textures_;  // by number; null: destroyed
    std::vector<std::unique_ptr<const SurfaceObject>> surfaces_;
};

}  // namespace warpsim
