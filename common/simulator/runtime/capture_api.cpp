// Stream capture.
#include <utility>

#include "runtime/graphs.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->capture) return cudaErrorIllegalState;
        stream->capture = std::make_shared<Graph>();
        stream->capture->origin = stream.get();
        stream->capture->id = ++runtime.captures;
        stream->capture_status = cudaStreamCaptureStatusActive;
        stream->tails.clear();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *result) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!result) return cudaErrorInvalidValue;
        *result = nullptr;
        const std::shared_ptr<Graph> graph = stream->capture;
        if (!graph) return cudaErrorIllegalState;
        if (graph->origin != stream.get()) return cudaErrorStreamCaptureUnmatched;
        bool valid = true;
        for (const auto &other : runtime.scheduler.streams()) {
            if (other->capture != graph) continue;
            valid = valid && other->capture_status == cudaStreamCaptureStatusActive;
            other->capture.reset();
            other->tails.clear();
            other->capture_status = cudaStreamCaptureStatusNone;
        }
        if (!valid) return cudaErrorStreamCaptureInvalidated;
        *result = runtime.graphs.add(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    return api([&](Runtime &runtime) {
        if (!status) return cudaErrorInvalidValue;
        *status = runtime.scheduler.resolve(handle)->capture_status;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!status) return cudaErrorInvalidValue;
        *status = stream->capture_status;
        if (id) *id = stream->capture ? stream->capture->id : 0;
        if (graph || dependencies || edges || count) {
            if (!stream->capture) return cudaSuccess;
            say("cudaStreamGetCaptureInfo: the graph of a capture is not available before it ends");
            return cudaErrorNotSupported;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    if (!mode) return record(cudaErrorInvalidValue);
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
}
