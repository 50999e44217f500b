#include "runtime/capture.h"

#include <algorithm>
#include <thread>

#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

std::string number(const Stream &stream) {
    return "stream " + std::to_string(stream.number());
}

// The driver's functions call the runtime's, and the program knows the driver's.
std::string called(const char *name) {
    return HostLog::alias ? HostLog::alias : name;
}

}  // namespace

void spoil(Runtime &runtime, const std::shared_ptr<Graph> &capture, cudaError_t code, const std::string &why) {
    bool news = false;
    for (const auto &stream : runtime.scheduler.streams()) {
        if (stream->capture != capture) continue;
        news = news || stream->capture_status == cudaStreamCaptureStatusActive;
        stream->capture_status = cudaStreamCaptureStatusInvalidated;
    }
    if (news) say_undone(why + ". The capture is spoilt: cudaStreamEndCapture will give no graph");
    throw Failure{code};
}

void refuse_capture(Runtime &runtime, const char *name, const Stream &stream) {
    if (!stream.capture) return;
    spoil(runtime, stream.capture, cudaErrorStreamCaptureUnsupported,
          called(name) + ": " + number(stream) +
              " is captured, so that nothing of it runs before its graph is launched: wait behind the "
              "cudaGraphLaunch");
}

void refuse_captures(Runtime &runtime, const char *name, unsigned device) {
    for (const auto &stream : runtime.scheduler.streams()) {
        if (stream->device == device) refuse_capture(runtime, name, *stream);
    }
}

void refuse_implicit(Runtime &runtime, const Stream &legacy) {
    for (const auto &stream : runtime.scheduler.streams()) {
        if (!stream->capture || stream->device != legacy.device || !stream->blocking()) continue;
        spoil(runtime, stream->capture, cudaErrorStreamCaptureImplicit,
              "the default stream gets work while " + number(*stream) +
                  " is captured, and each of the two waits for the other's work: give a launch the captured stream "
                  "(<<<grid, block, 0, stream>>>), take cudaMemcpyAsync or cudaMemsetAsync with it, or do this before "
                  "the capture");
    }
}

void refuse_unsafe(Runtime &runtime, const char *name) {
    const ThreadState &thread = this_thread();
    if (thread.capture_mode == cudaStreamCaptureModeRelaxed) return;
    for (const auto &stream : runtime.scheduler.streams()) {
        const std::shared_ptr<Graph> &capture = stream->capture;
        if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) continue;
        const bool global =
            capture->mode == cudaStreamCaptureModeGlobal && thread.capture_mode == cudaStreamCaptureModeGlobal;
        if (capture->captured_by != std::this_thread::get_id() && !global) continue;
        spoil(runtime, capture, cudaErrorStreamCaptureUnsupported,
              called(name) + " while " + number(*stream) +
                  " is captured: call it before the capture, or take cudaMallocAsync or cudaFreeAsync in that stream "
                  "(cudaStreamCaptureModeRelaxed allows it)");
    }
}

void check_joined(const Graph &capture, const Stream &origin, const std::vector<Graph::Node *> &ends) {
    for (const auto &node : capture.nodes) {
        const auto leads_on = [&](const auto &other) {
            return std::find(other->after.begin(), other->after.end(), node.get()) != other->after.end();
        };
        if (std::find(ends.begin(), ends.end(), node.get()) != ends.end() ||
            std::any_of(capture.nodes.begin(), capture.nodes.end(), leads_on))
            continue;
        const std::string what = node->operation.what.name.empty() ? "work" : "kernel " + node->operation.what.name;
        say_undone("cudaStreamEndCapture: " + what + " of another stream than " + number(origin) +
                   ", where the capture began, leads to nothing there: record an event behind it, and let " +
                   number(origin) + " wait for that (cudaStreamWaitEvent) before the capture ends");
        throw Failure{cudaErrorStreamCaptureUnjoined};
    }
}

}  // namespace warpsim::rt
