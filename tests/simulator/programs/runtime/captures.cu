// What must not be done while a stream is captured, and how it is done: captures CASE 0|1, with the mistake or mended.
// Prints the errors of the call and of the capture's end, and what the graph has made of a number once it has run.
#include <cstring>

#include "expect.h"

__global__ void add(int *p, int value) {
    *p += value;
}

struct Capture {
    cudaStream_t stream, other;
    cudaEvent_t event;
    int *number, *second;
};

// These return the error of the call that is the mistake, or takes its place.

static cudaError_t launched_into_the_default_stream(const Capture &c, bool mended) {
    add<<<1, 1, 0, mended ? c.stream : nullptr>>>(c.number, 10);
    return cudaGetLastError();
}

static cudaError_t copied_by_a_blocking_call(const Capture &c, bool mended) {
    if (mended) return cudaMemcpyAsync(c.number, c.second, sizeof(int), cudaMemcpyDeviceToDevice, c.stream);
    return cudaMemcpy(c.number, c.second, sizeof(int), cudaMemcpyDeviceToDevice);
}

static cudaError_t allocated(const Capture &c, bool mended) {
    int *more;
    return mended ? cudaMallocAsync(&more, sizeof(int), c.stream) : cudaMalloc(&more, sizeof(int));
}

static cudaError_t freed(const Capture &c, bool mended) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (mended) OK(cudaThreadExchangeStreamCaptureMode(&mode));
    return cudaFree(c.second);
}

static cudaError_t waited_for_the_device(const Capture &, bool mended) {
    return mended ? cudaSuccess : cudaDeviceSynchronize();
}

static cudaError_t waited_for_an_event(const Capture &c, bool mended) {
    OK(cudaEventRecord(c.event, c.stream));
    return mended ? cudaStreamWaitEvent(c.other, c.event) : cudaEventSynchronize(c.event);
}

static cudaError_t an_event_from_outside(const Capture &c, bool mended) {
    if (mended) OK(cudaEventRecord(c.event, c.stream));
    return cudaStreamWaitEvent(c.stream, c.event);
}

static cudaError_t a_branch_that_leads_nowhere(const Capture &c, bool mended) {
    OK(cudaEventRecord(c.event, c.stream));
    OK(cudaStreamWaitEvent(c.other, c.event));
    add<<<1, 1, 0, c.other>>>(c.second, 10);
    if (!mended) return cudaGetLastError();
    OK(cudaEventRecord(c.event, c.other));
    return cudaStreamWaitEvent(c.stream, c.event);
}

// A non-blocking stream and the default stream do not wait for each other.
static cudaError_t beside_a_non_blocking_stream(const Capture &c, bool) {
    add<<<1, 1>>>(c.second, 10);
    return cudaGetLastError();
}

int main(int, char **argv) {
    const struct {
        const char *name;
        cudaError_t (*call)(const Capture &, bool mended);
        unsigned flags = cudaStreamDefault;
    } cases[] = {
#define CASE(name) #name, name
        {CASE(launched_into_the_default_stream)},
        {CASE(copied_by_a_blocking_call)},
        {CASE(allocated)},
        {CASE(freed)},
        {CASE(waited_for_the_device)},
        {CASE(waited_for_an_event)},
        {CASE(an_event_from_outside)},
        {CASE(a_branch_that_leads_nowhere)},
        {CASE(beside_a_non_blocking_stream), cudaStreamNonBlocking},
    };
    for (const auto &one : cases) {
        if (std::strcmp(argv[1], one.name)) continue;
        Capture c;
        OK(cudaStreamCreateWithFlags(&c.stream, one.flags));
        OK(cudaStreamCreate(&c.other));
        OK(cudaEventCreate(&c.event));
        OK(cudaMalloc(&c.number, sizeof(int)));
        OK(cudaMalloc(&c.second, sizeof(int)));
        OK(cudaMemset(c.number, 0, sizeof(int)));
        OK(cudaMemset(c.second, 0, sizeof(int)));
        OK(cudaEventRecord(c.event, c.other));
        OK(cudaDeviceSynchronize());
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t instance;
        OK(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
        add<<<1, 1, 0, c.stream>>>(c.number, 1);
        const cudaError_t call = one.call(c, argv[2][0] == '1');
        const cudaError_t end = cudaStreamEndCapture(c.stream, &graph);
        std::printf("%s %s", cudaGetErrorName(call), cudaGetErrorName(end));
        if (graph) {
            int number = 0;
            OK(cudaGraphInstantiate(&instance, graph, 0));
            OK(cudaGraphLaunch(instance, c.stream));
            OK(cudaStreamSynchronize(c.stream));
            OK(cudaMemcpy(&number, c.number, sizeof(int), cudaMemcpyDeviceToHost));
            std::printf(" %d", number);
        }
        cudaStreamCaptureStatus status;
        OK(cudaStreamIsCapturing(c.stream, &status));
        CHECK(status == cudaStreamCaptureStatusNone);
        OK(cudaDeviceSynchronize());  // whatever the capture came to, the streams are as before
        return 0;
    }
    return 2;
}
