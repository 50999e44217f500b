#include "runtime/events.h"

#include <algorithm>

#include "runtime/capture.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace warpsim::rt {

std::shared_ptr<Event> Events::create(unsigned flags) {
    auto event = std::make_shared<Event>();
    event->flags = flags;
    event->device = current_device();
    events_[reinterpret_cast<cudaEvent_t>(event.get())] = event;
    return event;
}

std::shared_ptr<Event> Events::resolve(cudaEvent_t handle) const {
    const auto it = events_.find(handle);
    if (it == events_.end()) throw Failure{cudaErrorInvalidResourceHandle};
    return it->second;
}

void Events::destroy(cudaEvent_t handle) {
    if (!events_.erase(handle)) throw Failure{cudaErrorInvalidResourceHandle};
}

void Events::clear(unsigned device) {
    std::erase_if(events_, [&](const auto &event) { return event.second->device == device; });
}

Event::Clock::time_point Events::now() {
    last_ = std::max(Event::Clock::now(), last_ + std::chrono::microseconds(1));
    return last_;
}

}  // namespace warpsim::rt

namespace {

// An event of a capture is a place in its graph: there is nothing to wait for or to ask about.
void refuse_captured(Runtime &runtime, const char *name, const Event &event) {
    if (!event.captured) return;
    spoil(runtime, event.captured, cudaErrorCapturedEvent,
          std::string(name) +
              ": the event was recorded in a stream that is captured, and nothing of that runs before "
              "the graph is launched");
}

}  // namespace

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
    return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
    return with_stream(stream_handle, [&](Runtime &runtime, const std::shared_ptr<Stream> &stream) {
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

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return api_waiting([&](Runtime &runtime) {
        const auto event = runtime.events.resolve(handle);
        refuse_captured(runtime, "cudaEventQuery", *event);
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
        refuse_captured(runtime, "cudaEventSynchronize", *event);
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
