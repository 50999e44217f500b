// tex, tld4, txq, suld, sust, suq: handles of objects, not .texref variables and samplers of their own.
#include <algorithm>
#include <string>

#include "core/op_formats.h"
#include "instructions/rows.h"
#include "instructions/texture/texture.h"
#include "machine/core_ops.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

struct GeometryName {
    const char *modifier;
    TextureGeometry geometry;
    unsigned coordinates;  // how many matter
    unsigned elements;     // of the operand, the layer included
    bool layered;
    unsigned gradient;  // elements of each
};
constexpr GeometryName kGeometries[] = {
    {"1d", TextureGeometry::d1, 1, 1, false, 1},      {"2d", TextureGeometry::d2, 2, 2, false, 2},
    {"3d", TextureGeometry::d3, 3, 4, false, 4},      {"a1d", TextureGeometry::a1d, 1, 2, true, 1},
    {"a2d", TextureGeometry::a2d, 2, 4, true, 2},     {"cube", TextureGeometry::cube, 3, 4, false, 4},
    {"acube", TextureGeometry::acube, 3, 4, true, 4},
};

const GeometryName &geometry_of(const Instruction &in) {
    return *std::find_if(std::begin(kGeometries), std::end(kGeometries) - 1,
                         [&](const GeometryName &name) { return in.has(name.modifier); });
}

std::vector<Operand> parts(const Operand &operand) {
    if (operand.kind != Operand::Kind::vector) return {operand};
    std::vector<Operand> elements = operand.elements;
    if (operand.has_pair) elements.pop_back();
    return elements;
}

uint32_t handle_slot(Lowering &l, const Instruction &in, const Operand &address) {
    const bool is_handle =
        address.kind == Operand::Kind::address && address.offset == 0 && l.register_bytes(address.elements[0]) == 8;
    if (!is_handle) l.unsupported(in, "only objects whose handle is in a 64-bit register are known");
    return l.source(address.elements[0], Type::b64);
}

// The elements of [handle, {layer, x, y, z}] behind the handle.
std::vector<Operand> coordinates(Lowering &l, const Instruction &in, const Operand &address,
                                 const GeometryName &geometry) {
    if (address.elements.size() > 2) l.unsupported(in, "a sampler of its own is not known");
    const std::vector<Operand> found =
        address.elements.size() == 2 ? parts(address.elements[1]) : std::vector<Operand>{};
    if (found.size() != geometry.elements)
        l.unsupported(in, std::string(".") + geometry.modifier + " has " + std::to_string(geometry.elements) +
                              (geometry.elements == 1 ? " coordinate" : " coordinates"));
    return found;
}

void fill_coordinates(Lowering &l, const std::vector<Operand> &found, const GeometryName &geometry, uint32_t *first,
                      uint32_t &layer) {
    if (geometry.layered) layer = l.source(found[0], Type::b32);
    for (unsigned k = 0; k < geometry.coordinates; ++k) first[k] = l.source(found[k + geometry.layered], Type::b32);
}

void fill_gradient(Lowering &l, const Instruction &in, const Operand &operand, const GeometryName &geometry,
                   uint32_t *first) {
    const std::vector<Operand> found = parts(operand);
    if (found.size() != geometry.gradient)
        l.unsupported(in, "a gradient has " + std::to_string(geometry.gradient) + " elements");
    for (unsigned k = 0; k < std::min(geometry.gradient, 3u); ++k) first[k] = l.source(found[k], Type::b32);
}

ImageQuery query_of(const Instruction &in) {
    if (in.has("width")) return ImageQuery::width;
    if (in.has("height")) return ImageQuery::height;
    if (in.has("depth")) return ImageQuery::depth;
    if (in.has("array_size")) return ImageQuery::array_size;
    return in.has("num_mipmap_levels") ? ImageQuery::levels : ImageQuery::normalized_coordinates;
}

struct SurfaceParts {
    SurfaceForm form;
    uint32_t handle = kNoSlot;
    std::vector<uint32_t> list;
    std::vector<Operand> data;
    Type type = Type::b32;  // of the registers
};

SurfaceParts surface_parts(Lowering &l, const Instruction &in, const Operand &address, const Operand &data) {
    SurfaceParts p;
    const GeometryName &geometry = geometry_of(in);
    p.form.geometry = geometry.geometry;
    p.form.out_of_range = in.has("clamp")  ? SurfaceForm::OutOfRange::clamp
                          : in.has("zero") ? SurfaceForm::OutOfRange::zero
                                           : SurfaceForm::OutOfRange::trap;
    for (unsigned bytes : {1u, 2u, 4u, 8u})
        if (in.has("b" + std::to_string(8 * bytes))) p.form.bytes = static_cast<uint8_t>(bytes);
    p.form.count = in.has("v4") ? 4 : in.has("v2") ? 2 : 1;
    p.data = parts(data);
    if (p.data.size() != p.form.count) l.unsupported(in, "the vector has another number of elements");
    if (p.form.bytes * p.form.count > 16) l.unsupported(in, "a lane moves at most 16 bytes");
    p.type = p.form.bytes == 8 ? Type::b64 : p.form.bytes == 4 ? Type::b32 : Type::b16;
    for (const Operand &element : p.data) {
        const unsigned bytes = l.register_bytes(element);
        if (bytes && bytes != ptx::type_bytes(p.type))
            l.unsupported(in, std::string("its registers must be as wide as .") + ptx::type_name(p.type));
    }
    p.handle = handle_slot(l, in, address);
    p.list.assign(kSurfaceData, kNoSlot);
    fill_coordinates(l, coordinates(l, in, address, geometry), geometry, p.list.data() + kSurfaceCoordinates,
                     p.list[kSurfaceLayer]);
    return p;
}

void emit_surface(Lowering &l, const Instruction &in, const SurfaceParts &p) {
    const uint32_t list = l.list(p.list);
    Op &op = l.emit_row(in);
    op.a = p.handle;
    op.list = list;
    op.list_count = static_cast<uint16_t>(p.list.size());
    op.extra = pack<uint32_t>(p.form);
}

void lower_texture(Lowering &l, const Instruction &in) {
    const GeometryName &geometry = geometry_of(in);
    const Operand &to = in.operands[0], &address = in.operands[1];
    TextureForm form;
    form.geometry = geometry.geometry;
    form.integer_coordinates = in.modifiers.back() == "s32";
    std::vector<uint32_t> slots(kTextureSlots, kNoSlot);
    const std::vector<Operand> texels = parts(to);
    if (texels.size() != 4) l.unsupported(in, "it writes four registers");
    const uint32_t handle = handle_slot(l, in, address);
    fill_coordinates(l, coordinates(l, in, address, geometry), geometry, slots.data() + kCoordinates, slots[kLayer]);
    if (in.opcode == "tld4") {
        form.selects = TextureForm::Selects::four_texels;
        for (uint8_t k = 0; k < 4; ++k)
            if (in.has(std::string(1, "rgba"[k]))) form.component = k;
    } else if (in.has("level")) {
        form.selects = TextureForm::Selects::level;
        slots[kLevel] = l.source(in.operands[2], Type::b32);
    } else if (in.has("grad")) {
        form.selects = TextureForm::Selects::level_by_gradient;
        fill_gradient(l, in, in.operands[2], geometry, slots.data() + kGradientX);
        fill_gradient(l, in, in.operands[3], geometry, slots.data() + kGradientY);
    }
    for (unsigned k = 0; k < 4; ++k) {
        if (const unsigned bytes = l.register_bytes(texels[k]); bytes && bytes != 4)
            l.unsupported(in, "its registers must be 32 bits wide");
        slots[kTexels + k] = l.destination(texels[k], Type::b32);
    }
    const int64_t resident = to.has_pair ? int64_t{l.destination(to.elements.back(), Type::pred)} : -1;
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.a = handle;
    op.list = list;
    op.list_count = kTextureSlots;
    op.imm = resident;
    op.extra = pack<uint32_t>(form);
}

void lower_image_query(Lowering &l, const Instruction &in) {
    const uint32_t handle = handle_slot(l, in, in.operands[1]);
    const uint32_t level = in.operands.size() > 2 ? l.source(in.operands[2], Type::b32) : kNoSlot;
    if (l.register_bytes(in.operands[0]) != 4) l.unsupported(in, "its register must be 32 bits wide");
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = handle;
    op.b = level;
    op.imm = static_cast<int64_t>(query_of(in));
}

void lower_surface_load(Lowering &l, const Instruction &in) {
    SurfaceParts p = surface_parts(l, in, in.operands[1], in.operands[0]);
    for (const Operand &element : p.data) p.list.push_back(l.destination(element, p.type));
    emit_surface(l, in, p);
}

void lower_surface_store(Lowering &l, const Instruction &in) {
    SurfaceParts p = surface_parts(l, in, in.operands[0], in.operands[1]);
    for (const Operand &element : p.data) p.list.push_back(l.source(element, p.type));
    emit_surface(l, in, p);
}

#define TEXEL "{1d,2d,3d,a1d,a2d,cube,acube}.v4.{u32,s32,f32}.f32"
#define SURFACE_ELEMENT "{.v2,.v4}.{b8,b16,b32,b64}.{trap,clamp,zero}"

constexpr InstructionRow kRows[] = {
    // Textures and surfaces, by the handles of their objects
    {"tex{.base}." TEXEL, "d|p, [a]", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tex{.base}.{1d,2d,3d,a1d,a2d}.v4.{u32,s32,f32}.s32", "d|p, [a]", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"tex.level.{1d,2d,3d,a1d,a2d}.v4.{u32,s32,f32}.s32", "d|p, [a], b", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"tex.level." TEXEL, "d|p, [a], b", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tex.grad." TEXEL, "d|p, [a], b, c", OpClass::texture, Flow::straight, exec_texture, lower_texture},
    {"tld4.{r,g,b,a}.2d.v4.{u32,s32,f32}.f32", "d|p, [a]", OpClass::texture, Flow::straight, exec_texture,
     lower_texture},
    {"txq.{width,height,depth,array_size,num_mipmap_levels,normalized_coords}.b32", "d, [a]", OpClass::other,
     Flow::straight, exec_texture_query, lower_image_query},
    {"txq.level.{width,height,depth}.b32", "d, [a], b", OpClass::other, Flow::straight, exec_texture_query,
     lower_image_query},
    {"suld.b.{1d,2d,3d,a1d,a2d}{.ca,.cg,.cs,.cv}" SURFACE_ELEMENT, "d, [a]", OpClass::surface, Flow::straight,
     exec_surface_load, lower_surface_load},
    {"sust.b.{1d,2d,3d,a1d,a2d}{.wb,.cg,.cs,.wt}" SURFACE_ELEMENT, "[a], b", OpClass::surface, Flow::straight,
     exec_surface_store, lower_surface_store},
    {"suq.{width,height,depth,array_size}.b32", "d, [a]", OpClass::other, Flow::straight, exec_surface_query,
     lower_image_query},
};

}  // namespace

std::span<const InstructionRow> texture_rows() {
    return kRows;
}

}  // namespace warpsim
