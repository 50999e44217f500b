// Graphs: cuGraph*, whose handles are the runtime's, and their nodes, each kind with the parameters of the driver's:
// cuGraphAdd*Node and what changes them.
#include "driver/call.h"
#include "driver/formats.h"

using namespace warpsim;
using namespace warpsim::driver;

static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData));

namespace {

const cudaGraphEdgeData *same(const CUgraphEdgeData *edges) {
    return reinterpret_cast<const cudaGraphEdgeData *>(edges);
}

cudaGraphEdgeData *same(CUgraphEdgeData *edges) {
    return reinterpret_cast<cudaGraphEdgeData *>(edges);
}

}  // namespace

CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
    return call([&] { return cudaGraphCreate(graph, flags); }, Needs::driver);
}

CUresult cuGraphDestroy(CUgraph graph) {
    return call([&] { return cudaGraphDestroy(graph); }, Needs::driver);
}

CUresult cuGraphClone(CUgraph *graph, CUgraph original) {
    return call([&] { return cudaGraphClone(graph, original); }, Needs::driver);
}

CUresult cuGraphInstantiate(CUgraphExec *instance, CUgraph graph, unsigned long long flags) {
    return call([&] { return cudaGraphInstantiateWithFlags(instance, graph, flags); });
}

CUresult cuGraphExecGetFlags(CUgraphExec instance, cuuint64_t *flags) {
    return call([&] {
        want(flags);
        unsigned long long found = 0;
        check(cudaGraphExecGetFlags(instance, &found));
        *flags = found;
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec instance) {
    return call([&] { return cudaGraphExecDestroy(instance); });
}

CUresult cuGraphExecUpdate(CUgraphExec instance, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    return call([&] {
        want(info);
        cudaGraphExecUpdateResultInfo found{};
        const cudaError_t code = cudaGraphExecUpdate(instance, graph, &found);
        info->result = static_cast<CUgraphExecUpdateResult>(found.result);
        info->errorNode = found.errorNode;
        info->errorFromNode = found.errorFromNode;
        return code;
    });
}

CUresult cuGraphLaunch(CUgraphExec instance, CUstream stream) {
    return call([&] { return cudaGraphLaunch(instance, stream); });
}

CUresult cuGraphUpload(CUgraphExec instance, CUstream stream) {
    return call([&] { return cudaGraphUpload(instance, stream); });
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t count) {
    return call([&] { return cudaGraphAddDependencies(graph, from, to, same(edges), count); }, Needs::driver);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    return call([&] { return cudaGraphGetNodes(graph, nodes, count); }, Needs::driver);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    return call([&] { return cudaGraphGetRootNodes(graph, nodes, count); }, Needs::driver);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count) {
    return call([&] { return cudaGraphGetEdges(graph, from, to, same(edges), count); }, Needs::driver);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count) {
    return call([&] { return cudaGraphNodeGetDependencies(node, nodes, same(edges), count); }, Needs::driver);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count) {
    return call([&] { return cudaGraphNodeGetDependentNodes(node, nodes, same(edges), count); }, Needs::driver);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
    static_assert(int(CU_GRAPH_NODE_TYPE_MEM_FREE) == int(cudaGraphNodeTypeMemFree));
    return call([&] { return cudaGraphNodeGetType(node, reinterpret_cast<cudaGraphNodeType *>(type)); }, Needs::driver);
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
    return call([&] { return cudaGraphDestroyNode(node); }, Needs::driver);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    return call([&] { return cudaDeviceGraphMemTrim(device); }, Needs::driver);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
    return call(
        [&] {
            return cudaDeviceGetGraphMemAttribute(device, static_cast<cudaGraphMemAttributeType>(attribute), value);
        },
        Needs::driver);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
    return call(
        [&] {
            return cudaDeviceSetGraphMemAttribute(device, static_cast<cudaGraphMemAttributeType>(attribute), value);
        },
        Needs::driver);
}

namespace {

// Of both versions of the parameters.
template <class Params>
cudaKernelNodeParams kernel_of(const Params *p, void *function) {
    want(p);
    cudaKernelNodeParams same{};
    same.func = function;
    same.gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ};
    same.blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ};
    same.sharedMemBytes = p->sharedMemBytes;
    same.kernelParams = p->kernelParams;
    same.extra = p->extra;
    return same;
}

cudaKernelNodeParams same(const CUDA_KERNEL_NODE_PARAMS *p) {
    want(p && !(p->func && p->kern));
    return kernel_of(p, p->func ? static_cast<void *>(p->func) : static_cast<void *>(p->kern));
}

cudaKernelNodeParams same(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    return kernel_of(p, p ? p->func : nullptr);
}

cudaMemcpy3DParms same(const CUDA_MEMCPY3D *p) {
    want(p && !p->srcLOD && !p->dstLOD);
    if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY || p->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        rt::say(std::string(current_function()) + ": CUDA arrays are not supported");
        throw Refusal{CUDA_ERROR_NOT_SUPPORTED};
    }
    const auto pointer = [&](CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch, size_t height,
                             size_t x, size_t y) {
        void *const at = type == CU_MEMORYTYPE_HOST ? const_cast<void *>(host) : reinterpret_cast<void *>(device);
        return cudaPitchedPtr{at, pitch ? pitch : x + p->WidthInBytes, p->WidthInBytes,
                              height ? height : y + p->Height};
    };
    cudaMemcpy3DParms copy{};
    copy.srcPtr =
        pointer(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch, p->srcHeight, p->srcXInBytes, p->srcY);
    copy.dstPtr =
        pointer(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch, p->dstHeight, p->dstXInBytes, p->dstY);
    copy.srcPos = {p->srcXInBytes, p->srcY, p->srcZ};
    copy.dstPos = {p->dstXInBytes, p->dstY, p->dstZ};
    copy.extent = {p->WidthInBytes, p->Height, p->Depth};
    copy.kind = kind_of(p->dstMemoryType, p->srcMemoryType);
    return copy;
}

cudaMemsetParams same(const CUDA_MEMSET_NODE_PARAMS *p) {
    want(p);
    cudaMemsetParams fill{};
    fill.dst = reinterpret_cast<void *>(p->dst);
    fill.pitch = p->pitch;
    fill.value = p->value;
    fill.elementSize = p->elementSize;
    fill.width = p->width;
    fill.height = p->height;
    return fill;
}

cudaHostNodeParams same(const CUDA_HOST_NODE_PARAMS *p) {
    want(p);
    cudaHostNodeParams host{};
    host.fn = p->fn;
    host.userData = p->userData;
    return host;
}

// `change` is the runtime's function for what is behind the handles.
template <class Change, class Params, class... Handles>
CUresult with_params(const char *function, Change change, const Params *p, Handles... handles) {
    return call(
        [&] {
            const auto parameters = same(p);
            return change(handles..., &parameters);
        },
        Needs::context, function);
}

}  // namespace

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphAddKernelNode, p, node, graph, after, count);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphKernelNodeSetParams, p, node);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec instance, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphExecKernelNodeSetParams, p, instance, node);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMCPY3D *p, CUcontext) {
    return with_params(__func__, cudaGraphAddMemcpyNode, p, node, graph, after, count);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *p) {
    return with_params(__func__, cudaGraphMemcpyNodeSetParams, p, node);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec instance, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext) {
    return with_params(__func__, cudaGraphExecMemcpyNodeSetParams, p, instance, node);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext) {
    return with_params(__func__, cudaGraphAddMemsetNode, p, node, graph, after, count);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphMemsetNodeSetParams, p, node);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec instance, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p,
                                        CUcontext) {
    return with_params(__func__, cudaGraphExecMemsetNodeSetParams, p, instance, node);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                            const CUDA_HOST_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphAddHostNode, p, node, graph, after, count);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphHostNodeSetParams, p, node);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec instance, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) {
    return with_params(__func__, cudaGraphExecHostNodeSetParams, p, instance, node);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count) {
    return call([&] { return cudaGraphAddEmptyNode(node, graph, after, count); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  CUgraph child) {
    return call([&] { return cudaGraphAddChildGraphNode(node, graph, after, count, child); });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                   CUevent event) {
    return call([&] { return cudaGraphAddEventRecordNode(node, graph, after, count, event); });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec instance, CUgraphNode node, CUevent event) {
    return call([&] { return cudaGraphExecEventRecordNodeSetEvent(instance, node, event); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 CUevent event) {
    return call([&] { return cudaGraphAddEventWaitNode(node, graph, after, count, event); });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec instance, CUgraphNode node, CUevent event) {
    return call([&] { return cudaGraphExecEventWaitNodeSetEvent(instance, node, event); });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *p) {
    return call([&] {
        want(p);
        cudaMemAllocNodeParams parameters{};
        parameters.poolProps.allocType = static_cast<cudaMemAllocationType>(p->poolProps.allocType);
        parameters.poolProps.location = {static_cast<cudaMemLocationType>(p->poolProps.location.type),
                                         p->poolProps.location.id};
        parameters.bytesize = p->bytesize;
        check(cudaGraphAddMemAllocNode(node, graph, after, count, &parameters));
        p->dptr = reinterpret_cast<CUdeviceptr>(parameters.dptr);
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                               CUdeviceptr address) {
    return call([&] { return cudaGraphAddMemFreeNode(node, graph, after, count, reinterpret_cast<void *>(address)); });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address) {
    return call([&] { return cudaGraphMemFreeNodeGetParams(node, address); });
}

// The first version of the parameters, for programs built before CUDA 12.
#define EXPORTED extern "C" __attribute__((visibility("default"))) CUresult
#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams

EXPORTED cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    return with_params(__func__, cudaGraphAddKernelNode, p, node, graph, after, count);
}

EXPORTED cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    return with_params(__func__, cudaGraphKernelNodeSetParams, p, node);
}

EXPORTED cuGraphExecKernelNodeSetParams(CUgraphExec instance, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    return with_params(__func__, cudaGraphExecKernelNodeSetParams, p, instance, node);
}
