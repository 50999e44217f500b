// What a texture object returns for a place: the formulas of the CUDA programming guide's appendix on texture fetching.
// Weights are numbers of 1.8 bits; everything else is exact (in double), and the result is rounded once.
// What the guide leaves open: common/simulator/README.md, "Textures".
#pragma once

#include <array>
#include <cstdint>

#include "memory/global_memory.h"

namespace warpsim {

using Texel = std::array<uint32_t, 4>;  // bits of four channels

// What one lane asks for.
struct TexturePlace {
    std::array<double, 3> at{};  // x, y, z; of a cube the direction
    uint64_t layer = 0;          // inside the array
    double level = 0;
    std::array<double, 3> gradient_x{}, gradient_y{};
};

class TextureSampler {
  public:
    // `geometry` is the instruction's, `memory` the allocation that holds the object's texels.
    TextureSampler(const TextureObject &, TextureGeometry, const AllocationView &memory);

    Texel fetch(const TexturePlace &);                         // at integer coordinates, as is the level
    Texel sample(const TexturePlace &, TextureForm::Selects);  // as the object says
    Texel gather(const TexturePlace &, unsigned component);    // of the four texels that a filter would mix

    // The address of a texel that lies outside of the allocation, asked for since the last call; 0: none.
    uint64_t fault();

  private:
    struct Axis {
        std::array<int64_t, 2> texel{};  // -1: the border's
        std::array<double, 2> weight{1, 0};
        unsigned taps = 1;
    };
    // The part of a level that a place leads to: coordinates there, and which layer or face.
    struct Flat {
        std::array<double, 3> at{};
        uint64_t layer = 0;
        bool normalized = false;
    };
    Flat flatten(const TexturePlace &) const;
    Axis locate(double x, uint64_t size, AddressMode, bool normalized, bool filter) const;
    double level_of(const TexturePlace &, TextureForm::Selects) const;
    double gradient_level(const TexturePlace &) const;
    Texel texel(const Image &, int64_t x, int64_t y, int64_t z);
    Texel nearest(const Image &, const Flat &);
    std::array<double, 4> filtered(const Image &, const Flat &);

    const TextureObject &object_;
    TextureGeometry geometry_;
    const AllocationView &memory_;
    unsigned axes_;
    uint64_t fault_ = 0;
};

}  // namespace warpsim
