// Nodes of graphs: what each kind does, added to a graph and changed there or in an instance.
#include <algorithm>

#include "runtime/copy.h"
#include "runtime/graph_memory.h"
#include "runtime/graphs.h"
#include "runtime/launch.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

// `make` gives what the node does.
template <class F>
cudaError_t add_node(cudaGraphNode_t *result, cudaGraph_t handle, const cudaGraphNode_t *dependencies, size_t count,
                     F make) {
    return api([&](Runtime &runtime) {
        if (!result || (count && !dependencies)) return cudaErrorInvalidValue;
        const auto graph = runtime.graphs.find(handle);
        std::vector<Graph::Node *> after;
        for (size_t i = 0; i < count; ++i) after.push_back(&runtime.graphs.node(dependencies[i]));
        Graph::Node *node = graph->add(make(runtime));
        node->after = std::move(after);
        *result = handle_of(node);
        return cudaSuccess;
    });
}

// Gives an instance's operation of that node new parameters; its kind stays.
template <class F>
cudaError_t change_instance(cudaGraphExec_t handle, cudaGraphNode_t node, F make) {
    return api([&](Runtime &runtime) {
        GraphInstance &instance = runtime.graphs.find(handle);
        const Graph::Node *wanted = &runtime.graphs.node(node);
        const auto found = std::find(instance.nodes.begin(), instance.nodes.end(), wanted);
        if (found == instance.nodes.end()) return cudaErrorInvalidValue;
        Operation &operation = instance.operations[static_cast<size_t>(found - instance.nodes.begin())];
        Operation changed = make(runtime);
        if (operation.node_type != changed.node_type) return cudaErrorInvalidValue;
        operation = std::move(changed);
        return cudaSuccess;
    });
}

template <class F>
cudaError_t change_node(cudaGraphNode_t handle, F make) {
    return api([&](Runtime &runtime) {
        Graph::Node &node = runtime.graphs.node(handle);
        Operation changed = make(runtime);
        if (node.operation.node_type != changed.node_type || node.child) return cudaErrorInvalidValue;
        node.operation = std::move(changed);
        return cudaSuccess;
    });
}

Operation empty(cudaGraphNodeType type = cudaGraphNodeTypeEmpty) {
    Operation operation;
    operation.run = [] {};
    operation.node_type = type;
    return operation;
}

// Of cudaKernelNodeParams and its second version.
template <class Params>
Operation kernel_operation(Runtime &runtime, const Params *p) {
    if (!p) throw Failure{cudaErrorInvalidValue};
    if (p->extra) throw Failure{cudaErrorNotSupported};
    return make_launch(runtime, {.grid = p->gridDim, .block = p->blockDim, .shared = p->sharedMemBytes}, p->func,
                       p->kernelParams);
}

template <class Params>
Operation fill_operation(Runtime &runtime, const Params *p) {
    if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) throw Failure{cudaErrorInvalidValue};
    return make_fill(runtime, "cudaGraphAddMemsetNode", {address_of(p->dst), p->pitch},
                     {p->width * p->elementSize, p->height}, p->value, p->elementSize);
}

template <class Params>
Operation host_operation(const Params *p) {
    if (!p || !p->fn) throw Failure{cudaErrorInvalidValue};
    Operation operation;
    operation.run = [function = p->fn, data = p->userData] { function(data); };
    operation.host_function = true;
    operation.node_type = cudaGraphNodeTypeHost;
    return operation;
}

Operation copy_operation(Runtime &runtime, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return make_copy(runtime, "cudaGraphAddMemcpyNode1D", {address_of(to)}, {address_of(from)}, {bytes}, kind);
}

Operation copy_operation(Runtime &runtime, const cudaMemcpy3DParms *p) {
    if (!p) throw Failure{cudaErrorInvalidValue};
    if (p->srcArray || p->dstArray) {
        say("cudaGraphAddMemcpyNode: CUDA arrays are not supported");
        throw Failure{cudaErrorNotSupported};
    }
    const auto region = [](const cudaPitchedPtr &pointer, const cudaPos &position) {
        const uint64_t plane = pointer.pitch * pointer.ysize;
        return Region{address_of(pointer.ptr) + position.z * plane + position.y * pointer.pitch + position.x,
                      pointer.pitch, plane};
    };
    return make_copy(runtime, "cudaGraphAddMemcpyNode", region(p->dstPtr, p->dstPos), region(p->srcPtr, p->srcPos),
                     {p->extent.width, p->extent.height, p->extent.depth}, p->kind);
}

Operation record_operation(Runtime &runtime, cudaEvent_t event) {
    Operation operation = empty(cudaGraphNodeTypeEventRecord);
    operation.what.kind = "event_record";
    operation.records = runtime.events.resolve(event);
    return operation;
}

Operation wait_operation(Runtime &runtime, cudaEvent_t event) {
    Operation operation = empty(cudaGraphNodeTypeWaitEvent);
    operation.what.kind = "event_wait";
    operation.waits = runtime.events.resolve(event);
    return operation;
}

// Of cudaMemAllocNodeParams and its second version.
template <class Params>
cudaError_t add_allocation(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                           Params *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) {
        if (!p || !p->bytesize) throw Failure{cudaErrorInvalidValue};
        cudaMemAllocNodeParams parameters{};
        parameters.poolProps = p->poolProps;
        parameters.accessDescs = p->accessDescs;
        parameters.accessDescCount = p->accessDescCount;
        parameters.bytesize = p->bytesize;
        Operation operation = allocation_node(runtime, *runtime.graphs.find(graph), parameters);
        p->dptr = parameters.dptr;
        return operation;
    });
}

// Of the kinds of nodes that have parameters to change.
Operation operation_of(Runtime &runtime, cudaGraphNodeParams *p) {
    if (!p) throw Failure{cudaErrorInvalidValue};
    switch (p->type) {
        case cudaGraphNodeTypeKernel:
            return kernel_operation(runtime, &p->kernel);
        case cudaGraphNodeTypeMemcpy:
            return copy_operation(runtime, &p->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            return fill_operation(runtime, &p->memset);
        case cudaGraphNodeTypeHost:
            return host_operation(&p->host);
        case cudaGraphNodeTypeEmpty:
            return empty();
        case cudaGraphNodeTypeWaitEvent:
            return wait_operation(runtime, p->eventWait.event);
        case cudaGraphNodeTypeEventRecord:
            return record_operation(runtime, p->eventRecord.event);
        case cudaGraphNodeTypeMemAlloc:
        case cudaGraphNodeTypeMemFree:
            throw Failure{cudaErrorInvalidValue};
        default:
            say("graph nodes for semaphores and conditions are not supported");
            throw Failure{cudaErrorNotSupported};
    }
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaKernelNodeParams *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return kernel_operation(runtime, p); });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *p) {
    return change_node(node, [&](Runtime &runtime) { return kernel_operation(runtime, p); });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *p) {
    return change_instance(instance, node, [&](Runtime &runtime) { return kernel_operation(runtime, p); });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaMemcpy3DParms *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return copy_operation(runtime, p); });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *p) {
    return change_node(node, [&](Runtime &runtime) { return copy_operation(runtime, p); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms *p) {
    return change_instance(instance, node, [&](Runtime &runtime) { return copy_operation(runtime, p); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(node, graph, dependencies, count,
                    [&](Runtime &runtime) { return copy_operation(runtime, to, from, bytes, kind); });
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           cudaMemcpyKind kind) {
    return change_node(node, [&](Runtime &runtime) { return copy_operation(runtime, to, from, bytes, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t instance, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes, cudaMemcpyKind kind) {
    return change_instance(instance, node,
                           [&](Runtime &runtime) { return copy_operation(runtime, to, from, bytes, kind); });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaMemsetParams *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return fill_operation(runtime, p); });
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *p) {
    return change_node(node, [&](Runtime &runtime) { return fill_operation(runtime, p); });
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                             const cudaMemsetParams *p) {
    return change_instance(instance, node, [&](Runtime &runtime) { return fill_operation(runtime, p); });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const cudaHostNodeParams *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &) { return host_operation(p); });
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *p) {
    return change_node(node, [&](Runtime &) { return host_operation(p); });
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node,
                                           const cudaHostNodeParams *p) {
    return change_instance(instance, node, [&](Runtime &) { return host_operation(p); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count) {
    return add_node(node, graph, dependencies, count, [](Runtime &) { return empty(); });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                        size_t count, cudaEvent_t event) {
    return add_node(node, graph, dependencies, count,
                    [&](Runtime &runtime) { return record_operation(runtime, event); });
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t instance, cudaGraphNode_t node, cudaEvent_t event) {
    return change_instance(instance, node, [&](Runtime &runtime) { return record_operation(runtime, event); });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                      size_t count, cudaEvent_t event) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return wait_operation(runtime, event); });
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t instance, cudaGraphNode_t node, cudaEvent_t event) {
    return change_instance(instance, node, [&](Runtime &runtime) { return wait_operation(runtime, event); });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, cudaMemAllocNodeParams *p) {
    return add_allocation(node, graph, dependencies, count, p);
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                    size_t count, void *p) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) {
        return free_node(runtime, "cudaGraphAddMemFreeNode", *runtime.graphs.find(graph), address_of(p));
    });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                       size_t count, cudaGraph_t child) {
    return add_node(node, graph, dependencies, count,
                    [&](Runtime &runtime) {
                        if (has_memory_nodes(*runtime.graphs.find(child))) {
                            say("cudaGraphAddChildGraphNode: a graph that allocates or frees memory cannot be a child");
                            throw Failure{cudaErrorInvalidValue};
                        }
                        return empty(cudaGraphNodeTypeGraph);
                    }) == cudaSuccess
               ? api([&](Runtime &runtime) {
                     runtime.graphs.node(*node).child = clone(*runtime.graphs.find(child));
                     return cudaSuccess;
                 })
               : cudaPeekAtLastError();
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             const cudaGraphEdgeData *, size_t count, cudaGraphNodeParams *p) {
    if (p && p->type == cudaGraphNodeTypeGraph)
        return cudaGraphAddChildGraphNode(node, graph, dependencies, count, p->graph.graph);
    if (p && p->type == cudaGraphNodeTypeMemAlloc) return add_allocation(node, graph, dependencies, count, &p->alloc);
    if (p && p->type == cudaGraphNodeTypeMemFree)
        return cudaGraphAddMemFreeNode(node, graph, dependencies, count, p->free.dptr);
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return operation_of(runtime, p); });
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *p) {
    return change_node(node, [&](Runtime &runtime) { return operation_of(runtime, p); });
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node, cudaGraphNodeParams *p) {
    return change_instance(instance, node, [&](Runtime &runtime) { return operation_of(runtime, p); });
}
