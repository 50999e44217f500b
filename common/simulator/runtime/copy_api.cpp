// cudaMemcpy* and cudaMemset*.
#include "runtime/copy.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

// Where a call's work goes and whether it waits.
struct Target {
    cudaStream_t stream = nullptr;
    Timing timing = Timing::blocking;
};

cudaError_t copy_regions(const char *name, const Region &to, const Region &from, const Extent &extent,
                         cudaMemcpyKind kind, const Target &target) {
    return api([&](Runtime &runtime) {
        copy(runtime, name, to, from, extent, kind, runtime.scheduler.resolve(target.stream), target.timing);
        return cudaSuccess;
    });
}

cudaError_t copy_1d(const char *name, void *to, const void *from, size_t count, cudaMemcpyKind kind,
                    const Target &target) {
    return copy_regions(name, {address_of(to)}, {address_of(from)}, {count}, kind, target);
}

cudaError_t copy_2d(const char *name, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, const Target &target) {
    if (width && height && (width > to_pitch || width > from_pitch)) return record(cudaErrorInvalidPitchValue);
    return copy_regions(name, {address_of(to), to_pitch}, {address_of(from), from_pitch}, {width, height}, kind,
                        target);
}

cudaError_t copy_3d(const char *name, const cudaMemcpy3DParms *p, const Target &target) {
    if (!p) return record(cudaErrorInvalidValue);
    return api([&](Runtime &runtime) {
        const Copy3D box = copy_3d_of(runtime, name, *p);
        copy(runtime, name, box.to, box.from, box.extent, p->kind, runtime.scheduler.resolve(target.stream),
             target.timing);
        return cudaSuccess;
    });
}

// A variable's address at `offset`; throws Failure unless `count` bytes from there lie in it.
uint64_t symbol_address(Runtime &runtime, const char *name, const void *symbol, size_t count, size_t offset) {
    const Variable &variable = *runtime.modules.find_variable(symbol);
    const auto [address, bytes] = runtime.modules.address_of(variable);
    if (offset > bytes || count > bytes - offset) {
        say_undone(std::string(name) + ": " + std::to_string(count) + " bytes at offset " + std::to_string(offset) +
                   " of " + variable.name + ", which has " + std::to_string(bytes));
        throw Failure{cudaErrorInvalidValue};
    }
    return address + offset;
}

cudaError_t copy_to_symbol(const char *name, const void *symbol, const void *from, size_t count, size_t offset,
                           cudaMemcpyKind kind, const Target &target) {
    return api([&](Runtime &runtime) {
        const uint64_t to = symbol_address(runtime, name, symbol, count, offset);
        copy(runtime, name, {to}, {address_of(from)}, {count}, kind, runtime.scheduler.resolve(target.stream),
             target.timing);
        return cudaSuccess;
    });
}

cudaError_t copy_from_symbol(const char *name, void *to, const void *symbol, size_t count, size_t offset,
                             cudaMemcpyKind kind, const Target &target) {
    return api([&](Runtime &runtime) {
        const uint64_t from = symbol_address(runtime, name, symbol, count, offset);
        copy(runtime, name, {address_of(to)}, {from}, {count}, kind, runtime.scheduler.resolve(target.stream),
             target.timing);
        return cudaSuccess;
    });
}

cudaError_t fill_region(const char *name, const Region &to, const Extent &extent, int value, const Target &target) {
    return api([&](Runtime &runtime) {
        fill(runtime, name, to, extent, static_cast<unsigned>(value), 1, runtime.scheduler.resolve(target.stream),
             target.timing);
        return cudaSuccess;
    });
}

cudaError_t fill_3d(const char *name, const cudaPitchedPtr &p, int value, const cudaExtent &e, const Target &target) {
    return fill_region(name, {address_of(p.ptr), p.pitch, p.pitch * p.ysize}, {e.width, e.height, e.depth}, value,
                       target);
}

Target async(cudaStream_t stream) {
    return {stream, Timing::async};
}

constexpr Target kBlocking{};

}  // namespace

cudaError_t cudaMemcpy(void *to, const void *from, size_t count, cudaMemcpyKind kind) {
    return copy_1d("cudaMemcpy", to, from, count, kind, kBlocking);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_1d("cudaMemcpyAsync", to, from, count, kind, async(stream));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
    return copy_2d("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind, kBlocking);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind, async(stream));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    return copy_3d("cudaMemcpy3D", p, kBlocking);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
    return copy_3d("cudaMemcpy3DAsync", p, async(stream));
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset, cudaMemcpyKind kind) {
    return copy_to_symbol("cudaMemcpyToSymbol", symbol, from, count, offset, kind, kBlocking);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_to_symbol("cudaMemcpyToSymbolAsync", symbol, from, count, offset, kind, async(stream));
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
    return copy_from_symbol("cudaMemcpyFromSymbol", to, symbol, count, offset, kind, kBlocking);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return copy_from_symbol("cudaMemcpyFromSymbolAsync", to, symbol, count, offset, kind, async(stream));
}

cudaError_t cudaMemset(void *to, int value, size_t count) {
    return fill_region("cudaMemset", {address_of(to)}, {count}, value, kBlocking);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t count, cudaStream_t stream) {
    return fill_region("cudaMemsetAsync", {address_of(to)}, {count}, value, async(stream));
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    return fill_region("cudaMemset2D", {address_of(to), pitch}, {width, height}, value, kBlocking);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    return fill_region("cudaMemset2DAsync", {address_of(to), pitch}, {width, height}, value, async(stream));
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    return fill_3d("cudaMemset3D", to, value, extent, kBlocking);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
    return fill_3d("cudaMemset3DAsync", to, value, extent, async(stream));
}
