// Streams and events, and host functions in streams.
#include <algorithm>

#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaStreamSynchronize, cudaStreamSynchronize_ptsz);
WARPSIM_TWIN(cudaStreamQuery, cudaStreamQuery_ptsz);
WARPSIM_TWIN(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz);
WARPSIM_TWIN(cudaStreamGetFlags, cudaStreamGetFlags_ptsz);
WARPSIM_TWIN(cudaStreamGetPriority, cudaStreamGetPriority_ptsz);
WARPSIM_TWIN(cudaStreamGetId, cudaStreamGetId_ptsz);
WARPSIM_TWIN(cudaStreamGetDevice, cudaStreamGetDevice_ptsz);
WARPSIM_TWIN(cudaStreamAddCallback, cudaStreamAddCallback_ptsz);
WARPSIM_TWIN(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz);
WARPSIM_TWIN(cudaStreamCopyAttributes, cudaStreamCopyAttributes_ptsz);
WARPSIM_TWIN(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz);
WARPSIM_TWIN(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz);
WARPSIM_TWIN(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz);
WARPSIM_TWIN(cudaEventRecord, cudaEventRecord_ptsz);
WARPSIM_TWIN(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz);

namespace {

constexpr int kLowestPriority = 0, kHighestPriority = -5;

cudaError_t create_stream(cudaStream_t *result, unsigned flags, int priority) {
    return api([&](Runtime &runtime) {
        if (!result || flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) return cudaErrorInvalidValue;
        *result = runtime.scheduler.create(flags, std::clamp(priority, kHighestPriority, kLowestPriority))->handle();
        return cudaSuccess;
    });
}

// A call about one stream.
template <class F>
cudaError_t with_stream(cudaStream_t handle, bool per_thread, F body) {
    return api([&](Runtime &runtime) { return body(runtime, runtime.scheduler.resolve(handle, per_thread)); });
}

// An operation that only takes its place in the queue.
Operation mark() {
    Operation operation;
    operation.run = [] {};
    return operation;
}

// Waiting for a stream under capture is an error that spoils the capture.
void refuse_capture(Stream &stream) {
    if (!stream.capture) return;
    stream.capture_status = cudaStreamCaptureStatusInvalidated;
    throw Failure{cudaErrorStreamCaptureUnsupported};
}

cudaError_t synchronize_stream(cudaStream_t handle, bool per_thread) {
    return api_waiting([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
        refuse_capture(*stream);
        runtime.reports.host.call("cudaStreamSynchronize", stream->number());
        // For the legacy stream: all that it would have to wait for, too.
        runtime.scheduler.wait(stream->legacy ? runtime.scheduler.enqueue(stream, mark()) : Scheduler::last(stream));
        return cudaSuccess;
    });
}

cudaError_t query_stream(cudaStream_t handle, bool per_thread) {
    return api_waiting([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
        refuse_capture(*stream);
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

cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
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
        if (stream->capture) return cudaErrorStreamCaptureIsolation;
        runtime.reports.host.call("cudaStreamWaitEvent", stream->number());
        if (!event->ticket.stream) return cudaSuccess;  // never recorded
        Operation operation = mark();                   // also for a record that is done: what is promised stays so
        operation.what.kind = "event_wait";
        operation.after.push_back(event->ticket);
        runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags, bool per_thread) {
    return with_stream(stream_handle, per_thread, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
        if (flags & ~static_cast<unsigned>(cudaEventRecordExternal)) return cudaErrorInvalidValue;
        const auto event = runtime.events.resolve(handle);
        if (event->device != stream->device) {
            say("cudaEventRecord: the event is of device " + std::to_string(event->device) +
                ", and the stream of device " + std::to_string(stream->device) +
                ": an event is recorded in streams of the device that it was made for");
            return cudaErrorInvalidResourceHandle;
        }
        if (stream->capture) {
            event->captured = stream->capture;
            event->captured_tails = stream->tails;
            return cudaSuccess;
        }
        event->captured = nullptr;
        event->captured_tails.clear();
        event->time = std::make_shared<Event::Clock::time_point>();
        runtime.reports.host.call("cudaEventRecord", stream->number());
        Operation operation;
        operation.node_type = cudaGraphNodeTypeEventRecord;
        operation.what.kind = "event_record";
        operation.run = [&runtime, time = event->time] { *time = runtime.events.now(); };
        event->ticket = runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

cudaError_t add_host_function(cudaStream_t handle, std::function<void()> run, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
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

cudaError_t host_function(cudaStream_t stream, cudaHostFn_t function, void *data, bool per_thread) {
    if (!function) return record(cudaErrorInvalidValue);
    return add_host_function(stream, [=] { function(data); }, per_thread);
}

cudaError_t callback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags, bool per_thread) {
    if (!function || flags) return record(cudaErrorInvalidValue);
    return add_host_function(stream, [=] { function(stream, cudaSuccess, data); }, per_thread);
}

cudaError_t stream_flags(cudaStream_t handle, unsigned *flags, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &, const std::shared_ptr<Stream> &stream) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = stream->flags;
        return cudaSuccess;
    });
}

cudaError_t stream_priority(cudaStream_t handle, int *priority, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &, const std::shared_ptr<Stream> &stream) {
        if (!priority) return cudaErrorInvalidValue;
        *priority = stream->priority;
        return cudaSuccess;
    });
}

cudaError_t stream_id(cudaStream_t handle, unsigned long long *id, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &, const std::shared_ptr<Stream> &stream) {
        if (!id) return cudaErrorInvalidValue;
        *id = stream->id;
        return cudaSuccess;
    });
}

cudaError_t stream_device(cudaStream_t handle, int *device, bool per_thread) {
    return with_stream(handle, per_thread, [&](Runtime &, const std::shared_ptr<Stream> &stream) {
        if (!device) return cudaErrorInvalidValue;
        *device = static_cast<int>(stream->device);
        return cudaSuccess;
    });
}

// For hints that change nothing here: the stream must exist.
cudaError_t accept(cudaStream_t handle, bool per_thread) {
    return with_stream(handle, per_thread, [](Runtime &, const std::shared_ptr<Stream> &) { return cudaSuccess; });
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
    return with_stream(handle, false, [](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
        runtime.scheduler.destroy(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return synchronize_stream(stream, false);
}
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    return synchronize_stream(stream, true);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return query_stream(stream, false);
}
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
    return query_stream(stream, true);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return wait_event(stream, event, flags, false);
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return wait_event(stream, event, flags, true);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    return stream_flags(stream, flags, false);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned *flags) {
    return stream_flags(stream, flags, true);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    return stream_priority(stream, priority, false);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority) {
    return stream_priority(stream, priority, true);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    return stream_id(stream, id, false);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *id) {
    return stream_id(stream, id, true);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    return stream_device(stream, device, false);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int *device) {
    return stream_device(stream, device, true);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    return host_function(stream, function, data, false);
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void *data) {
    return host_function(stream, function, data, true);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
    return callback(stream, function, data, flags, false);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
    return callback(stream, function, data, flags, true);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *, size_t, unsigned) {
    return accept(stream, false);
}
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void *, size_t, unsigned) {
    return accept(stream, true);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue *) {
    return accept(stream, false);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue *) {
    return accept(stream, true);
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID, cudaStreamAttrValue *value) {
    if (!value) return record(cudaErrorInvalidValue);
    *value = {};
    return accept(stream, false);
}
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID, cudaStreamAttrValue *value) {
    if (!value) return record(cudaErrorInvalidValue);
    *value = {};
    return accept(stream, true);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    const cudaError_t code = accept(to, false);
    return code == cudaSuccess ? accept(from, false) : code;
}
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
    const cudaError_t code = accept(to, true);
    return code == cudaSuccess ? accept(from, true) : code;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    return api([&](Runtime &runtime) {
        if (!event || flags & ~kKnown) return cudaErrorInvalidValue;
        *event = reinterpret_cast<cudaEvent_t>(runtime.events.create(flags).get());
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return api([&](Runtime &runtime) {
        runtime.events.destroy(event);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return record_event(event, stream, 0, false);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    return record_event(event, stream, 0, true);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return record_event(event, stream, flags, false);
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return record_event(event, stream, flags, true);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return api_waiting([&](Runtime &runtime) {
        const auto event = runtime.events.resolve(handle);
        if (event->captured) return cudaErrorCapturedEvent;
        runtime.reports.host.call("cudaEventQuery", HostLog::kNoStream);
        if (event->done()) {
            runtime.scheduler.learn(event->ticket);
            return cudaSuccess;
        }
        runtime.scheduler.progress(event->ticket);
        return cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    return api_waiting([&](Runtime &runtime) {
        const auto event = runtime.events.resolve(handle);
        if (event->captured) return cudaErrorCapturedEvent;
        runtime.reports.host.call("cudaEventSynchronize", HostLog::kNoStream);
        runtime.scheduler.wait(event->ticket);
        return cudaSuccess;
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
    return api([&](Runtime &runtime) {
        if (!milliseconds) return cudaErrorInvalidValue;
        const auto start = runtime.events.resolve(start_handle), end = runtime.events.resolve(end_handle);
        if ((start->flags | end->flags) & cudaEventDisableTiming || !start->time || !end->time) {
            return cudaErrorInvalidResourceHandle;
        }
        if (start->device != end->device) return cudaErrorInvalidResourceHandle;
        if (!start->done() || !end->done()) return cudaErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
        return cudaSuccess;
    });
}
