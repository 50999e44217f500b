// Memory that graphs allocate: each case in a process of its own, "passed" where all went as CUDA's manual says.
#include <cstring>

#include "expect.h"

#define IS(call, wanted)          \
    do {                          \
        FAILS(call, wanted);      \
        (void)cudaGetLastError(); \
    } while (0)

constexpr int n = 64;

__global__ void count(int *p) {
    p[threadIdx.x] = threadIdx.x;
}
__global__ void twice(int *to, const int *from) {
    to[threadIdx.x] = 2 * from[threadIdx.x];
}

struct Made {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    int *memory;
};

static cudaGraphNode_t add(cudaGraph_t graph, const cudaGraphNode_t *after, void *kernel, void **arguments) {
    cudaKernelNodeParams p{};
    p.func = kernel;
    p.gridDim = dim3(1);
    p.blockDim = dim3(n);
    p.kernelParams = arguments;
    cudaGraphNode_t node;
    OK(cudaGraphAddKernelNode(&node, graph, after, 1, &p));
    return node;
}

// A graph that allocates, fills and, if asked to, frees.
static Made make(bool frees, unsigned long long flags = 0) {
    Made made{};
    OK(cudaGraphCreate(&made.graph, 0));
    cudaMemAllocNodeParams p{};
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location = {cudaMemLocationTypeDevice, {0}};
    p.bytesize = n * sizeof(int);
    cudaGraphNode_t allocation, release;
    OK(cudaGraphAddMemAllocNode(&allocation, made.graph, nullptr, 0, &p));
    made.memory = static_cast<int *>(p.dptr);
    void *arguments[] = {&made.memory};
    const cudaGraphNode_t filled = add(made.graph, &allocation, reinterpret_cast<void *>(count), arguments);
    if (frees) OK(cudaGraphAddMemFreeNode(&release, made.graph, &filled, 1, made.memory));
    OK(cudaGraphInstantiate(&made.instance, made.graph, flags));
    return made;
}

// What the graph left in its memory, by a copy that stands in the stream behind it.
static bool is_filled(const Made &made, cudaStream_t stream) {
    int h[n] = {};
    OK(cudaMemcpyAsync(h, made.memory, sizeof h, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; ++i)
        if (h[i] != i) return false;
    return true;
}

static void freed_outside(cudaStream_t s) {
    const Made made = make(false);
    for (int i = 0; i < 3; ++i) {
        OK(cudaGraphLaunch(made.instance, s));
        CHECK(is_filled(made, s));
        if (i % 2)
            OK(cudaFree(made.memory));
        else
            OK(cudaFreeAsync(made.memory, s));
    }
    OK(cudaStreamSynchronize(s));
    OK(cudaGraphExecDestroy(made.instance));
    OK(cudaGraphDestroy(made.graph));
}

static void captured(cudaStream_t s) {
    int *temporary, *kept, h[n];
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync(&temporary, n * sizeof(int), s));
    OK(cudaMallocAsync(&kept, n * sizeof(int), s));
    count<<<1, n, 0, s>>>(temporary);
    twice<<<1, n, 0, s>>>(kept, temporary);
    OK(cudaFreeAsync(temporary, s));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&instance, graph, 0));
    for (int i = 0; i < 2; ++i) {
        OK(cudaGraphLaunch(instance, s));
        OK(cudaMemcpyAsync(h, kept, sizeof h, cudaMemcpyDeviceToHost, s));
        OK(cudaFreeAsync(kept, s));
        OK(cudaStreamSynchronize(s));
        CHECK(h[5] == 10);
    }
    IS(cudaFreeAsync(temporary, s), cudaErrorInvalidValue);  // its graph frees it
}

static void freed_by_another_graph(cudaStream_t s) {
    const Made made = make(false);
    cudaGraph_t other;
    cudaGraphNode_t release, again;
    cudaGraphExec_t instance;
    OK(cudaGraphCreate(&other, 0));
    OK(cudaGraphAddMemFreeNode(&release, other, nullptr, 0, made.memory));
    IS(cudaGraphAddMemFreeNode(&again, other, nullptr, 0, made.memory), cudaErrorInvalidValue);
    IS(cudaGraphAddMemFreeNode(&again, made.graph, nullptr, 0, made.memory), cudaErrorInvalidValue);
    OK(cudaGraphInstantiate(&instance, other, 0));
    for (int i = 0; i < 2; ++i) {
        OK(cudaGraphLaunch(made.instance, s));
        CHECK(is_filled(made, s));
        OK(cudaGraphLaunch(instance, s));
    }
    OK(cudaStreamSynchronize(s));
    void *address = nullptr;
    OK(cudaGraphMemFreeNodeGetParams(release, &address));
    CHECK(address == made.memory);
}

// A graph may lie where one that is gone lay, and so may its nodes.
static void freed_by_graphs_that_come_and_go(cudaStream_t s) {
    const Made made = make(false);
    OK(cudaGraphDestroy(made.graph));
    for (int i = 0; i < 4; ++i) {
        cudaGraph_t other;
        cudaGraphNode_t release;
        cudaGraphExec_t instance;
        OK(cudaGraphCreate(&other, 0));
        OK(cudaGraphAddMemFreeNode(&release, other, nullptr, 0, made.memory));
        OK(cudaGraphInstantiate(&instance, other, 0));
        OK(cudaGraphDestroy(other));
        OK(cudaGraphLaunch(made.instance, s));
        CHECK(is_filled(made, s));
        OK(cudaGraphLaunch(instance, s));
        OK(cudaStreamSynchronize(s));
        OK(cudaGraphExecDestroy(instance));
    }
}

static void second_launch_with_unfreed_memory(cudaStream_t s) {
    const Made made = make(false);
    OK(cudaGraphLaunch(made.instance, s));
    IS(cudaGraphLaunch(made.instance, s), cudaErrorInvalidValue);
    CHECK(is_filled(made, s));  // the first launch is as it was
    OK(cudaFreeAsync(made.memory, s));
    OK(cudaGraphLaunch(made.instance, s));
    CHECK(is_filled(made, s));
}

static void freed_automatically(cudaStream_t s) {
    const Made made = make(false, cudaGraphInstantiateFlagAutoFreeOnLaunch);
    for (int i = 0; i < 3; ++i) {
        OK(cudaGraphLaunch(made.instance, s));
        CHECK(is_filled(made, s));
    }
    OK(cudaFree(made.memory));
}

static void freed_twice(cudaStream_t s) {
    const Made made = make(false), inside = make(true);
    OK(cudaGraphLaunch(made.instance, s));
    OK(cudaGraphLaunch(inside.instance, s));
    OK(cudaFreeAsync(made.memory, s));
    IS(cudaFreeAsync(made.memory, s), cudaErrorInvalidValue);
    IS(cudaFree(made.memory), cudaErrorInvalidValue);
    IS(cudaFree(inside.memory), cudaErrorInvalidValue);
    OK(cudaStreamSynchronize(s));
}

static void used_after_its_free_node(cudaStream_t s) {
    Made made = make(true);
    int *out;
    OK(cudaMalloc(&out, n * sizeof(int)));
    size_t nodes = 3;
    cudaGraphNode_t all[3];
    OK(cudaGraphGetNodes(made.graph, all, &nodes));
    void *arguments[] = {&out, &made.memory};
    add(made.graph, &all[2], reinterpret_cast<void *>(twice), arguments);
    OK(cudaGraphExecDestroy(made.instance));
    OK(cudaGraphInstantiate(&made.instance, made.graph, 0));
    OK(cudaGraphLaunch(made.instance, s));
    IS(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

static void used_after_a_free_in_the_stream(cudaStream_t s) {
    const Made made = make(false);
    OK(cudaGraphLaunch(made.instance, s));
    OK(cudaFreeAsync(made.memory, s));
    count<<<1, n, 0, s>>>(made.memory);
    IS(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

static void used_before_the_launch(cudaStream_t s) {
    const Made made = make(false);
    count<<<1, n, 0, s>>>(made.memory);
    IS(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

static void what_such_graphs_cannot(cudaStream_t s) {
    const Made made = make(true);
    cudaGraphExec_t second;
    cudaGraph_t copy, parent;
    cudaGraphNode_t node;
    IS(cudaGraphInstantiate(&second, made.graph, 0), cudaErrorInvalidValue);
    IS(cudaGraphClone(&copy, made.graph), cudaErrorInvalidValue);
    OK(cudaGraphCreate(&parent, 0));
    IS(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, made.graph), cudaErrorInvalidValue);
    size_t nodes = 3;
    cudaGraphNode_t all[3];
    OK(cudaGraphGetNodes(made.graph, all, &nodes));
    IS(cudaGraphDestroyNode(all[2]), cudaErrorInvalidValue);
    cudaMemAllocNodeParams p{};
    OK(cudaGraphMemAllocNodeGetParams(all[0], &p));
    CHECK(p.dptr == made.memory && p.bytesize == n * sizeof(int));
    IS(cudaGraphMemAllocNodeGetParams(all[1], &p), cudaErrorInvalidValue);
    int *ordinary;
    OK(cudaMalloc(&ordinary, 4));
    IS(cudaGraphAddMemFreeNode(&node, made.graph, nullptr, 0, ordinary), cudaErrorInvalidValue);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    IS(cudaFreeAsync(ordinary, s), cudaErrorInvalidValue);
    OK(cudaStreamEndCapture(s, &copy));
    OK(cudaGraphExecDestroy(made.instance));
    OK(cudaGraphInstantiate(&second, made.graph, 0));
}

static void how_much_there_is(cudaStream_t s) {
    const Made made = make(false);
    unsigned long long bytes = 1, most = 1, zero = 0;
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
    CHECK(bytes == 0);
    OK(cudaGraphLaunch(made.instance, s));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
    CHECK(bytes == n * sizeof(int));
    OK(cudaFreeAsync(made.memory, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &most));
    CHECK(bytes == 0 && most == n * sizeof(int));
    OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &most));
    CHECK(most == 0);
    OK(cudaDeviceGraphMemTrim(0));
    IS(cudaDeviceGraphMemTrim(77), cudaErrorInvalidDevice);
}

#define CASE(name) {#name, name}
const struct {
    const char *name;
    void (*run)(cudaStream_t);
} cases[] = {
    CASE(freed_outside),
    CASE(captured),
    CASE(freed_by_another_graph),
    CASE(freed_by_graphs_that_come_and_go),
    CASE(second_launch_with_unfreed_memory),
    CASE(freed_automatically),
    CASE(freed_twice),
    CASE(used_after_its_free_node),
    CASE(used_after_a_free_in_the_stream),
    CASE(used_before_the_launch),
    CASE(what_such_graphs_cannot),
    CASE(how_much_there_is),
};

int main(int, char **argv) {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (const auto &it : cases)
        if (!std::strcmp(argv[1], it.name)) {
            it.run(stream);
            std::printf("passed\n");
            return 0;
        }
    return 2;
}
