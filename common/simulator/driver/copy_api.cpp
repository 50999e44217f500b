// Copies: cuMemcpy*, which do what the runtime's copies do, see runtime/copy.h. Fills: cuMemset*, and the values that a
// stream writes: cuStreamWriteValue*.
#include <cstdint>

#include "driver/call.h"
#include "driver/formats.h"
#include "runtime/copy.h"

using namespace warpsim;
using namespace warpsim::driver;

using rt::Extent;
using rt::Region;
using rt::Timing;

namespace {

struct Target {
    CUstream stream = nullptr;
    Timing timing = Timing::blocking;
};

constexpr Target kBlocking{};

Target async(CUstream stream) {
    return {stream, Timing::async};
}

CUresult copy_line(uint64_t to, uint64_t from, size_t bytes, cudaMemcpyKind kind, const Target &target,
                   const char *function) {
    return call_runtime(
        [&](rt::Runtime &runtime) {
            const auto stream = runtime.scheduler.resolve(target.stream);
            rt::copy(runtime, current_function(), {to}, {from}, {bytes}, kind, stream, target.timing);
            return cudaSuccess;
        },
        function);
}

// One side of a copy in several dimensions.
struct Side {
    const char *name;
    CUmemorytype type;
    uint64_t host, device;
    CUarray array;
    uint64_t x, y, z;  // x in bytes
    uint64_t pitch, height;
};

Region region_of(rt::Runtime &runtime, const Side &side, const Extent &extent) {
    const char *const function = current_function();
    if (side.type == CU_MEMORYTYPE_ARRAY) {
        const auto handle = reinterpret_cast<cudaArray_const_t>(side.array);
        return rt::array_region(function, side.name, runtime.arrays.find(function, handle), side.x, side.y, side.z,
                                extent);
    }
    want(side.type == CU_MEMORYTYPE_HOST || side.type == CU_MEMORYTYPE_DEVICE || side.type == CU_MEMORYTYPE_UNIFIED);
    const uint64_t base = side.type == CU_MEMORYTYPE_HOST ? side.host : side.device;
    // 0: rows and planes that follow each other without a gap.
    const uint64_t pitch = side.pitch ? side.pitch : side.x + extent.width;
    const uint64_t plane = pitch * (side.height ? side.height : side.y + extent.rows);
    if (side.pitch) want(side.x <= pitch && extent.width <= pitch - side.x);
    if (side.height) want(side.y <= side.height && extent.rows <= side.height - side.y);
    return {base + side.z * plane + side.y * pitch + side.x, pitch, plane};
}

CUresult copy_box(const Side &to, const Side &from, const Extent &extent, const Target &target, const char *function) {
    return call_runtime(
        [&](rt::Runtime &runtime) {
            const auto stream = runtime.scheduler.resolve(target.stream);
            if (extent.empty()) return cudaSuccess;
            rt::copy(runtime, current_function(), region_of(runtime, to, extent), region_of(runtime, from, extent),
                     extent, kind_of(to.type, from.type), stream, target.timing);
            return cudaSuccess;
        },
        function);
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, const Target &target, const char *function) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    const Side to{"destination",
                  p->dstMemoryType,
                  rt::address_of(p->dstHost),
                  p->dstDevice,
                  p->dstArray,
                  p->dstXInBytes,
                  p->dstY,
                  0,
                  p->dstPitch,
                  0};
    const Side from{"source",
                    p->srcMemoryType,
                    rt::address_of(p->srcHost),
                    p->srcDevice,
                    p->srcArray,
                    p->srcXInBytes,
                    p->srcY,
                    0,
                    p->srcPitch,
                    0};
    return copy_box(to, from, {p->WidthInBytes, p->Height}, target, function);
}

// Of CUDA_MEMCPY3D and of the one between contexts, whose devices the addresses tell.
template <class Params>
CUresult copy_3d(const Params *p, const Target &target, const char *function) {
    if (!p || p->srcLOD || p->dstLOD) return CUDA_ERROR_INVALID_VALUE;
    const Side to{"destination", p->dstMemoryType, rt::address_of(p->dstHost),
                  p->dstDevice,  p->dstArray,      p->dstXInBytes,
                  p->dstY,       p->dstZ,          p->dstPitch,
                  p->dstHeight};
    const Side from{"source",     p->srcMemoryType, rt::address_of(p->srcHost),
                    p->srcDevice, p->srcArray,      p->srcXInBytes,
                    p->srcY,      p->srcZ,          p->srcPitch,
                    p->srcHeight};
    return copy_box(to, from, {p->WidthInBytes, p->Height, p->Depth}, target, function);
}

// Bytes from `offset` of a one-dimensional array.
Side line_of(const char *name, CUarray array, size_t offset) {
    return {name, CU_MEMORYTYPE_ARRAY, 0, 0, array, offset, 0, 0, 0, 0};
}

Side line_of(const char *name, const void *host) {
    return {name, CU_MEMORYTYPE_HOST, rt::address_of(host), 0, nullptr, 0, 0, 0, 0, 0};
}

Side line_of(const char *name, CUdeviceptr address) {
    return {name, CU_MEMORYTYPE_DEVICE, 0, address, nullptr, 0, 0, 0, 0, 0};
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_line(to, from, bytes, cudaMemcpyDefault, kBlocking, __func__);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy_line(to, from, bytes, cudaMemcpyDefault, async(stream), __func__);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
    return copy_line(to, rt::address_of(from), bytes, cudaMemcpyHostToDevice, kBlocking, __func__);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy_line(to, rt::address_of(from), bytes, cudaMemcpyHostToDevice, async(stream), __func__);
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
    return copy_line(rt::address_of(to), from, bytes, cudaMemcpyDeviceToHost, kBlocking, __func__);
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy_line(rt::address_of(to), from, bytes, cudaMemcpyDeviceToHost, async(stream), __func__);
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_line(to, from, bytes, cudaMemcpyDeviceToDevice, kBlocking, __func__);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy_line(to, from, bytes, cudaMemcpyDeviceToDevice, async(stream), __func__);
}
// The addresses tell the devices.
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
    return copy_line(to, from, bytes, cudaMemcpyDeviceToDevice, kBlocking, __func__);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
    return copy_line(to, from, bytes, cudaMemcpyDeviceToDevice, async(stream), __func__);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *p) {
    return copy_2d(p, kBlocking, __func__);
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *p) {
    return copy_2d(p, kBlocking, __func__);
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *p, CUstream stream) {
    return copy_2d(p, async(stream), __func__);
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D *p) {
    return copy_3d(p, kBlocking, __func__);
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *p, CUstream stream) {
    return copy_3d(p, async(stream), __func__);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p) {
    return copy_3d(p, kBlocking, __func__);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream) {
    return copy_3d(p, async(stream), __func__);
}

CUresult cuMemcpyHtoA(CUarray to, size_t offset, const void *from, size_t bytes) {
    return copy_box(line_of("destination", to, offset), line_of("source", from), {bytes}, kBlocking, __func__);
}
CUresult cuMemcpyHtoAAsync(CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream) {
    return copy_box(line_of("destination", to, offset), line_of("source", from), {bytes}, async(stream), __func__);
}
CUresult cuMemcpyAtoH(void *to, CUarray from, size_t offset, size_t bytes) {
    return copy_box(line_of("destination", to), line_of("source", from, offset), {bytes}, kBlocking, __func__);
}
CUresult cuMemcpyAtoHAsync(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
    return copy_box(line_of("destination", to), line_of("source", from, offset), {bytes}, async(stream), __func__);
}
CUresult cuMemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    return copy_box(line_of("destination", to, offset), line_of("source", from), {bytes}, kBlocking, __func__);
}
CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    return copy_box(line_of("destination", to), line_of("source", from, offset), {bytes}, kBlocking, __func__);
}
CUresult cuMemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
    return copy_box(line_of("destination", to, to_offset), line_of("source", from, from_offset), {bytes}, kBlocking,
                    __func__);
}

using rt::Timing;

namespace {

// `rows` of `width` elements.
CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t rows,
              CUstream stream_handle, Timing timing, const char *function) {
    return call_runtime(
        [&](rt::Runtime &runtime) {
            const auto stream = runtime.scheduler.resolve(stream_handle);
            size_t bytes = 0;
            want(to % element == 0 && pitch % element == 0 && !__builtin_mul_overflow(width, element, &bytes));
            rt::fill(runtime, current_function(), {to, pitch}, {bytes, rows}, value, element, stream, timing);
            return cudaSuccess;
        },
        function);
}

}  // namespace

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
    return fill(to, 0, value, 1, count, 1, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
    return fill(to, 0, value, 2, count, 1, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
    return fill(to, 0, value, 4, count, 1, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(to, 0, value, 1, count, 1, stream, Timing::async, __func__);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill(to, 0, value, 2, count, 1, stream, Timing::async, __func__);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fill(to, 0, value, 4, count, 1, stream, Timing::async, __func__);
}
CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
    return fill(to, pitch, value, 1, width, height, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
    return fill(to, pitch, value, 2, width, height, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
    return fill(to, pitch, value, 4, width, height, nullptr, Timing::blocking, __func__);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
    return fill(to, pitch, value, 1, width, height, stream, Timing::async, __func__);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
    return fill(to, pitch, value, 2, width, height, stream, Timing::async, __func__);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
    return fill(to, pitch, value, 4, width, height, stream, Timing::async, __func__);
}

// With its fence, which is the default; the kernels that wait for a value are written with that in mind.
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
    return fill(to, 0, value, 4, 1, 1, stream, Timing::async, __func__);
}
