// Graphs of every kind of node: each call is checked, and what the launches leave.
#include <cstring>

#include "expect.h"

__global__ void add(int *p, int value) {
    p[threadIdx.x] += value;
}

static cudaKernelNodeParams kernel(void **arguments) {
    cudaKernelNodeParams p{};
    p.func = reinterpret_cast<void *>(add);
    p.gridDim = dim3(1);
    p.blockDim = dim3(8);
    p.kernelParams = arguments;
    return p;
}

static void count_up(void *data) {
    ++*static_cast<int *>(data);
}

int main() {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    int *h = nullptr, calls = 0, more_calls = 0;
    OK(cudaMallocHost(&h, 64));
    std::memset(h, 0, 64);

    // memory -> fill -> kernel -> child (a kernel) -> copy -> host -> record -> free
    cudaGraph_t graph, child;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&child, 0));
    cudaGraphNode_t memory, fill, first, nested, inner, copy, host, record, release, empty;
    cudaMemAllocNodeParams where{};
    where.poolProps.allocType = cudaMemAllocationTypePinned;
    where.poolProps.location = {cudaMemLocationTypeDevice, {0}};
    where.bytesize = 32;
    OK(cudaGraphAddMemAllocNode(&memory, graph, nullptr, 0, &where));
    int *d = static_cast<int *>(where.dptr);
    CHECK(d);
    cudaMemsetParams zero{};
    zero.dst = d;
    zero.elementSize = 4;
    zero.width = 8;
    zero.height = 1;
    OK(cudaGraphAddMemsetNode(&fill, graph, &memory, 1, &zero));
    int five = 5, seven = 7;
    void *arguments[] = {&d, &five}, *others[] = {&d, &seven};
    cudaGraphNodeParams generic{};
    generic.type = cudaGraphNodeTypeKernel;
    generic.kernel.func = reinterpret_cast<void *>(add);
    generic.kernel.gridDim = dim3(1);
    generic.kernel.blockDim = dim3(8);
    generic.kernel.kernelParams = arguments;
    OK(cudaGraphAddNode(&first, graph, &fill, nullptr, 1, &generic));
    const cudaKernelNodeParams second = kernel(others);
    OK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &second));
    OK(cudaGraphAddChildGraphNode(&nested, graph, &first, 1, child));
    OK(cudaGraphDestroy(child));  // the node has its own
    cudaMemcpy3DParms back{};
    back.srcPtr = make_cudaPitchedPtr(d, 32, 8, 1);
    back.dstPtr = make_cudaPitchedPtr(h, 32, 8, 1);
    back.extent = make_cudaExtent(32, 1, 1);
    back.kind = cudaMemcpyDeviceToHost;
    OK(cudaGraphAddMemcpyNode(&copy, graph, &nested, 1, &back));
    cudaHostNodeParams function{};
    function.fn = count_up;
    function.userData = &calls;
    OK(cudaGraphAddHostNode(&host, graph, &copy, 1, &function));
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaGraphAddEventRecordNode(&record, graph, &host, 1, event));
    OK(cudaGraphAddMemFreeNode(&release, graph, &record, 1, d));

    size_t count = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &count));
    CHECK(count == 8);
    OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    CHECK(count == 7);
    cudaGraphNode_t found[8], ends[8];
    OK(cudaGraphGetEdges(graph, found, ends, nullptr, &count));
    CHECK(found[0] == memory && ends[0] == fill);
    OK(cudaGraphGetRootNodes(graph, nullptr, &count));
    CHECK(count == 1);
    count = 8;
    OK(cudaGraphNodeGetDependencies(copy, found, nullptr, &count));
    CHECK(count == 1 && found[0] == nested);
    count = 8;
    OK(cudaGraphNodeGetDependentNodes(copy, found, nullptr, &count));
    CHECK(count == 1 && found[0] == host);
    cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(nested, &type));
    CHECK(type == cudaGraphNodeTypeGraph);

    cudaGraphExec_t instance;
    OK(cudaGraphInstantiate(&instance, graph, 0));
    OK(cudaGraphLaunch(instance, stream));
    OK(cudaEventSynchronize(event));
    CHECK(h[0] == 12 && h[7] == 12 && calls == 1);

    // Other parameters, of the instance alone; of another kind they are refused.
    function.userData = &more_calls;
    OK(cudaGraphExecHostNodeSetParams(instance, host, &function));
    OK(cudaGraphExecKernelNodeSetParams(instance, first, &second));
    OK(cudaGraphExecMemcpyNodeSetParams1D(instance, copy, h + 8, d, 32, cudaMemcpyDeviceToHost));
    zero.value = 100;
    OK(cudaGraphExecMemsetNodeSetParams(instance, fill, &zero));
    CHECK(cudaGraphExecHostNodeSetParams(instance, copy, &function) == cudaErrorInvalidValue);
    (void)cudaGetLastError();
    OK(cudaGraphLaunch(instance, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(h[0] == 12 && h[8] == 114 && calls == 1 && more_calls == 1);

    // An update brings the old parameters back.
    cudaGraphExecUpdateResultInfo result;
    OK(cudaGraphExecUpdate(instance, graph, &result));
    std::memset(h, 0, 64);
    OK(cudaGraphLaunch(instance, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(h[0] == 12 && h[8] == 0 && calls == 2 && more_calls == 1);

    // A clone is a graph of its own; a node less is another topology.
    cudaGraph_t plain, copied;
    cudaGraphNode_t one, two;
    OK(cudaGraphCreate(&plain, 0));
    OK(cudaGraphAddHostNode(&one, plain, nullptr, 0, &function));
    OK(cudaGraphAddEmptyNode(&two, plain, &one, 1));
    OK(cudaGraphClone(&copied, plain));
    cudaGraphExec_t of_clone;
    OK(cudaGraphInstantiate(&of_clone, copied, 0));
    OK(cudaGraphLaunch(of_clone, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(more_calls == 2);
    OK(cudaGraphExecUpdate(of_clone, plain, &result));
    OK(cudaGraphDestroyNode(two));
    CHECK(cudaGraphExecUpdate(of_clone, plain, &result) == cudaErrorGraphExecUpdateFailure);
    CHECK(result.result == cudaGraphExecUpdateErrorTopologyChanged);
    (void)cudaGetLastError();

    // A graph that waits for an event which a stream records later than the graph was made.
    cudaGraph_t waiting;
    cudaGraphNode_t wait;
    OK(cudaGraphCreate(&waiting, 0));
    OK(cudaGraphAddEventWaitNode(&wait, waiting, nullptr, 0, event));
    OK(cudaGraphAddEmptyNode(&empty, waiting, &wait, 1));
    OK(cudaGraphAddMemcpyNode1D(&copy, waiting, &empty, 1, h + 1, h, 4, cudaMemcpyHostToHost));
    cudaGraphExec_t other;
    OK(cudaGraphInstantiate(&other, waiting, 0));
    cudaStream_t second_stream;
    OK(cudaStreamCreateWithFlags(&second_stream, cudaStreamNonBlocking));
    int *source = nullptr;
    OK(cudaMalloc(&source, 4));
    OK(cudaMemsetAsync(source, 0x21, 4, second_stream));
    OK(cudaMemcpyAsync(h, source, 4, cudaMemcpyDeviceToHost, second_stream));
    OK(cudaEventRecord(event, second_stream));
    OK(cudaGraphLaunch(other, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(h[1] == 0x21212121);

    // Capture across streams, with memory of the stream.
    cudaEvent_t fork, join;
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    int *temporary = nullptr;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync(&temporary, 32, stream));
    OK(cudaMemsetAsync(temporary, 0, 32, stream));
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(second_stream, fork, 0));
    add<<<1, 8, 0, second_stream>>>(temporary, 9);
    OK(cudaEventRecord(join, second_stream));
    OK(cudaStreamWaitEvent(stream, join, 0));
    OK(cudaMemcpyAsync(h, temporary, 32, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(temporary, stream));
    cudaGraph_t captured;
    OK(cudaStreamEndCapture(stream, &captured));
    cudaGraphExec_t third;
    OK(cudaGraphInstantiate(&third, captured, 0));
    for (int i = 0; i < 2; ++i) {
        h[3] = 0;
        OK(cudaGraphLaunch(third, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(h[3] == 9);
    }
    std::printf("passed\n");
}
