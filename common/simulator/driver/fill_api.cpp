// Fills: cuMemset*, and the values that a stream writes: cuStreamWriteValue*.
#include "driver/call.h"
#include "runtime/copy.h"

using namespace warpsim;
using namespace warpsim::driver;
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
