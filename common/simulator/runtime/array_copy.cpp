#include "runtime/array_copy.h"

namespace warpsim::rt {
namespace {

bool within(uint64_t first, uint64_t count, uint64_t size) {
    return first <= size && count <= size - first;
}

}  // namespace

Region array_region(const char *name, const char *side, const DeviceArray &array, uint64_t x, uint64_t y, uint64_t z,
                    const Extent &extent) {
    const Image &image = array.levels[0];
    if (!within(x, extent.width, image.pitch) || !within(y, extent.rows, image.height) ||
        !within(z, extent.planes, image.depth)) {
        const auto box = [](uint64_t width, uint64_t height, uint64_t depth) {
            return std::to_string(width) + " bytes x " + std::to_string(height) + " x " + std::to_string(depth);
        };
        say(std::string(name) + ": the " + side + ", " + box(extent.width, extent.rows, extent.planes) + " at (" +
            std::to_string(x) + " bytes, " + std::to_string(y) + ", " + std::to_string(z) +
            "), is not inside of the array's " + box(image.pitch, image.height, image.depth));
        throw Failure{cudaErrorInvalidValue};
    }
    return {image.address + z * image.slice + y * image.pitch + x, image.pitch, image.slice};
}

Copy3D copy_3d_of(Runtime &runtime, const char *name, const cudaMemcpy3DParms &p) {
    if ((p.srcArray && p.srcPtr.ptr) || (p.dstArray && p.dstPtr.ptr)) {
        say(std::string(name) + ": a source or destination is both an array and a pointer");
        throw Failure{cudaErrorInvalidValue};
    }
    const DeviceArray *from = p.srcArray ? &runtime.arrays.find(name, p.srcArray) : nullptr;
    const DeviceArray *to = p.dstArray ? &runtime.arrays.find(name, p.dstArray) : nullptr;
    const uint64_t element = from ? from->format.bytes() : to ? to->format.bytes() : 1;
    if (from && to && from->format.bytes() != to->format.bytes()) {
        say(std::string(name) + ": the elements of the two arrays have " + std::to_string(from->format.bytes()) +
            " and " + std::to_string(to->format.bytes()) + " bytes");
        throw Failure{cudaErrorInvalidValue};
    }
    Copy3D copy{{}, {}, {0, p.extent.height, p.extent.depth}};
    if (__builtin_mul_overflow(p.extent.width, element, &copy.extent.width)) throw Failure{cudaErrorInvalidValue};
    if (copy.extent.empty()) return copy;
    const auto region = [&](const DeviceArray *array, const char *side, const cudaPitchedPtr &pointer,
                            const cudaPos &at) {
        if (array) {
            uint64_t x = 0;
            if (__builtin_mul_overflow(at.x, element, &x)) throw Failure{cudaErrorInvalidValue};
            return array_region(name, side, *array, x, at.y, at.z, copy.extent);
        }
        const uint64_t plane = pointer.pitch * pointer.ysize;
        return Region{address_of(pointer.ptr) + at.z * plane + at.y * pointer.pitch + at.x, pointer.pitch, plane};
    };
    copy.to = region(to, "destination", p.dstPtr, p.dstPos);
    copy.from = region(from, "source", p.srcPtr, p.srcPos);
    return copy;
}

}  // namespace warpsim::rt
