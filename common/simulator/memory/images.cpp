#include "memory/images.h"

#include <utility>

#include "core/text.h"

namespace warpsim {
namespace {

// Numbers that do not look like a count or an address: a handle that a program made up is none.
constexpr uint64_t kTextures = 0x7e00000000000001ull, kSurfaces = 0x5f00000000000001ull;

template <class Object>
uint64_t add_to(std::vector<std::unique_ptr<const Object>> &objects, uint64_t first, Object object) {
    objects.push_back(std::make_unique<const Object>(std::move(object)));
    return first + objects.size() - 1;
}

template <class Object>
const Object *find_in(const std::vector<std::unique_ptr<const Object>> &objects, uint64_t first, uint64_t handle) {
    return handle - first < objects.size() ? objects[handle - first].get() : nullptr;
}

template <class Object>
bool remove_from(std::vector<std::unique_ptr<const Object>> &objects, uint64_t first, uint64_t handle) {
    if (!find_in(objects, first, handle)) return false;
    objects[handle - first].reset();
    return true;
}

std::string explain(uint64_t handle, const char *what, bool was_one, const char *other, bool is_other) {
    const std::string name(what), digits = hex(handle);
    if (was_one) return digits + ", a " + name + " object that was destroyed before the kernel ran";
    if (is_other) return digits + ", which is a " + other + " object, not a " + name + " object";
    return digits + ", which is no " + name + " object";
}

}  // namespace

uint64_t ImageObjects::add(TextureObject object) {
    return add_to(textures_, kTextures, std::move(object));
}
uint64_t ImageObjects::add(SurfaceObject object) {
    return add_to(surfaces_, kSurfaces, std::move(object));
}
bool ImageObjects::remove_texture(uint64_t handle) {
    return remove_from(textures_, kTextures, handle);
}
bool ImageObjects::remove_surface(uint64_t handle) {
    return remove_from(surfaces_, kSurfaces, handle);
}
const TextureObject *ImageObjects::texture(uint64_t handle) const {
    return find_in(textures_, kTextures, handle);
}
const SurfaceObject *ImageObjects::surface(uint64_t handle) const {
    return find_in(surfaces_, kSurfaces, handle);
}
std::string ImageObjects::explain_texture(uint64_t handle) const {
    return explain(handle, "texture", handle - kTextures < textures_.size(), "surface",
                   handle - kSurfaces < surfaces_.size());
}
std::string ImageObjects::explain_surface(uint64_t handle) const {
    return explain(handle, "surface", handle - kSurfaces < surfaces_.size(), "texture",
                   handle - kTextures < textures_.size());
}

}  // namespace warpsim
