// Graphs as wholes: cuGraph*. Their handles are the runtime's.
#include "driver/call.h"

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
