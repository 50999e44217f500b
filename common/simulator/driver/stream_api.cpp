// Streams and events: cuStream*, and what captures streams; cuEvent*.
#include <memory>

#include "driver/call.h"
#include "driver/contexts.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

CUresult create(CUstream *stream, unsigned flags, int priority, const char *function) {
    return call(
        [&] {
            want(stream);
            check(cudaStreamCreateWithPriority(stream, flags, priority));
            own(Resource::stream, *stream);
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

}  // namespace

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    return create(stream, flags, 0, __func__);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    return create(stream, flags, priority, __func__);
}

CUresult cuStreamDestroy(CUstream stream) {
    return call([&] {
        check(cudaStreamDestroy(stream));
        disown(stream);
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamSynchronize(CUstream stream) {
    return call([&] { return cudaStreamSynchronize(stream); });
}

CUresult cuStreamQuery(CUstream stream) {
    return call([&] { return cudaStreamQuery(stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return call([&] { return cudaStreamWaitEvent(stream, event, flags); });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
    return call([&] { return cudaStreamGetFlags(stream, flags); });
}

CUresult cuStreamGetPriority(CUstream stream, int *priority) {
    return call([&] { return cudaStreamGetPriority(stream, priority); });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
    return call([&] { return cudaStreamGetId(stream, id); });
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device) {
    return call([&] { return cudaStreamGetDevice(stream, device); });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    return call([&] {
        want(context);
        unsigned flags;
        check(cudaStreamGetFlags(stream, &flags));  // there is such a stream
        *context = handle_of(owner_of(stream));
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data, unsigned flags) {
    return call([&] {
        want(function && !flags);
        struct Callback {
            CUstream stream;
            CUstreamCallback function;
            void *data;
        };
        const auto run = [](void *p) {
            const std::unique_ptr<Callback> callback(static_cast<Callback *>(p));
            callback->function(callback->stream, CUDA_SUCCESS, callback->data);
        };
        auto callback = std::make_unique<Callback>(Callback{stream, function, data});
        check(cudaLaunchHostFunc(stream, run, callback.get()));
        callback.release();
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
    return call([&] { return cudaStreamAttachMemAsync(stream, reinterpret_cast<void *>(address), bytes, flags); });
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    return call([&] { return cudaStreamCopyAttributes(to, from); });
}

// The runtime's attributes of streams have the same numbers and values.
CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value) {
    static_assert(sizeof(CUstreamAttrValue) == sizeof(cudaStreamAttrValue));
    return call([&] {
        return cudaStreamGetAttribute(stream, static_cast<cudaStreamAttrID>(attribute),
                                      reinterpret_cast<cudaStreamAttrValue *>(value));
    });
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value) {
    return call([&] {
        return cudaStreamSetAttribute(stream, static_cast<cudaStreamAttrID>(attribute),
                                      reinterpret_cast<const cudaStreamAttrValue *>(value));
    });
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    return call([&] { return cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    return call([&] { return cudaStreamEndCapture(stream, graph); });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    return call([&] { return cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus *>(status)); });
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count) {
    return call([&] {
        unsigned long long number = 0;
        check(cudaStreamGetCaptureInfo(stream, reinterpret_cast<cudaStreamCaptureStatus *>(status), &number, graph,
                                       dependencies, reinterpret_cast<const cudaGraphEdgeData **>(edges), count));
        if (id) *id = number;
        return CUDA_SUCCESS;
    });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    return call([&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode *>(mode)); });
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    return call([&] {
        check(cudaEventCreateWithFlags(event, flags));
        own(Resource::event, *event);
        return CUDA_SUCCESS;
    });
}

CUresult cuEventDestroy(CUevent event) {
    return call([&] {
        check(cudaEventDestroy(event));
        disown(event);
        return CUDA_SUCCESS;
    });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return call([&] { return cudaEventRecord(event, stream); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return call([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}

CUresult cuEventQuery(CUevent event) {
    return call([&] { return cudaEventQuery(event); });
}

CUresult cuEventSynchronize(CUevent event) {
    return call([&] { return cudaEventSynchronize(event); });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    return call([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}
