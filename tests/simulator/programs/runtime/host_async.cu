// Streams, events and copies, one case per run: host_async CASE. What CUDA leaves open (is it done yet?) is asserted as
// the simulator decides it: not before something waits.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"

__global__ void set(int *p, int value) {
    *p = value;
}
__global__ void add(int *p, int value) {
    *p += value;
}
__global__ void copy(int *to, const int *from) {
    *to = *from;
}

static int *device_int(int value) {
    int *p;
    OK(cudaMalloc(&p, sizeof(int)));
    OK(cudaMemcpy(p, &value, sizeof(int), cudaMemcpyHostToDevice));
    return p;
}

static int read(const int *device) {
    int value;
    OK(cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost));
    return value;
}

static int *pinned_int(int value) {
    int *p;
    OK(cudaMallocHost(&p, sizeof(int)));
    *p = value;
    return p;
}

static cudaStream_t new_stream(unsigned flags = 0) {
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static void missing_wait() {
    int *d = device_int(7), *h = pinned_int(0);
    cudaStream_t s = new_stream();
    OK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, s));
    CHECK(*h == 0);
    OK(cudaStreamSynchronize(s));
    CHECK(*h == 7);
}

static void pinned_source_is_read_late() {
    int *d = device_int(0), *h = pinned_int(1);
    cudaStream_t s = new_stream();
    OK(cudaMemcpyAsync(d, h, sizeof(int), cudaMemcpyHostToDevice, s));
    *h = 2;
    OK(cudaStreamSynchronize(s));
    CHECK(read(d) == 2);
}

static void pageable_source_is_read_at_once() {
    int *d = device_int(0), h = 1;
    cudaStream_t s = new_stream();
    OK(cudaMemcpyAsync(d, &h, sizeof(int), cudaMemcpyHostToDevice, s));
    h = 2;
    OK(cudaStreamSynchronize(s));
    CHECK(read(d) == 1);
}

static void pageable_destination_is_written_at_once() {
    int *d = device_int(0), h = 0;
    cudaStream_t s = new_stream();
    set<<<1, 1, 0, s>>>(d, 5);
    OK(cudaMemcpyAsync(&h, d, sizeof(int), cudaMemcpyDeviceToHost, s));
    CHECK(h == 5);
}

static void registered_memory_is_pinned() {
    std::vector<int> h(1024, 3);
    int *d = device_int(9);
    cudaStream_t s = new_stream();
    OK(cudaHostRegister(h.data(), h.size() * sizeof(int), cudaHostRegisterDefault));
    OK(cudaMemcpyAsync(&h[5], d, sizeof(int), cudaMemcpyDeviceToHost, s));
    CHECK(h[5] == 3);
    OK(cudaStreamSynchronize(s));
    CHECK(h[5] == 9);
    OK(cudaHostUnregister(h.data()));
    CHECK(cudaHostUnregister(h.data()) == cudaErrorHostMemoryNotRegistered);
}

static void launch_is_late() {
    int *h = pinned_int(0);
    set<<<1, 1>>>(h, 4);
    CHECK(*h == 0);
    OK(cudaDeviceSynchronize());
    CHECK(*h == 4);
}

static void managed_memory_is_late() {
    int *m;
    OK(cudaMallocManaged(&m, sizeof(int)));
    *m = 1;
    add<<<1, 1>>>(m, 1);
    CHECK(*m == 1);
    OK(cudaDeviceSynchronize());
    CHECK(*m == 2);
    OK(cudaFree(m));
}

static void device_copy_and_memset_are_late() {
    int *a, *seen = pinned_int(0);
    OK(cudaMalloc(&a, 2 * sizeof(int)));
    OK(cudaMemset(a, 1, 2 * sizeof(int)));
    OK(cudaMemcpy(a + 1, a, sizeof(int), cudaMemcpyDeviceToDevice));
    copy<<<1, 1>>>(seen, a + 1);
    CHECK(*seen == 0);
    OK(cudaDeviceSynchronize());
    CHECK(*seen == 0x01010101);
}

static void legacy_stream_joins_blocking_streams() {
    int *d = device_int(0);
    cudaStream_t s = new_stream();
    set<<<1, 1, 0, s>>>(d, 1);
    add<<<1, 1>>>(d, 10);
    add<<<1, 1, 0, s>>>(d, 100);
    CHECK(read(d) == 111);
}

static void legacy_stream_leaves_non_blocking_streams() {
    int *h = pinned_int(0);
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    set<<<1, 1, 0, s>>>(h, 1);
    int *d = device_int(2);
    CHECK(read(d) == 2);
    CHECK(*h == 0);
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    CHECK(*h == 0);
    OK(cudaStreamSynchronize(s));
    CHECK(*h == 1);
}

static void streams_are_independent() {
    int *a = pinned_int(0), *b = pinned_int(0);
    cudaStream_t s = new_stream(), t = new_stream();
    set<<<1, 1, 0, s>>>(a, 1);
    set<<<1, 1, 0, t>>>(b, 1);
    OK(cudaStreamSynchronize(t));
    CHECK(*a == 0 && *b == 1);
    OK(cudaDeviceSynchronize());
    CHECK(*a == 1);
}

static void stream_waits_for_event() {
    int *h = pinned_int(0), *later = pinned_int(0);
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaStreamWaitEvent(t, event, 0));  // never recorded: nothing to wait for
    set<<<1, 1, 0, s>>>(h, 1);
    OK(cudaEventRecord(event, s));
    set<<<1, 1, 0, s>>>(later, 50);
    OK(cudaStreamWaitEvent(t, event, 0));
    add<<<1, 1, 0, t>>>(h, 2);
    OK(cudaStreamSynchronize(t));
    CHECK(*h == 3 && *later == 0);
    OK(cudaStreamSynchronize(s));
    CHECK(*later == 50);
    OK(cudaEventDestroy(event));
    CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
}

static void event_keeps_its_record() {
    int *h = pinned_int(0);
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    set<<<1, 1, 0, s>>>(h, 1);
    OK(cudaEventRecord(event, s));
    OK(cudaStreamWaitEvent(t, event, 0));
    add<<<1, 1, 0, s>>>(h, 1);
    OK(cudaEventRecord(event, s));  // the wait above is for the first record
    OK(cudaStreamSynchronize(t));
    CHECK(*h == 1);
    OK(cudaEventSynchronize(event));
    CHECK(*h == 2);
}

static void queries_make_progress() {
    int *h = pinned_int(0);
    cudaStream_t s = new_stream();
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    CHECK(cudaStreamQuery(s) == cudaSuccess && cudaEventQuery(event) == cudaSuccess);
    for (int i = 0; i < 3; ++i) add<<<1, 1, 0, s>>>(h, 1);
    OK(cudaEventRecord(event, s));
    int queries = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady) ++queries;
    CHECK(queries >= 1 && queries <= 5);
    CHECK(*h == 3);
    CHECK(cudaGetLastError() == cudaErrorNotReady && cudaGetLastError() == cudaSuccess);
    add<<<1, 1, 0, s>>>(h, 1);
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    while (cudaStreamQuery(s) == cudaErrorNotReady) {
    }
    CHECK(*h == 4);
}

static void events_have_times() {
    int *d = device_int(0);
    cudaEvent_t start, middle, end, silent;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&middle));
    OK(cudaEventCreate(&end));
    OK(cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
    float ms = -1, first = -1, second = -1;
    CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(start));
    set<<<1, 1>>>(d, 1);
    OK(cudaEventRecord(middle));
    OK(cudaEventRecord(end));
    OK(cudaEventRecord(silent));
    CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
    OK(cudaEventSynchronize(silent));
    OK(cudaEventElapsedTime(&ms, start, end));
    OK(cudaEventElapsedTime(&first, start, middle));
    OK(cudaEventElapsedTime(&second, middle, end));
    CHECK(first > 0 && second > 0 && ms >= first);
    OK(cudaEventElapsedTime(&ms, end, start));
    CHECK(ms < 0);
    CHECK(cudaEventElapsedTime(&ms, start, silent) == cudaErrorInvalidResourceHandle);
}

struct Log {
    std::vector<int> entries;
    cudaError_t inner = cudaSuccess;
};

static void host_functions_keep_their_place() {
    int *h = pinned_int(0);
    cudaStream_t s = new_stream();
    static Log log;
    static int *watched = h;
    set<<<1, 1, 0, s>>>(h, 1);
    OK(cudaLaunchHostFunc(s, [](void *) { log.entries.push_back(*watched); }, nullptr));
    set<<<1, 1, 0, s>>>(h, 2);
    OK(cudaStreamAddCallback(
        s,
        [](cudaStream_t, cudaError_t code, void *data) {
            log.entries.push_back(*watched + static_cast<int>(code));
            log.inner = cudaDeviceSynchronize();
            *static_cast<int *>(data) = 77;
        },
        h, 0));
    CHECK(log.entries.empty());
    OK(cudaStreamSynchronize(s));
    CHECK((log.entries == std::vector<int>{1, 2}) && *h == 77);
    CHECK(log.inner == cudaErrorNotPermitted);
}

// None: the errors of a launch, of an allocation and of a copy. What only looks up is allowed.
static void host_functions_call_nothing() {
    static cudaError_t errors[3];
    static int *d = device_int(7);
    cudaStream_t s = new_stream();
    OK(cudaLaunchHostFunc(
        s,
        [](void *) {
            int *more = nullptr;
            add<<<1, 1>>>(d, 1);
            errors[0] = cudaGetLastError();
            errors[1] = cudaMalloc(&more, sizeof(int));
            errors[2] = cudaMemsetAsync(d, 0, sizeof(int), cudaStreamLegacy);
            CHECK(!std::strcmp(cudaGetErrorName(errors[2]), "cudaErrorNotPermitted"));
        },
        nullptr));
    OK(cudaStreamSynchronize(s));
    for (const cudaError_t error : errors) CHECK(error == cudaErrorNotPermitted);
    CHECK(read(d) == 7);
    OK(cudaGetLastError());
}

static void free_waits() {
    int *h = pinned_int(0), *d = device_int(0);
    set<<<1, 1, 0, new_stream(cudaStreamNonBlocking)>>>(h, 1);
    OK(cudaFree(d));
    CHECK(*h == 1);
}

static void destroyed_streams_finish() {
    int *h = pinned_int(0);
    cudaStream_t s = new_stream();
    set<<<1, 1, 0, s>>>(h, 1);
    OK(cudaStreamDestroy(s));
    CHECK(*h == 0);
    CHECK(cudaStreamSynchronize(s) == cudaErrorInvalidResourceHandle);
    OK(cudaDeviceSynchronize());
    CHECK(*h == 1);
}

static void stream_ordered_memory() {
    cudaStream_t s = new_stream();
    int *d, *h = pinned_int(0);
    size_t before, during, after, total;
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMallocAsync(&d, 1 << 20, s));
    OK(cudaMemGetInfo(&during, &total));
    set<<<1, 1, 0, s>>>(d, 6);
    OK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(d, s));
    CHECK(during == before - (1 << 20));
    OK(cudaStreamSynchronize(s));
    OK(cudaMemGetInfo(&after, &total));
    CHECK(*h == 6 && after == before);
    CHECK(cudaFree(d) == cudaErrorInvalidValue);
}

static void use_after_stream_ordered_free() {
    cudaStream_t s = new_stream();
    int *d;
    OK(cudaMallocAsync(&d, sizeof(int), s));
    OK(cudaFreeAsync(d, s));
    set<<<1, 1, 0, s>>>(d, 6);
    CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
}

static void captured_graph_runs_again() {
    int *h = pinned_int(0), *d = device_int(0);
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t fork, join;
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(s, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    add<<<1, 1, 0, s>>>(d, 1);
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(t, fork, 0));
    add<<<1, 1, 0, t>>>(d, 10);
    OK(cudaEventRecord(join, t));
    OK(cudaStreamWaitEvent(s, join, 0));
    OK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, s));
    cudaGraph_t graph;
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaStreamIsCapturing(t, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 3);
    cudaGraphExec_t instance;
    OK(cudaGraphInstantiate(&instance, graph, 0));
    OK(cudaGraphDestroy(graph));
    CHECK(*h == 0 && read(d) == 0);  // capturing runs nothing
    OK(cudaGraphLaunch(instance, s));
    OK(cudaGraphLaunch(instance, s));
    CHECK(*h == 0);
    OK(cudaStreamSynchronize(s));
    CHECK(*h == 22);
    OK(cudaGraphExecDestroy(instance));
}

static void waiting_spoils_a_capture() {
    cudaStream_t s = new_stream();
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamSynchronize(s));
}

static void graph_by_hand() {
    int *h = pinned_int(0), *d = device_int(0);
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    int value = 5;
    void *arguments[] = {&d, &value};
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void *>(add);
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = arguments;
    cudaMemsetParams clear = {};
    clear.dst = d;
    clear.elementSize = 4;
    clear.value = 100;
    clear.width = clear.height = 1;
    cudaGraphNode_t copy_node, kernel_node, clear_node;
    OK(cudaGraphAddMemcpyNode1D(&copy_node, graph, nullptr, 0, h, d, sizeof(int), cudaMemcpyDeviceToHost));
    OK(cudaGraphAddKernelNode(&kernel_node, graph, nullptr, 0, &kernel));
    OK(cudaGraphAddMemsetNode(&clear_node, graph, nullptr, 0, &clear));
    OK(cudaGraphAddDependencies(graph, &clear_node, &kernel_node, nullptr, 1));
    OK(cudaGraphAddDependencies(graph, &kernel_node, &copy_node, nullptr, 1));
    cudaGraphExec_t instance;
    OK(cudaGraphInstantiate(&instance, graph, 0));
    OK(cudaGraphLaunch(instance, 0));
    OK(cudaDeviceSynchronize());
    CHECK(*h == 105);
    value = 7;
    OK(cudaGraphExecKernelNodeSetParams(instance, kernel_node, &kernel));
    OK(cudaGraphLaunch(instance, 0));
    OK(cudaDeviceSynchronize());
    CHECK(*h == 107);
}

static void final_values() {
    int *d = device_int(1), *h = pinned_int(0);
    cudaStream_t s = new_stream(), t = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    for (int round = 0; round < 8; ++round) {
        add<<<1, 1, 0, s>>>(d, round);
        OK(cudaEventRecord(event, s));
        OK(cudaStreamWaitEvent(t, event, 0));
        OK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, t));
        OK(cudaMemcpyAsync(d, h, sizeof(int), cudaMemcpyHostToDevice, t));
        add<<<1, 1, 0, t>>>(d, 100);
        OK(cudaEventRecord(event, t));
        OK(cudaStreamWaitEvent(s, event, 0));
    }
    add<<<1, 1>>>(d, 10000);          // behind s
    add<<<1, 1, 0, s>>>(d, 1000000);  // behind the default stream
    CHECK(read(d) == 1010829);
}

static void order_of_streams() {
    static std::string order;
    cudaStream_t streams[4];
    for (int i = 0; i < 4; ++i) streams[i] = new_stream(cudaStreamNonBlocking);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 4; ++i) {
            OK(cudaLaunchHostFunc(
                streams[i], [](void *p) { order += *static_cast<char *>(p); },
                const_cast<char *>(&"abcdABCD"[4 * round + i])));
        }
    }
    OK(cudaDeviceSynchronize());
    std::printf("%s\n", order.c_str());
}

static void many_threads() {
    constexpr int kThreads = 4, kRounds = 20;
    int *d = device_int(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([] {
            cudaStream_t s = new_stream(cudaStreamNonBlocking);
            int *own = device_int(0), *h = pinned_int(0);
            for (int round = 0; round < kRounds; ++round) {
                add<<<1, 1, 0, s>>>(own, 1);
                OK(cudaMemcpyAsync(h, own, sizeof(int), cudaMemcpyDeviceToHost, s));
                OK(cudaLaunchHostFunc(s, [](void *p) { ++*static_cast<int *>(p); }, h));
                OK(cudaStreamSynchronize(s));
                CHECK(*h == round + 2);
            }
            OK(cudaFree(own));
            OK(cudaStreamDestroy(s));
        });
    }
    for (auto &thread : threads) thread.join();
    CHECK(read(d) == 0);
}

static void default_streams_of_threads() {
    int *h = pinned_int(0);
    std::thread([&] { set<<<1, 1>>>(h, 1); }).join();
    OK(cudaStreamSynchronize(0));
    std::printf("%d\n", *h);  // 1 where all threads share the default stream
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    OK(cudaDeviceSynchronize());
    CHECK(*h == 1);
    int *d = device_int(0);
    OK(cudaMemsetAsync(d, 0, sizeof(int), cudaStreamPerThread));
    add<<<1, 1, 0, cudaStreamPerThread>>>(d, 3);
    add<<<1, 1, 0, cudaStreamLegacy>>>(d, 4);
    OK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, cudaStreamPerThread));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK(*h == 7);
}

static void nothing_waits() {
    set<<<1, 1>>>(pinned_int(0), 1);
    set<<<1, 1>>>(pinned_int(0), 1);
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(missing_wait),
        CASE(pinned_source_is_read_late),
        CASE(pageable_source_is_read_at_once),
        CASE(pageable_destination_is_written_at_once),
        CASE(registered_memory_is_pinned),
        CASE(launch_is_late),
        CASE(managed_memory_is_late),
        CASE(device_copy_and_memset_are_late),
        CASE(legacy_stream_joins_blocking_streams),
        CASE(legacy_stream_leaves_non_blocking_streams),
        CASE(streams_are_independent),
        CASE(stream_waits_for_event),
        CASE(event_keeps_its_record),
        CASE(queries_make_progress),
        CASE(events_have_times),
        CASE(host_functions_keep_their_place),
        CASE(host_functions_call_nothing),
        CASE(free_waits),
        CASE(destroyed_streams_finish),
        CASE(stream_ordered_memory),
        CASE(use_after_stream_ordered_free),
        CASE(captured_graph_runs_again),
        CASE(waiting_spoils_a_capture),
        CASE(graph_by_hand),
        CASE(final_values),
        CASE(order_of_streams),
        CASE(many_threads),
        CASE(default_streams_of_threads),
        CASE(nothing_waits),
    };
    for (const auto &c : cases) {
        if (argc == 2 && !std::strcmp(argv[1], c.name)) {
            c.run();
            std::printf("passed\n");
            return 0;
        }
    }
    std::printf("no such case\n");
    return 2;
}
