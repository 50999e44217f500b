// Symbols of earlier versions of the driver, which programs built with older toolkits link to. Those of 32-bit
// addresses (before CUDA 3.2) are not here.
#include "driver/call.h"
#include "runtime/per_thread.h"

using namespace warpsim;
using namespace warpsim::driver;

// A function of `n` parameters whose symbol changed and whose parameters did not. older_x: no macro of the header's
// changes that name.
#define SAME(n, symbol, function)                                                                                  \
    extern "C" __attribute__((visibility("default"))) CUresult older_##symbol(FORWARD_##n(function)) asm(#symbol); \
    CUresult older_##symbol(FORWARD_##n(function)) {                                                               \
        return function(PASS_##n);                                                                                 \
    }

// clang-format off
SAME(1, cuCtxDestroy, cuCtxDestroy_v2)
SAME(1, cuCtxPopCurrent, cuCtxPopCurrent_v2)
SAME(1, cuCtxPushCurrent, cuCtxPushCurrent_v2)
SAME(1, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)
SAME(1, cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)
SAME(2, cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2)
SAME(2, cuDeviceGetUuid, cuDeviceGetUuid_v2)
SAME(1, cuEventDestroy, cuEventDestroy_v2)
SAME(3, cuEventElapsedTime, cuEventElapsedTime_v2)
SAME(1, cuStreamDestroy, cuStreamDestroy_v2)
SAME(3, cuMemHostRegister, cuMemHostRegister_v2)
SAME(4, cuLinkCreate, cuLinkCreate_v2)
SAME(8, cuLinkAddData, cuLinkAddData_v2)
SAME(6, cuLinkAddFile, cuLinkAddFile_v2)
// clang-format on

#define OLDER(symbol, ...)                                                                               \
    extern "C" __attribute__((visibility("default"))) CUresult older_##symbol(__VA_ARGS__) asm(#symbol); \
    CUresult older_##symbol(__VA_ARGS__)

extern "C" CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);

OLDER(cuCtxCreate, CUcontext *context, unsigned flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

namespace {

CUmemLocation place(CUdevice device) {
    return {device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, {device}};
}

CUresult captured(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                  const CUgraphNode **dependencies, size_t *count) {
    return cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

}  // namespace

OLDER(cuMemAdvise, CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(address, bytes, advice, place(device));
}

OLDER(cuMemPrefetchAsync, CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, bytes, place(device), 0, stream);
}

OLDER(cuMemPrefetchAsync_ptsz, CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    const rt::PerThreadStream scope;
    return cuMemPrefetchAsync_v2(address, bytes, place(device), 0, stream);
}

OLDER(cuStreamBeginCapture, CUstream stream) {
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

OLDER(cuStreamBeginCapture_ptsz, CUstream stream) {
    const rt::PerThreadStream scope;
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

OLDER(cuStreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    return captured(stream, status, id, nullptr, nullptr, nullptr);
}

OLDER(cuStreamGetCaptureInfo_ptsz, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    const rt::PerThreadStream scope;
    return captured(stream, status, id, nullptr, nullptr, nullptr);
}

OLDER(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **dependencies, size_t *count) {
    return captured(stream, status, id, graph, dependencies, count);
}

OLDER(cuStreamGetCaptureInfo_v2_ptsz, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **dependencies, size_t *count) {
    const rt::PerThreadStream scope;
    return captured(stream, status, id, graph, dependencies, count);
}

OLDER(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

OLDER(cuGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

OLDER(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *nodes, size_t *count) {
    return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

OLDER(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *nodes, size_t *count) {
    return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

namespace {

CUresult instantiate(CUgraphExec *instance, CUgraph graph, CUgraphNode *wrong, char *log, size_t bytes) {
    if (wrong) *wrong = nullptr;
    if (log && bytes) *log = '\0';
    return cuGraphInstantiateWithFlags(instance, graph, 0);
}

}  // namespace

OLDER(cuGraphInstantiate, CUgraphExec *instance, CUgraph graph, CUgraphNode *wrong, char *log, size_t bytes) {
    return instantiate(instance, graph, wrong, log, bytes);
}

OLDER(cuGraphInstantiate_v2, CUgraphExec *instance, CUgraph graph, CUgraphNode *wrong, char *log, size_t bytes) {
    return instantiate(instance, graph, wrong, log, bytes);
}

OLDER(cuGraphExecUpdate, CUgraphExec instance, CUgraph graph, CUgraphNode *wrong, CUgraphExecUpdateResult *result) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult code = cuGraphExecUpdate_v2(instance, graph, &info);
    if (wrong) *wrong = info.errorNode;
    if (result) *result = info.result;
    return code;
}
