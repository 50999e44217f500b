// tex, tld4, txq, suld, sust, suq: reads of textures and bytes of CUDA arrays, through 64-bit handles.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "core/names.h"
#include "core/program.h"
#include "core/warp.h"
#include "memory/global_memory.h"

namespace warpsim {

void exec_texture(Warp &, const Op &);
void exec_texture_query(Warp &, const Op &);

void exec_surface_load(Warp &, const Op &);
void exec_surface_store(Warp &, const Op &);
void exec_surface_query(Warp &, const Op &);

// "tex.2d.v4.f32.f32 at kernel.cu:12"
inline std::string instruction_text(const Warp &w, const Op &op) {
    return instruction_at(*w.block->program, op.index);
}

// Calls f(handle, lanes) for the lanes of each handle; op.a holds handles.
template <class F>
void for_each_handle(const Warp &w, const Op &op, F f) {
    const uint64_t *handles = w.lanes<uint64_t>(op.a);
    for (uint32_t rest = w.exec; rest;) {
        const uint64_t handle = handles[std::countr_zero(rest)];
        uint32_t same = 0;
        for (unsigned i = 0; i < kLanes; ++i) same |= uint32_t(handles[i] == handle) << i;
        f(handle, rest & same);
        rest &= ~same;
    }
}

// Lanes that ask for something that is not there. Reports the first of them; says how many they were.
struct BadLanes {
    uint32_t lanes = 0;
    HazardKind kind = HazardKind::out_of_bounds;
    uint64_t address = 0;
    std::string text;  // of the first
    template <class Text>
    void add(unsigned lane, HazardKind what, uint64_t at, Text make) {
        if (!lanes) {
            kind = what;
            address = at;
            text = make();
        }
        lanes |= 1u << lane;
    }
    void report(Warp &w, const Op &op) {
        if (!lanes) return;
        const int others = std::popcount(lanes) - 1;
        if (others) text += " (and " + std::to_string(others) + (others == 1 ? " more lane)" : " more lanes)");
        report_hazard(w, op, kind, std::countr_zero(lanes), address, std::move(text));
    }
};

inline void report_lanes(Warp &w, const Op &op, HazardKind kind, uint32_t lanes, uint64_t address, std::string text) {
    report_hazard(w, op, kind, std::countr_zero(lanes), address, instruction_text(w, op) + std::move(text));
}

// "a 2D image", "layers of 2D images": what an instruction reads, and what an object holds.
const char *geometry_text(TextureGeometry);
// The instruction's shape fits the object's: a row may also be read of an image of height 1, and the other way round.
bool geometry_fits(TextureGeometry asked, TextureGeometry held, const Image &);
// dst = what txq or suq asks of the image.
uint32_t query_image(ImageQuery, TextureGeometry, const Image &, size_t levels, bool normalized);

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
    // `geometry` is the instruction's, `memory` the allocation that holds the object's texels. notes_texels: for
    // touched().
    TextureSampler(const TextureObject &, TextureGeometry, const AllocationView &memory, bool notes_texels);

    Texel fetch(const TexturePlace &);                         // at integer coordinates, as is the level
    Texel sample(const TexturePlace &, TextureForm::Selects);  // as the object says
    Texel gather(const TexturePlace &, unsigned component);    // of the four texels that a filter would mix

    // The addresses of the texels that were asked for since the last call.
    std::vector<uint64_t> touched();
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
    bool notes_texels_;
    std::vector<uint64_t> touched_;
};

}  // namespace warpsim
