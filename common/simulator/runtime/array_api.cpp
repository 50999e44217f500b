// CUDA arrays: allocation, questions and copies.
#include "runtime/copy.h"

// Programs still call what the header calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

cudaError_t allocate(const char *name, cudaArray_t *result, const cudaChannelFormatDesc *channels,
                     const cudaExtent &extent, unsigned flags) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        *result = reinterpret_cast<cudaArray_t>(&runtime.arrays.make(runtime, name, channels, extent, flags));
        return cudaSuccess;
    });
}

// Waits for all streams first: queued work may still use the array.
template <class Handle>
cudaError_t release(const char *name, Handle handle) {
    if (!handle) return api([](Runtime &) { return cudaSuccess; });
    return api_waiting([&](Runtime &runtime) {
        runtime.reports.host.call(name, HostLog::kNoStream);
        runtime.scheduler.wait_all();
        DeviceArray &array = runtime.arrays.find(name, handle);
        if (array.is_level) {
            say(std::string(name) + ": a level goes with its mipmapped array");
            return cudaErrorInvalidValue;
        }
        runtime.arrays.remove(runtime, array);
        return cudaSuccess;
    });
}

// Which call: its name for messages, and whether it waits, and for which stream.
struct Call {
    const char *name;
    Timing timing = Timing::blocking;
    cudaStream_t stream = nullptr;
};

// One side of a copy.
struct Side {
    cudaArray_const_t array = nullptr;  // null: the memory at `pointer`
    size_t x = 0, y = 0;                // in the array: bytes and rows
    const void *pointer = nullptr;
    size_t pitch = 0;
};

// rows 0: `width` bytes that run on from row to row, as the deprecated calls have it.
cudaError_t copy_sides(const Call &call, const Side &to, const Side &from, size_t width, size_t rows,
                       cudaMemcpyKind kind) {
    return api([&](Runtime &runtime) {
        const bool runs_on = rows == 0;
        const Extent extent{width, runs_on ? 1 : rows};
        const auto region = [&](const Side &side, const char *what) {
            if (!side.array) {
                if (!runs_on && rows > 1 && side.pitch < width) throw Failure{cudaErrorInvalidPitchValue};
                return Region{address_of(side.pointer), side.pitch};
            }
            const DeviceArray &array = runtime.arrays.find(call.name, side.array);
            if (!runs_on) return array_region(call.name, what, array, side.x, side.y, 0, extent);
            const Image &image = array.levels[0];
            const Region start = array_region(call.name, what, array, side.x, side.y, 0, {0});
            if (width > image.slice - (start.address - image.address)) {
                say(std::string(call.name) + ": the " + what + " is not inside of the array");
                throw Failure{cudaErrorInvalidValue};
            }
            return start;
        };
        copy(runtime, call.name, region(to, "destination"), region(from, "source"), extent, kind,
             runtime.scheduler.resolve(call.stream), call.timing);
        return cudaSuccess;
    });
}

cudaError_t copy_box(const Call &call, const Side &to, const Side &from, size_t width, size_t rows,
                     cudaMemcpyKind kind) {
    if (!rows || !width) return api([](Runtime &) { return cudaSuccess; });
    return copy_sides(call, to, from, width, rows, kind);
}

cudaError_t copy_run(const Call &call, const Side &to, const Side &from, size_t count, cudaMemcpyKind kind) {
    return copy_sides(call, to, from, count, 0, kind);
}

Call waiting(const char *name) {
    return {name};
}
Call late(const char *name, cudaStream_t stream) {
    return {name, Timing::async, stream};
}

}  // namespace

cudaError_t cudaMallocArray(cudaArray_t *result, const cudaChannelFormatDesc *channels, size_t width, size_t height,
                            unsigned flags) {
    if (flags & (cudaArrayLayered | cudaArrayCubemap)) return record(cudaErrorInvalidValue);
    return allocate("cudaMallocArray", result, channels, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *result, const cudaChannelFormatDesc *channels, cudaExtent extent,
                              unsigned flags) {
    return allocate("cudaMalloc3DArray", result, channels, extent, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *result, const cudaChannelFormatDesc *channels,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        DeviceArray &array =
            runtime.arrays.make(runtime, "cudaMallocMipmappedArray", channels, extent, flags, levels ? levels : 1);
        *result = reinterpret_cast<cudaMipmappedArray_t>(&array);
        return cudaSuccess;
    });
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *result, cudaMipmappedArray_const_t handle, unsigned level) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        DeviceArray &array = runtime.arrays.find("cudaGetMipmappedArrayLevel", handle);
        *result = reinterpret_cast<cudaArray_t>(&runtime.arrays.level(array, level));
        return cudaSuccess;
    });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    return release("cudaFreeArray", array);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    return release("cudaFreeMipmappedArray", array);
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *channels, cudaExtent *extent, unsigned *flags, cudaArray_t handle) {
    return api([&](Runtime &runtime) {
        const DeviceArray &array = runtime.arrays.find("cudaArrayGetInfo", handle);
        if (channels) *channels = array.channels;
        if (extent) *extent = array.extent;
        if (flags) *flags = array.flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *channels, cudaArray_const_t handle) {
    return api([&](Runtime &runtime) {
        if (!channels) return cudaErrorInvalidValue;
        *channels = runtime.arrays.find("cudaGetChannelDesc", handle).channels;
        return cudaSuccess;
    });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
    return copy_box(waiting("cudaMemcpy2DToArray"), {to, x, y}, {nullptr, 0, 0, from, pitch}, width, height, kind);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_box(late("cudaMemcpy2DToArrayAsync", stream), {to, x, y}, {nullptr, 0, 0, from, pitch}, width, height,
                    kind);
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
    return copy_box(waiting("cudaMemcpy2DFromArray"), {nullptr, 0, 0, to, pitch}, {from, x, y}, width, height, kind);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_box(late("cudaMemcpy2DFromArrayAsync", stream), {nullptr, 0, 0, to, pitch}, {from, x, y}, width, height,
                    kind);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t x,
                                     size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
    return copy_box(waiting("cudaMemcpy2DArrayToArray"), {to, to_x, to_y}, {from, x, y}, width, height, kind);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t count, cudaMemcpyKind kind) {
    return copy_run(waiting("cudaMemcpyToArray"), {to, x, y}, {nullptr, 0, 0, from}, count, kind);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t count,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_run(late("cudaMemcpyToArrayAsync", stream), {to, x, y}, {nullptr, 0, 0, from}, count, kind);
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
    return copy_run(waiting("cudaMemcpyFromArray"), {nullptr, 0, 0, to}, {from, x, y}, count, kind);
}

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_run(late("cudaMemcpyFromArrayAsync", stream), {nullptr, 0, 0, to}, {from, x, y}, count, kind);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t x, size_t y,
                                   size_t count, cudaMemcpyKind kind) {
    return copy_run(waiting("cudaMemcpyArrayToArray"), {to, to_x, to_y}, {from, x, y}, count, kind);
}
