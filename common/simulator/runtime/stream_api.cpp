// Streams, and host functions in streams.
#include <algorithm>

#include "runtime/capture.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

constexpr int kLowestPriority = 0, kHighestPriority = -5;

cudaError_t create_stream(cudaStream_t *result, unsigned flags, int priority) {
    return api([&](Runtime &runtime) {
        if (!result || flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) return cudaErrorInvalidValue;
        *result = runtime.scheduler.create(flags, std::clamp(priority, kHighestPriority, kLowestPriority))->handle();
        return cudaSuccess;
    });
}

// An operation that only takes its place in the queue.
Operation mark() {
    Operation operation;
    operation.run = [] {};
    return operation;
}

cudaError_t add_host_function(cudaStream_t handle, std::function<void()> run) {
    return with_stream(handle, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
        runtime.reports.host.call("cudaLaunchHostFunc", stream->number());
        Operation operation;
        operation.what.kind = "host_function";
        operation.run = std::move(run);
        operation.host_function = true;
        operation.node_type = cudaGraphNodeTypeHost;
        runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

template <class Value, class Property>
cudaError_t get_property(cudaStream_t handle, Value *result, Property property) {
    return with_stream(handle, [&](Runtime &, const std::shared_ptr<Stream> &stream) {
        if (!result) return cudaErrorInvalidValue;
        *result = property(*stream);
        return cudaSuccess;
    });
}

// For hints that change nothing here: the stream must exist.
cudaError_t accept(cudaStream_t handle) {
    return with_stream(handle, [](Runtime &, const std::shared_ptr<Stream> &) { return cudaSuccess; });
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return create_stream(stream, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return create_stream(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    return create_stream(stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return api([&](Runtime &) {
        if (least) *least = kLowestPriority;
        if (greatest) *greatest = kHighestPriority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
        return record(cudaErrorInvalidResourceHandle);
    return with_stream(handle, [](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
        runtime.scheduler.destroy(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return api_waiting([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        refuse_capture(runtime, "cudaStreamSynchronize", *stream);
        runtime.reports.host.call("cudaStreamSynchronize", stream->number());
        // For the legacy stream: all that it would have to wait for, too.
        runtime.scheduler.wait(stream->legacy ? runtime.scheduler.enqueue(stream, mark()) : Scheduler::last(stream));
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return api_waiting([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        refuse_capture(runtime, "cudaStreamQuery", *stream);
        runtime.reports.host.call("cudaStreamQuery", stream->number());
        const Ticket ticket = Scheduler::last(stream);
        if (ticket.done()) {
            runtime.scheduler.learn(ticket);
            return cudaSuccess;
        }
        runtime.scheduler.progress(ticket);
        return cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
    return with_stream(handle, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
        if (flags & ~static_cast<unsigned>(cudaEventWaitExternal)) return cudaErrorInvalidValue;
        const auto event = runtime.events.resolve(event_handle);
        if (event->captured) {
            if (stream->legacy) return cudaErrorStreamCaptureImplicit;
            if (stream->capture && stream->capture != event->captured) return cudaErrorStreamCaptureMerge;
            stream->capture = event->captured;  // the stream joins the capture
            stream->capture_status = cudaStreamCaptureStatusActive;
            for (Graph::Node *node : event->captured_tails)
                if (std::find(stream->tails.begin(), stream->tails.end(), node) == stream->tails.end())
                    stream->tails.push_back(node);
            return cudaSuccess;
        }
        if (stream->capture) {
            spoil(runtime, stream->capture, cudaErrorStreamCaptureIsolation,
                  "cudaStreamWaitEvent: stream " + std::to_string(stream->number()) +
                      " is captured, and the event was recorded outside of the capture: its graph could not know what "
                      "to wait for");
        }
        runtime.reports.host.call("cudaStreamWaitEvent", stream->number());
        if (!event->ticket.stream) return cudaSuccess;  // never recorded
        Operation operation = mark();                   // also for a record that is done: what is promised stays so
        operation.what.kind = "event_wait";
        operation.after.push_back(event->ticket);
        runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
    return get_property(handle, flags, [](const Stream &stream) { return stream.flags; });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    return get_property(handle, priority, [](const Stream &stream) { return stream.priority; });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id) {
    return get_property(handle, id, [](const Stream &stream) { return stream.id; });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device) {
    return get_property(handle, device, [](const Stream &stream) { return static_cast<int>(stream.device); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    if (!function) return record(cudaErrorInvalidValue);
    return add_host_function(stream, [=] { function(data); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
    if (!function || flags) return record(cudaErrorInvalidValue);
    return add_host_function(stream, [=] { function(stream, cudaSuccess, data); });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *, size_t, unsigned) {
    return accept(stream);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue *) {
    return accept(stream);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID, cudaStreamAttrValue *value) {
    if (!value) return record(cudaErrorInvalidValue);
    *value = {};
    return accept(stream);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    const cudaError_t code = accept(to);
    return code == cudaSuccess ? accept(from) : code;
}
