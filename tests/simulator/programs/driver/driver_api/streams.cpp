// Streams, events and graphs.
#include "cases.h"

namespace {

CASE(streams_and_events) {
    CUcontext context = new_context(), found = nullptr;
    CUmodule module = load_ptx();
    CUstream first, second;
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    OK(cuStreamGetCtx(first, &found));
    CHECK(found == context);
    unsigned flags = 0;
    int priority = 0;
    OK(cuStreamGetFlags(second, &flags));
    OK(cuStreamGetPriority(second, &priority));
    CHECK(flags == CU_STREAM_NON_BLOCKING && priority == -1);
    check_add(function_of(module, "add"), 300, first);
    CUevent start, end, without_time;
    OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&without_time, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr value = upload(std::vector<int>{5});
    int *pinned;
    OK(cuMemAllocHost(reinterpret_cast<void **>(&pinned), 4));
    *pinned = 0;
    OK(cuEventRecord(start, first));
    OK(cuMemsetD32Async(value, 77, 1, first));
    OK(cuEventRecord(end, first));
    EXPECT(cuEventQuery(end), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(second, end, 0));
    OK(cuMemcpyDtoHAsync(pinned, value, 4, second));
    CHECK(*pinned == 0);  // late means late
    OK(cuStreamSynchronize(second));
    CHECK(*pinned == 77);
    OK(cuEventQuery(end));
    OK(cuEventSynchronize(end));
    OK(cuStreamQuery(first));
    float milliseconds = -1;
    OK(cuEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0);
    EXPECT(cuEventElapsedTime(&milliseconds, start, without_time), CUDA_ERROR_INVALID_HANDLE);
    int calls = 0;
    OK(cuLaunchHostFunc(first, [](void *p) { *static_cast<int *>(p) += 1; }, &calls));
    OK(cuStreamAddCallback(
        first,
        [](CUstream, CUresult result, void *p) {
            if (result == CUDA_SUCCESS) *static_cast<int *>(p) += 10;
        },
        &calls, 0));
    CHECK(calls == 0);
    OK(cuStreamSynchronize(first));
    CHECK(calls == 11);
    OK(cuEventDestroy(start));
    EXPECT(cuEventDestroy(start), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(first));
    EXPECT(cuStreamDestroy(first), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxDestroy(context));
}

CASE(captured_and_built_graphs) {
    new_context();
    CUmodule module = load_ptx();
    CUfunction add = function_of(module, "add");
    const std::vector<float> ones(100, 1.0f);
    CUdeviceptr a = upload(ones), b = upload(ones);
    int n = 100;
    void *parameters[] = {&a, &b, &a, &n};
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUgraph graph;
    CUgraphExec instance;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    for (int i = 0; i < 2; ++i) OK(cuLaunchKernel(add, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    OK(cuStreamEndCapture(stream, &graph));
    size_t count = 0;
    OK(cuGraphGetNodes(graph, nullptr, &count));
    CHECK(count == 2);
    OK(cuGraphInstantiate(&instance, graph, 0));
    for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(instance, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(download<float>(a, 100) == std::vector<float>(100, 7.0f));
    OK(cuGraphExecDestroy(instance));
    OK(cuGraphDestroy(graph));
    // By hand: a fill, a kernel, a copy and a host function, one after the other.
    CUgraphNode fill, kernel, copy, host;
    OK(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill_parameters{a, 0, 0, 4, 100, 1};
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_parameters, context));
    CUDA_KERNEL_NODE_PARAMS launch{};
    launch.func = add;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
    launch.blockDimX = 128;
    launch.blockDimY = launch.blockDimZ = 1;
    launch.kernelParams = parameters;
    OK(cuGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
    std::vector<float> back(100);
    CUDA_MEMCPY3D move{};
    move.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    move.srcDevice = a;
    move.dstMemoryType = CU_MEMORYTYPE_HOST;
    move.dstHost = back.data();
    move.WidthInBytes = 400;
    move.Height = move.Depth = 1;
    OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &move, context));
    int calls = 0;
    CUDA_HOST_NODE_PARAMS call{[](void *p) { ++*static_cast<int *>(p); }, &calls};
    OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
    CUgraphNodeType type;
    OK(cuGraphNodeGetType(kernel, &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
    OK(cuGraphInstantiate(&instance, graph, 0));
    OK(cuGraphLaunch(instance, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(back == ones && calls == 1);
}

}  // namespace
