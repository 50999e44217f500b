#include "instructions/texture/texture.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "hazard/global_shadow.h"
#include "machine/late_stores.h"

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

// For races: the lane reads or writes those bytes. No read by a texture or a surface need see what the launch writes.
void touch(Warp &w, const Op &op, unsigned lane, uint64_t address, unsigned bytes, unsigned flags) {
    if (GlobalShadow *shadow = w.block->global_shadow) shadow->access_range(w, op, flags, lane, address, bytes);
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
        TextureSampler sampler(*source.object, form.geometry, *source.memory, w.block->global_shadow);
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
            for (const uint64_t address : sampler.touched())
                touch(w, op, lane, address, source.object->format.bytes(), kGlobalNoncoherent);
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

const char *geometry_text(TextureGeometry geometry) {
    switch (geometry) {
        case TextureGeometry::d1:
            return "a 1D image";
        case TextureGeometry::d2:
            return "a 2D image";
        case TextureGeometry::d3:
            return "a 3D image";
        case TextureGeometry::a1d:
            return "layers of 1D images";
        case TextureGeometry::a2d:
            return "layers of 2D images";
        case TextureGeometry::cube:
            return "a cubemap";
        default:
            return "layers of cubemaps";
    }
}

bool geometry_fits(TextureGeometry asked, TextureGeometry held, const Image &image) {
    if (asked == held) return true;
    const auto flat = [](TextureGeometry g) { return g == TextureGeometry::d1 || g == TextureGeometry::d2; };
    return flat(asked) && flat(held) && image.height == 1;
}

uint32_t query_image(ImageQuery query, TextureGeometry geometry, const Image &image, size_t levels, bool normalized) {
    const bool deep = geometry == TextureGeometry::d3;
    const bool cube = geometry == TextureGeometry::cube || geometry == TextureGeometry::acube;
    switch (query) {
        case ImageQuery::width:
            return static_cast<uint32_t>(image.width);
        case ImageQuery::height:
            return static_cast<uint32_t>(image.height);
        case ImageQuery::depth:
            return static_cast<uint32_t>(deep ? image.depth : 1);
        case ImageQuery::array_size:
            return static_cast<uint32_t>(deep ? 1 : cube ? image.depth / 6 : image.depth);
        case ImageQuery::levels:
            return static_cast<uint32_t>(levels);
        default:
            return normalized;
    }
}

namespace {

using OutOfRange = SurfaceForm::OutOfRange;

struct Target {
    const SurfaceObject *object = nullptr;
    std::byte *host = nullptr;  // of the image's first byte
};

Target find_target(Warp &w, const Op &op, uint64_t handle, uint32_t lanes) {
    show_stores(w);
    const GlobalMemory &memory = *w.block->global;
    const SurfaceObject *object = memory.images.surface(handle);
    if (!object) {
        report_lanes(w, op, HazardKind::invalid_argument, lanes, handle,
                     " uses " + memory.images.explain_surface(handle));
        return {};
    }
    const AllocationView *view = memory.find(object->storage->address);
    if (!view) {
        report_lanes(w, op, HazardKind::invalid_address, lanes, handle,
                     " uses a surface object of a CUDA array that was freed");
        return {};
    }
    return {object, view->at(object->image.address)};
}

std::string extent_text(const SurfaceObject &object) {
    const Image &image = object.image;
    const unsigned bytes = object.format.bytes();
    std::string text = std::to_string(image.width);
    const bool rows = object.geometry != TextureGeometry::d1 && object.geometry != TextureGeometry::a1d;
    if (rows) text += " x " + std::to_string(image.height);
    if (object.geometry == TextureGeometry::d3) text += " x " + std::to_string(image.depth);
    text += " elements of " + size_text(bytes);
    if (object.geometry == TextureGeometry::a1d || object.geometry == TextureGeometry::a2d)
        text += " in " + std::to_string(image.depth) + (image.depth == 1 ? " layer" : " layers");
    return text;
}

// Coordinates in range, and where they lead.
struct Place {
    bool inside = true;
    uint64_t offset = 0;
};

class Accesses {
  public:
    Accesses(Warp &w, const Op &op, bool writes)
        : w_(w),
          op_(op),
          form_(unpack<SurfaceForm>(op.extra)),
          slots_(w.block->program->operand_list.data() + op.list),
          bytes_(unsigned{form_.bytes} * form_.count),
          writes_(writes) {}

    // Calls f(lane, host address) for each lane; null: out of range, and that is no fault.
    template <class F>
    void run(F f) {
        for_each_handle(w_, op_, [&](uint64_t handle, uint32_t lanes) {
            const Target target = find_target(w_, op_, handle, lanes);
            if (!target.object) return;
            const SurfaceObject &object = *target.object;
            if (!geometry_fits(form_.geometry, object.geometry, object.image)) {
                report_lanes(w_, op_, HazardKind::invalid_argument, lanes, handle,
                             std::string(writes_ ? " writes " : " reads ") + geometry_text(form_.geometry) +
                                 ", and the surface object holds " + geometry_text(object.geometry));
                return;
            }
            BadLanes bad;
            for (uint32_t rest = lanes; rest; rest &= rest - 1) {
                const unsigned lane = unsigned(std::countr_zero(rest));
                Place place;
                if (!find(object, lane, place, bad)) continue;
                if (place.inside)
                    touch(w_, op_, lane, object.image.address + place.offset, bytes_,
                          writes_ ? kGlobalWrites : kGlobalNoncoherent);
                f(lane, place.inside ? target.host + place.offset : nullptr);
            }
            bad.report(w_, op_);
        });
    }

    uint32_t data_slot(unsigned element) const { return slots_[kSurfaceData + element]; }
    const SurfaceForm &form() const { return form_; }

  private:
    int64_t coordinate(unsigned k, unsigned lane) const {
        const uint32_t slot = slots_[kSurfaceCoordinates + k];
        return slot == kNoSlot ? 0 : w_.lanes<int32_t>(slot)[lane];
    }

    // False: reported.
    bool find(const SurfaceObject &object, unsigned lane, Place &place, BadLanes &bad) const {
        const Image &image = object.image;
        const bool deep = form_.geometry == TextureGeometry::d3;
        const uint32_t layer_slot = slots_[kSurfaceLayer];
        int64_t at[3] = {coordinate(0, lane), coordinate(1, lane), coordinate(2, lane)};
        if (!deep) at[2] = layer_slot == kNoSlot ? 0 : int64_t{w_.lanes<uint32_t>(layer_slot)[lane]};
        const int64_t row = static_cast<int64_t>(image.width * object.format.bytes());
        const int64_t greatest[3] = {row - bytes_, static_cast<int64_t>(image.height) - 1,
                                     static_cast<int64_t>(image.depth) - 1};
        const auto text = [&](const std::string &wrong) {
            std::string s = instruction_text(w_, op_) + (writes_ ? " writes " : " reads ") + size_text(bytes_) +
                            " at x = " + std::to_string(at[0]) + " bytes";
            if (form_.geometry != TextureGeometry::d1 && form_.geometry != TextureGeometry::a1d)
                s += ", y = " + std::to_string(at[1]);
            if (deep) s += ", z = " + std::to_string(at[2]);
            if (layer_slot != kNoSlot) s += ", layer " + std::to_string(at[2]);
            return s + wrong + extent_text(object);
        };
        bool inside = true;
        for (unsigned k = 0; k < 3; ++k) inside = inside && at[k] >= 0 && at[k] <= greatest[k];
        if (!inside && form_.out_of_range == OutOfRange::zero) {
            place.inside = false;
            return true;
        }
        if (!inside && (form_.out_of_range == OutOfRange::trap || greatest[0] < 0)) {
            bad.add(lane, HazardKind::out_of_bounds, static_cast<uint64_t>(at[0]),
                    [&] { return text(": out of the surface's "); });
            return false;
        }
        if (at[0] % static_cast<int64_t>(bytes_)) {
            bad.add(lane, HazardKind::misaligned, static_cast<uint64_t>(at[0]), [&] {
                return text(", and x, which counts bytes, must be a multiple of " + std::to_string(bytes_) +
                            ". The surface has ");
            });
            return false;
        }
        for (unsigned k = 0; k < 3; ++k) at[k] = std::clamp<int64_t>(at[k], 0, greatest[k]);
        place.offset = static_cast<uint64_t>(at[2]) * image.slice + static_cast<uint64_t>(at[1]) * image.pitch +
                       static_cast<uint64_t>(at[0]);
        return true;
    }

    Warp &w_;
    const Op &op_;
    const SurfaceForm form_;
    const uint32_t *slots_;
    unsigned bytes_;
    bool writes_;
};

// Lanes of single bytes lie in 16-bit registers.
template <class F>
void with_element(unsigned bytes, F f) {
    switch (bytes) {
        case 1:
            return f(uint8_t{}, uint16_t{});
        case 2:
            return f(uint16_t{}, uint16_t{});
        case 4:
            return f(uint32_t{}, uint32_t{});
        default:
            return f(uint64_t{}, uint64_t{});
    }
}

}  // namespace

void exec_surface_load(Warp &w, const Op &op) {
    Accesses accesses(w, op, false);
    with_element(accesses.form().bytes, [&]<class Element, class Register>(Element, Register) {
        accesses.run([&](unsigned lane, const std::byte *from) {
            for (unsigned k = 0; k < accesses.form().count; ++k) {
                Element value = 0;
                if (from) std::memcpy(&value, from + k * sizeof value, sizeof value);
                w.lanes<Register>(accesses.data_slot(k))[lane] = value;
            }
        });
    });
}

void exec_surface_store(Warp &w, const Op &op) {
    Accesses accesses(w, op, true);
    with_element(accesses.form().bytes, [&]<class Element, class Register>(Element, Register) {
        accesses.run([&](unsigned lane, std::byte *to) {
            for (unsigned k = 0; to && k < accesses.form().count; ++k) {
                const Element value = static_cast<Element>(w.lanes<Register>(accesses.data_slot(k))[lane]);
                std::memcpy(to + k * sizeof value, &value, sizeof value);
            }
        });
    });
}

void exec_surface_query(Warp &w, const Op &op) {
    for_each_handle(w, op, [&](uint64_t handle, uint32_t lanes) {
        const Target target = find_target(w, op, handle, lanes);
        if (!target.object) return;
        const uint32_t value = query_image(ImageQuery(op.imm), target.object->geometry, target.object->image, 1, false);
        for (uint32_t rest = lanes; rest; rest &= rest - 1) w.lanes<uint32_t>(op.dst)[std::countr_zero(rest)] = value;
    });
}

}  // namespace warpsim
