#include "runtime/copy.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "hazard/global_text.h"
#include "runtime/capture.h"

namespace warpsim::rt {
namespace {

// Copies of more bytes from pageable memory wait, rather than double the memory in use.
constexpr uint64_t kLargestSnapshot = 32 << 20;

enum class Place { device, pinned, managed, pageable };

// Bytes from the region's first to its last, in *span. False where the figures do not fit together.
bool measure(const Region &region, const Extent &extent, uint64_t &span) {
    if (extent.rows > 1 && region.pitch < extent.width) return false;
    uint64_t rows, planes;
    if (__builtin_mul_overflow(extent.rows - 1, region.pitch, &rows)) return false;
    if (__builtin_mul_overflow(extent.planes - 1, region.plane, &planes)) return false;
    return !__builtin_add_overflow(rows, planes, &span) && !__builtin_add_overflow(span, extent.width, &span);
}

// Where the region lies; throws Failure where it does not lie in one piece of memory.
Place locate(const Runtime &runtime, const char *name, const char *side, const Region &region, const Extent &extent) {
    uint64_t span = 0;
    if (!measure(region, extent, span)) {
        say_undone(std::string(name) + ": the " + side + "'s pitch is less than a row's width, or its size overflows");
        throw Failure{cudaErrorInvalidPitchValue};
    }
    // What a graph allocates may not be there yet: that is looked at when the stream comes to it.
    const AllocationView *view = runtime.memory->find(region.address);
    if (!view) view = runtime.memory->find_resting(region.address);
    if (view ? !view->contains(region.address, span) : runtime.memory->is_device_address(region.address)) {
        say_undone(std::string(name) + ": the " + side + ", " + std::to_string(span) + " bytes at " +
                   hex(region.address) + ", is " + runtime.memory->explain(region.address, span));
        throw Failure{cudaErrorInvalidValue};
    }
    if (!view) {
        if (region.address < 4096) {
            say_undone(std::string(name) + ": the " + side + " is a null pointer");
            throw Failure{cudaErrorInvalidValue};
        }
        return Place::pageable;
    }
    return view->kind == MemoryKind::pinned    ? Place::pinned
           : view->kind == MemoryKind::managed ? Place::managed
                                               : Place::device;
}

void check_kind(const char *name, Place to, Place from, cudaMemcpyKind kind) {
    const auto wrong = [&](const char *side, bool wants_device, Place is) {
        // Pinned and managed memory is both the host's and the device's.
        if (wants_device ? is != Place::pageable : is != Place::device) return;
        say_undone(std::string(name) + ": the " + side + " is " + (wants_device ? "host" : "device") +
                   " memory, and the copy's kind says " + (wants_device ? "device" : "host"));
        throw Failure{cudaErrorInvalidValue};
    };
    switch (kind) {
        case cudaMemcpyDefault:
            return;
        case cudaMemcpyHostToHost:
        case cudaMemcpyHostToDevice:
        case cudaMemcpyDeviceToHost:
        case cudaMemcpyDeviceToDevice:
            wrong("destination", kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, to);
            wrong("source", kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, from);
            return;
        default:
            throw Failure{cudaErrorInvalidMemcpyDirection};
    }
}

// What a copy is, for the report. Managed memory counts as the device's.
OperationLabel label(Place to, Place from, const Extent &extent) {
    const auto is_host = [](Place place) { return place == Place::pinned || place == Place::pageable; };
    OperationLabel what;
    what.kind = is_host(from) ? is_host(to) ? "memcpy_h2h" : "memcpy_h2d" : is_host(to) ? "memcpy_d2h" : "memcpy_d2d";
    what.bytes = extent.width * extent.rows * extent.planes;
    if (is_host(from) || is_host(to)) {
        what.host_memory = from == Place::pageable || to == Place::pageable ? "pageable" : "pinned";
    }
    return what;
}

// The host's address of a region that was checked when the operation was queued, and may have been freed since.
std::byte *host_address(const Runtime &runtime, const char *name, const char *side, const Region &region,
                        const Extent &extent) {
    uint64_t span = 0;
    measure(region, extent, span);
    const AllocationView *view = runtime.memory->find(region.address);
    if (view && view->contains(region.address, span)) return view->at(region.address);
    if (!view && !runtime.memory->is_device_address(region.address)) {
        return reinterpret_cast<std::byte *>(region.address);
    }
    say(std::string(name) + ": when the stream came to it, the " + side + " at " + hex(region.address) + " was " +
        runtime.memory->explain(region.address, span));
    throw Failure{cudaErrorIllegalAddress};
}

void move_bytes(std::byte *to, const Region &to_region, const std::byte *from, const Region &from_region,
                const Extent &extent) {
    for (uint64_t plane = 0; plane < extent.planes; ++plane) {
        std::byte *d = to + plane * to_region.plane;
        const std::byte *s = from + plane * from_region.plane;
        if (extent.rows > 1 && to_region.pitch == extent.width && from_region.pitch == extent.width) {
            std::memmove(d, s, extent.width * extent.rows);
            continue;
        }
        for (uint64_t row = 0; row < extent.rows; ++row) {
            std::memmove(d + row * to_region.pitch, s + row * from_region.pitch, extent.width);
        }
    }
}

TouchedRegion touched(const Region &region, const Extent &extent, bool writes) {
    return {region.address, extent.width, region.pitch, extent.rows, region.plane, extent.planes, writes, 0};
}

// What the copy touches of memory that devices reach.
std::vector<TouchedRegion> regions_of(const Region &to, Place to_place, const Region &from, Place from_place,
                                      const Extent &extent) {
    std::vector<TouchedRegion> regions;
    if (to_place != Place::pageable) regions.push_back(touched(to, extent, true));
    if (from_place != Place::pageable) regions.push_back(touched(from, extent, false));
    return regions;
}

// The device whose memory it is.
unsigned owner(const Runtime &runtime, uint64_t address) {
    const AllocationView *view = runtime.memory->find(address);
    if (!view) view = runtime.memory->find_resting(address);
    return view ? view->device : 0;
}

// A copy between the memories of two devices that is none of the Async functions' comes after all that both devices
// have been given, and before all that they are given later.
class BetweenDevices {
  public:
    BetweenDevices(Runtime &runtime, unsigned to, unsigned from) : runtime_(runtime) {
        for (const auto &stream : runtime.scheduler.streams())
            if (to != from && !stream->capture && (stream->device == to || stream->device == from))
                streams_.push_back(stream);
    }
    void add_dependencies(Operation &copy) const {
        for (const auto &stream : streams_) copy.after.push_back(Scheduler::last(stream));
    }
    void let_wait(const Ticket &copy) const {
        for (const auto &stream : streams_) {
            if (stream == copy.stream) continue;
            Operation wait;
            wait.run = [] {};
            wait.after.push_back(copy);
            runtime_.scheduler.enqueue(stream, std::move(wait));
        }
    }

  private:
    Runtime &runtime_;
    std::vector<std::shared_ptr<Stream>> streams_;
};

// The first byte that two regions do not have in common; none: no address.
uint64_t first_difference(const Region &region, const std::byte *now, const std::byte *held, const Extent &extent) {
    for (uint64_t plane = 0; plane < extent.planes; ++plane) {
        for (uint64_t row = 0; row < extent.rows; ++row, held += extent.width) {
            const uint64_t at = plane * region.plane + row * region.pitch;
            const std::byte *const changed = std::mismatch(held, held + extent.width, now + at).first;
            if (changed != held + extent.width) return region.address + at + uint64_t(changed - held);
        }
    }
    return 0;
}

// The host has filled the source again before the copy has read it.
void report_changed_source(Runtime &runtime, const char *name, int64_t stream, uint64_t address) {
    HazardRecord record;
    record.kind = HazardKind::launch_race;
    record.address = address;
    record.message = std::string(name) + " in stream " + std::to_string(stream) + " reads " +
                     allocation_text(*runtime.memory, address) +
                     ", which the host has changed since that call: which value it copies is chance. The host must "
                     "wait for the copy (cudaStreamSynchronize, cudaEventSynchronize) before it fills the memory "
                     "again, or fill another buffer meanwhile";
    LaunchReport report;
    report.kernel = name;
    report.hazards.push_back(std::move(record));
    tell(runtime, std::move(report));
}

Operation late_copy(Runtime &runtime, const char *name, const Region &to, const Region &from, const Extent &extent) {
    Operation operation;
    operation.node_type = cudaGraphNodeTypeMemcpy;
    operation.run = [&runtime, name, to, from, extent] {
        const std::byte *source = host_address(runtime, name, "source", from, extent);
        move_bytes(host_address(runtime, name, "destination", to, extent), to, source, from, extent);
    };
    return operation;
}

Operation late_fill(Runtime &runtime, const char *name, const Region &to, const Extent &extent, unsigned value,
                    unsigned element) {
    Operation operation;
    operation.node_type = cudaGraphNodeTypeMemset;
    operation.what = {"memset", {}, extent.width * extent.rows * extent.planes};
    operation.call = name;
    operation.regions = {touched(to, extent, true)};
    operation.regions.front().fill = (element == 1 ? value & 0xff : value) | uint64_t{element} << 32;
    operation.run = [&runtime, name, to, extent, value, element] {
        std::byte *begin = host_address(runtime, name, "memory", to, extent);
        for (uint64_t plane = 0; plane < extent.planes; ++plane) {
            for (uint64_t row = 0; row < extent.rows; ++row) {
                std::byte *at = begin + plane * to.plane + row * to.pitch;
                if (element == 1) {
                    std::memset(at, static_cast<int>(value & 0xff), extent.width);
                    continue;
                }
                for (uint64_t i = 0; i + element <= extent.width; i += element) std::memcpy(at + i, &value, element);
            }
        }
    };
    return operation;
}

}  // namespace

// What waits and what is late:
//   pageable -> device     async: the source is read now, the destination written late (at once for large copies)
//   device -> pageable     waits for the stream and is complete on return
//   host -> host           likewise
//   pinned or managed      late at both ends
//   blocking calls         wait for the stream and are complete on return, but device -> device copies stay late
void copy(Runtime &runtime, const char *name, const Region &to, const Region &from, const Extent &extent,
          cudaMemcpyKind kind, const std::shared_ptr<Stream> &stream, Timing timing) {
    if (extent.empty()) return;
    const Place to_place = locate(runtime, name, "destination", to, extent);
    const Place from_place = locate(runtime, name, "source", from, extent);
    check_kind(name, to_place, from_place, kind);
    runtime.reports.host.call(name, stream->number());
    const bool on_host = to_place != Place::device && from_place != Place::device;
    const bool within_device = to_place == Place::device && from_place == Place::device;
    const bool host_only = on_host && to_place != Place::managed && from_place != Place::managed;
    bool complete = timing == Timing::blocking ? !within_device : to_place == Place::pageable || host_only;
    if (from_place == Place::pageable && extent.width * extent.rows * extent.planes > kLargestSnapshot) complete = true;
    if (stream->capture) {
        if (timing == Timing::blocking) {
            spoil(runtime, stream->capture, cudaErrorStreamCaptureImplicit,
                  std::string(name) + ": stream " + std::to_string(stream->number()) +
                      " is captured, and the call would wait for what does not run before the graph is launched: take "
                      "the function that ends with Async");
        }
        complete = false;
    }

    Operation operation;
    if (from_place == Place::pageable && !complete && !stream->capture) {
        Region packed{0, extent.width, extent.width * extent.rows};
        std::vector<std::byte> snapshot(packed.plane * extent.planes);
        move_bytes(snapshot.data(), packed, reinterpret_cast<const std::byte *>(from.address), from, extent);
        operation.node_type = cudaGraphNodeTypeMemcpy;
        operation.run = [&runtime, name, to, packed, extent, snapshot = std::move(snapshot)] {
            move_bytes(host_address(runtime, name, "destination", to, extent), to, snapshot.data(), packed, extent);
        };
    } else {
        operation = late_copy(runtime, name, to, from, extent);
    }
    // Where nothing is queued, only the host can change the source before the copy reads it.
    const bool by_host = from_place == Place::pinned || from_place == Place::managed;
    if (by_host && !complete && !stream->capture && runtime.options.hazards && !runtime.scheduler.has_queued() &&
        extent.width * extent.rows * extent.planes <= kLargestSnapshot) {
        const Region packed{0, extent.width, extent.width * extent.rows};
        std::vector<std::byte> held(packed.plane * extent.planes);
        move_bytes(held.data(), packed, host_address(runtime, name, "source", from, extent), from, extent);
        operation.run = [&runtime, name, from, extent, held = std::move(held), number = stream->number(),
                         copies = std::move(operation.run)] {
            const std::byte *const now = host_address(runtime, name, "source", from, extent);
            if (const uint64_t at = first_difference(from, now, held.data(), extent))
                report_changed_source(runtime, name, number, at);
            copies();
        };
    }
    operation.what = label(to_place, from_place, extent);
    operation.call = name;
    operation.regions = regions_of(to, to_place, from, from_place, extent);
    const bool apart = timing == Timing::blocking && within_device;
    const BetweenDevices others(runtime, apart ? owner(runtime, to.address) : 0,
                                apart ? owner(runtime, from.address) : 0);
    others.add_dependencies(operation);
    const Ticket ticket = runtime.scheduler.enqueue(stream, std::move(operation));
    others.let_wait(ticket);
    if (complete) {
        runtime.scheduler.wait(ticket);
        runtime.reports.synchronized();
    }
}

void fill(Runtime &runtime, const char *name, const Region &to, const Extent &extent, unsigned value, unsigned element,
          const std::shared_ptr<Stream> &stream, Timing timing) {
    if (extent.empty()) return;
    const Place place = locate(runtime, name, "memory", to, extent);
    if (place == Place::pageable) {
        say_undone(std::string(name) + ": " + hex(to.address) + " is host memory");
        throw Failure{cudaErrorInvalidValue};
    }
    runtime.reports.host.call(name, stream->number());
    const bool complete = timing == Timing::blocking && place != Place::device && !stream->capture;
    Operation operation = late_fill(runtime, name, to, extent, value, element);
    const Ticket ticket = runtime.scheduler.enqueue(stream, std::move(operation));
    if (complete) runtime.scheduler.wait(ticket);
}

Operation make_copy(Runtime &runtime, const char *name, const Region &to, const Region &from, const Extent &extent,
                    cudaMemcpyKind kind) {
    const Place to_place = locate(runtime, name, "destination", to, extent);
    const Place from_place = locate(runtime, name, "source", from, extent);
    check_kind(name, to_place, from_place, kind);
    Operation operation = late_copy(runtime, name, to, from, extent);
    operation.what = label(to_place, from_place, extent);
    operation.call = name;
    operation.regions = regions_of(to, to_place, from, from_place, extent);
    return operation;
}

Operation make_fill(Runtime &runtime, const char *name, const Region &to, const Extent &extent, unsigned value,
                    unsigned element) {
    if (locate(runtime, name, "memory", to, extent) == Place::pageable) throw Failure{cudaErrorInvalidValue};
    return late_fill(runtime, name, to, extent, value, element);
}

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
        say_undone(std::string(name) + ": the " + side + ", " + box(extent.width, extent.rows, extent.planes) +
                   " at (" + std::to_string(x) + " bytes, " + std::to_string(y) + ", " + std::to_string(z) +
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
