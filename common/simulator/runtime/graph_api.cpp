// CUDA graphs: graphs and their edges, instances, launches, stream capture, and what a program asks of the memory that
// graphs allocate. Nodes: runtime/graph_nodes_api.cpp.
#include <algorithm>
#include <utility>

#include "runtime/capture.h"
#include "runtime/graph_memory.h"
#include "runtime/graphs.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

// What the functions that list nodes do: nodes == null asks for their number.
cudaError_t list_nodes(const std::vector<Graph::Node *> &all, cudaGraphNode_t *nodes, size_t *count) {
    for (size_t i = 0; nodes && i < *count; ++i) nodes[i] = i < all.size() ? handle_of(all[i]) : nullptr;
    *count = nodes ? std::min(*count, all.size()) : all.size();
    return cudaSuccess;
}

std::vector<Graph::Node *> dependents(const Graph &graph, const Graph::Node *node) {
    std::vector<Graph::Node *> found;
    for (const auto &other : graph.nodes)
        if (std::find(other->after.begin(), other->after.end(), node) != other->after.end())
            found.push_back(other.get());
    return found;
}

}  // namespace

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    return api([&](Runtime &runtime) {
        if (!graph || flags) return cudaErrorInvalidValue;
        *graph = runtime.graphs.add(std::make_shared<Graph>());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return api([&](Runtime &runtime) {
        runtime.graphs.destroy(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long flags) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        const auto wanted = runtime.graphs.find(graph);
        if (runtime.graphs.has_instance_with_memory_of(*wanted)) {
            say("cudaGraphInstantiate: a graph that allocates or frees memory has one instance at a time, and this one "
                "has it already");
            return cudaErrorInvalidValue;
        }
        *result = runtime.graphs.instantiate(*wanted, flags);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(result, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t instance, unsigned long long *flags) {
    return api([&](Runtime &runtime) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = runtime.graphs.find(instance).flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
    return api([&](Runtime &runtime) {
        runtime.graphs.destroy(instance);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t graph_handle,
                                cudaGraphExecUpdateResultInfo *result) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        *result = {};
        GraphInstance &instance = runtime.graphs.find(handle);
        const auto graph = runtime.graphs.find(graph_handle);
        const std::vector<const Graph::Node *> nodes = in_order(*graph);
        if (nodes.size() != instance.operations.size()) {
            result->result = cudaGraphExecUpdateErrorTopologyChanged;
            return cudaErrorGraphExecUpdateFailure;
        }
        for (size_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i]->operation.node_type == instance.operations[i].node_type) continue;
            result->result = cudaGraphExecUpdateErrorNodeTypeChanged;
            result->errorNode = handle_of(const_cast<Graph::Node *>(nodes[i]));
            return cudaErrorGraphExecUpdateFailure;
        }
        for (size_t i = 0; i < nodes.size(); ++i) instance.operations[i] = nodes[i]->operation;
        instance.predecessors = predecessors(*graph, nodes);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    return api([&](Runtime &runtime) {
        GraphInstance &instance = runtime.graphs.find(handle);
        const auto stream = runtime.scheduler.resolve(stream_handle);
        runtime.reports.host.call("cudaGraphLaunch", stream->number());
        prepare_launch(runtime, instance.operations, instance.flags, stream);
        launch_in_order(runtime, instance, stream);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
    return api([&](Runtime &runtime) {
        runtime.graphs.find(handle);
        runtime.scheduler.resolve(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *, size_t count) {
    return api([&](Runtime &runtime) {
        runtime.graphs.find(graph);
        if (count && (!from || !to)) return cudaErrorInvalidValue;
        for (size_t i = 0; i < count; ++i) {
            runtime.graphs.node(to[i]).after.push_back(&runtime.graphs.node(from[i]));
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
    return api([&](Runtime &runtime) {
        if (!type) return cudaErrorInvalidValue;
        *type = runtime.graphs.node(node).operation.node_type;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count) {
    return api([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        const auto graph = runtime.graphs.find(handle);
        if (!nodes) {
            *count = graph->nodes.size();
            return cudaSuccess;
        }
        for (size_t i = 0; i < *count; ++i)
            nodes[i] = i < graph->nodes.size() ? handle_of(graph->nodes[i].get()) : nullptr;
        *count = std::min(*count, graph->nodes.size());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count) {
    return api([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        std::vector<Graph::Node *> roots;
        for (const auto &node : runtime.graphs.find(handle)->nodes)
            if (node->after.empty()) roots.push_back(node.get());
        return list_nodes(roots, nodes, count);
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges,
                                         size_t *count) {
    return api([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        const auto &after = runtime.graphs.node(node).after;
        list_nodes(after, nodes, count);
        if (edges) std::fill_n(edges, *count, cudaGraphEdgeData{});
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges,
                                           size_t *count) {
    return api([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        Graph *graph = nullptr;
        const Graph::Node &wanted = runtime.graphs.node(node, &graph);
        list_nodes(dependents(*graph, &wanted), nodes, count);
        if (edges) std::fill_n(edges, *count, cudaGraphEdgeData{});
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count) {
    return api([&](Runtime &runtime) {
        if (!count || !from != !to) return cudaErrorInvalidValue;
        std::vector<Graph::Node *> starts, ends;
        for (const auto &node : runtime.graphs.find(handle)->nodes) {
            for (Graph::Node *before : node->after) {
                starts.push_back(before);
                ends.push_back(node.get());
            }
        }
        size_t first = *count;
        list_nodes(starts, from, &first);
        list_nodes(ends, to, count);
        if (from && edges) std::fill_n(edges, *count, cudaGraphEdgeData{});
        return cudaSuccess;
    });
}

cudaError_t cudaGraphClone(cudaGraph_t *result, cudaGraph_t original) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        const auto graph = runtime.graphs.find(original);
        if (has_memory_nodes(*graph)) {
            say("cudaGraphClone: a graph that allocates or frees memory cannot be cloned");
            return cudaErrorInvalidValue;
        }
        *result = runtime.graphs.add(clone(*graph));
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
    return api([&](Runtime &runtime) {
        Graph *graph = nullptr;
        const Graph::Node *node = &runtime.graphs.node(handle, &graph);
        if (has_memory_nodes(*graph)) {
            say("cudaGraphDestroyNode: nodes of a graph that allocates or frees memory cannot be removed");
            return cudaErrorInvalidValue;
        }
        for (const auto &other : graph->nodes) std::erase(other->after, node);
        std::erase_if(graph->nodes, [&](const auto &other) { return other.get() == node; });
        return cudaSuccess;
    });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->capture) return cudaErrorIllegalState;
        stream->capture = std::make_shared<Graph>();
        stream->capture->origin = stream.get();
        stream->capture->id = ++runtime.captures;
        stream->capture->mode = mode;
        stream->capture->captured_by = std::this_thread::get_id();
        stream->capture_status = cudaStreamCaptureStatusActive;
        stream->tails.clear();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *result) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!result) return cudaErrorInvalidValue;
        *result = nullptr;
        const std::shared_ptr<Graph> graph = stream->capture;
        if (!graph) return cudaErrorIllegalState;
        if (graph->origin != stream.get()) return cudaErrorStreamCaptureUnmatched;
        const std::vector<Graph::Node *> ends = stream->tails;
        bool valid = true;
        for (const auto &other : runtime.scheduler.streams()) {
            if (other->capture != graph) continue;
            valid = valid && other->capture_status == cudaStreamCaptureStatusActive;
            other->capture.reset();
            other->tails.clear();
            other->capture_status = cudaStreamCaptureStatusNone;
        }
        if (!valid) return cudaErrorStreamCaptureInvalidated;
        check_joined(*graph, *stream, ends);
        *result = runtime.graphs.add(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    return api([&](Runtime &runtime) {
        if (!status) return cudaErrorInvalidValue;
        *status = runtime.scheduler.resolve(handle)->capture_status;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!status) return cudaErrorInvalidValue;
        *status = stream->capture_status;
        if (id) *id = stream->capture ? stream->capture->id : 0;
        if (graph || dependencies || edges || count) {
            if (!stream->capture) return cudaSuccess;
            say("cudaStreamGetCaptureInfo: the graph of a capture is not available before it ends");
            return cudaErrorNotSupported;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    if (!mode) return record(cudaErrorInvalidValue);
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
}

namespace {

// The memory of a node of this type; throws Failure{cudaErrorInvalidValue} for another node.
const GraphAllocation &memory_of(Runtime &runtime, cudaGraphNode_t handle, cudaGraphNodeType type) {
    const Operation &operation = runtime.graphs.node(handle).operation;
    if (operation.node_type != type || !operation.memory) throw Failure{cudaErrorInvalidValue};
    return *operation.memory;
}

void check_device(int device) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || device < 0 || device >= count)
        throw Failure{cudaErrorInvalidDevice};
}

template <class F>
cudaError_t device_api(int device, F body) {
    try {
        check_device(device);
    } catch (const Failure &failure) {
        return record(failure.code);
    }
    return api(body);
}

bool counts_unfreed(cudaGraphMemAttributeType attribute) {
    return attribute == cudaGraphMemAttrUsedMemCurrent || attribute == cudaGraphMemAttrUsedMemHigh;
}

bool is_current(cudaGraphMemAttributeType attribute) {
    return attribute == cudaGraphMemAttrUsedMemCurrent || attribute == cudaGraphMemAttrReservedMemCurrent;
}

bool is_known(cudaGraphMemAttributeType attribute) {
    return attribute >= cudaGraphMemAttrUsedMemCurrent && attribute <= cudaGraphMemAttrReservedMemHigh;
}

}  // namespace

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *p) {
    return api([&](Runtime &runtime) {
        if (!p) return cudaErrorInvalidValue;
        *p = memory_of(runtime, node, cudaGraphNodeTypeMemAlloc).parameters;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *address) {
    return api([&](Runtime &runtime) {
        if (!address) return cudaErrorInvalidValue;
        *static_cast<void **>(address) = memory_of(runtime, node, cudaGraphNodeTypeMemFree).parameters.dptr;
        return cudaSuccess;
    });
}

// What rests stays reserved: its address must stay the same.
cudaError_t cudaDeviceGraphMemTrim(int device) {
    return device_api(device, [](Runtime &) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    return device_api(device, [&](Runtime &) {
        if (!value || !is_known(attribute)) return cudaErrorInvalidValue;
        *static_cast<uint64_t *>(value) = graph_memory_bytes(counts_unfreed(attribute), is_current(attribute));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    return device_api(device, [&](Runtime &) {
        if (!value || !is_known(attribute) || is_current(attribute) || *static_cast<uint64_t *>(value))
            return cudaErrorInvalidValue;
        reset_graph_memory_peak(counts_unfreed(attribute));
        return cudaSuccess;
    });
}
