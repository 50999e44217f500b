#include "exec/texture.h"

#include "core/text.h"
#include "exec/image_access.h"
#include "exec/late_stores.h"
#include "exec/texture_sampling.h"

namespace warpsim {
namespace {

// The object of a handle, if the instruction can read it, and the memory of its texels.
struct Source {
    const TextureObject *object = nullptr;
    const AllocationView *memory = nullptr;
};

Source find_source(Warp &w, const Op &op, uint64_t handle, uint32_t lanes) {
    show_stores(w);
    const GlobalMemory &memory = *w.block->global;
    const TextureObject *object = memory.images.texture(handle);
    if (!object) {
        report_lanes(w, op, HazardKind::invalid_argument, lanes, handle,
                     " uses " + memory.images.explain_texture(handle));
        return {};
    }
    const uint64_t address = object->storage ? object->storage->address : object->levels[0].address;
    const AllocationView *view = memory.find(address);
    if (!view) {
        const std::string of = object->storage ? "a CUDA array" : "memory";
        report_lanes(w, op, HazardKind::invalid_address, lanes, handle,
                     " uses a texture object of " + of + " that was freed");
        return {};
    }
    return {object, view};
}

// What is wrong with reading the object by this instruction; empty: nothing.
std::string mismatch(const TextureObject &object, const TextureForm &form) {
    if (object.linear_memory && (!form.integer_coordinates || form.geometry != TextureGeometry::d1))
        return " reads a texture object of linear memory, which only tex1Dfetch can read";
    if (!geometry_fits(form.geometry, object.geometry, object.levels[0]))
        return std::string(" reads ") + geometry_text(form.geometry) + ", and the texture object holds " +
               geometry_text(object.geometry);
    if (form.selects == TextureForm::Selects::four_texels && !object.gather)
        return " gathers texels of a CUDA array that was made without cudaArrayTextureGather";
    return {};
}

uint64_t layers_of(const TextureObject &object) {
    switch (object.geometry) {
        case TextureGeometry::a1d:
        case TextureGeometry::a2d:
            return object.levels[0].depth;
        case TextureGeometry::acube:
            return object.levels[0].depth / 6;
        default:
            return 1;
    }
}

TexturePlace place_of(const Warp &w, const uint32_t *slots, const TextureForm &form, unsigned lane) {
    TexturePlace place;
    const auto number = [&](uint32_t slot, bool integer = false) {
        if (slot == kNoSlot) return 0.0;
        return integer ? double(w.lanes<int32_t>(slot)[lane]) : double(w.lanes<float>(slot)[lane]);
    };
    for (unsigned k = 0; k < 3; ++k) {
        place.at[k] = number(slots[kCoordinates + k], form.integer_coordinates);
        place.gradient_x[k] = number(slots[kGradientX + k]);
        place.gradient_y[k] = number(slots[kGradientY + k]);
    }
    if (slots[kLayer] != kNoSlot) place.layer = w.lanes<uint32_t>(slots[kLayer])[lane];
    place.level = number(slots[kLevel], form.integer_coordinates);
    return place;
}

}  // namespace

void exec_texture(Warp &w, const Op &op) {
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const TextureForm form = unpack<TextureForm>(op.extra);
    uint32_t good = 0;
    Texel texels[kLanes];
    for_each_handle(w, op, [&](uint64_t handle, uint32_t lanes) {
        const Source source = find_source(w, op, handle, lanes);
        if (!source.object) return;
        if (const std::string wrong = mismatch(*source.object, form); !wrong.empty()) {
            report_lanes(w, op, HazardKind::invalid_argument, lanes, handle, wrong);
            return;
        }
        TextureSampler sampler(*source.object, form.geometry, *source.memory);
        const uint64_t layers = layers_of(*source.object);
        BadLanes bad;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            const TexturePlace place = place_of(w, slots, form, lane);
            if (place.layer >= layers) {
                bad.add(lane, HazardKind::out_of_bounds, place.layer, [&] {
                    return instruction_text(w, op) + " reads layer " + std::to_string(place.layer) +
                           " of a texture that has " + std::to_string(layers);
                });
                continue;
            }
            texels[lane] = form.integer_coordinates                            ? sampler.fetch(place)
                           : form.selects == TextureForm::Selects::four_texels ? sampler.gather(place, form.component)
                                                                               : sampler.sample(place, form.selects);
            if (const uint64_t address = sampler.fault()) {
                bad.add(lane, HazardKind::out_of_bounds, address, [&] {
                    const unsigned bytes = source.object->format.bytes();
                    return instruction_text(w, op) + " reads a texel of " + size_text(bytes) +
                           " through a texture object that is larger than its memory, " +
                           w.block->global->explain(address, bytes);
                });
            }
        }
        bad.report(w, op);
        good |= lanes & ~bad.lanes;
    });
    for (unsigned k = 0; k < 4; ++k) {
        uint32_t *to = w.lanes<uint32_t>(slots[kTexels + k]);
        for (uint32_t rest = good; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            to[lane] = texels[lane][k];
        }
    }
    // Arrays have all of their memory.
    if (op.imm >= 0) w.predicate(uint32_t(op.imm)) |= good;
}

void exec_texture_query(Warp &w, const Op &op) {
    for_each_handle(w, op, [&](uint64_t handle, uint32_t lanes) {
        const Source source = find_source(w, op, handle, lanes);
        if (!source.object) return;
        const auto &levels = source.object->levels;
        BadLanes bad;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            const uint32_t level = op.b == kNoSlot ? 0 : w.lanes<uint32_t>(op.b)[lane];
            if (level >= levels.size()) {
                bad.add(lane, HazardKind::out_of_bounds, level, [&] {
                    return instruction_text(w, op) + " asks for level " + std::to_string(level) +
                           " of a texture that has " + std::to_string(levels.size());
                });
                continue;
            }
            w.lanes<uint32_t>(op.dst)[lane] = query_image(ImageQuery(op.imm), source.object->geometry, levels[level],
                                                          levels.size(), source.object->normalized_coordinates);
        }
        bad.report(w, op);
    });
}

}  // namespace warpsim
