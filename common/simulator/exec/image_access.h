// What texture and surface instructions share: handles, the memory behind objects, and the words for what is wrong.
#pragma once

#include <bit>
#include <string>

#include "core/names.h"
#include "core/program.h"
#include "core/warp.h"
#include "memory/global_memory.h"

namespace warpsim {

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

}  // namespace warpsim
