// CUDA graphs: stream capture, graphs and their edges, instances, launches. Nodes: runtime/graph_nodes_api.cpp.
#include <algorithm>

#include "runtime/graph_memory.h"
#include "runtime/graph_order.h"
#include "runtime/graphs.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz);
WARPSIM_TWIN(cudaStreamEndCapture, cudaStreamEndCapture_ptsz);
WARPSIM_TWIN(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz);
WARPSIM_TWIN(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz);
WARPSIM_TWIN(cudaGraphLaunch, cudaGraphLaunch_ptsz);
WARPSIM_TWIN(cudaGraphUpload, cudaGraphUpload_ptsz);

namespace {

cudaError_t begin_capture(cudaStream_t handle, bool per_thread) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
        if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->capture) return cudaErrorIllegalState;
        stream->capture = std::make_shared<Graph>();
        stream->capture->origin = stream.get();
        stream->capture->id = ++runtime.captures;
        stream->capture_status = cudaStreamCaptureStatusActive;
        stream->tails.clear();
        return cudaSuccess;
    });
}

cudaError_t end_capture(cudaStream_t handle, cudaGraph_t *result, bool per_thread) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
        if (!result) return cudaErrorInvalidValue;
        *result = nullptr;
        const std::shared_ptr<Graph> graph = stream->capture;
        if (!graph) return cudaErrorIllegalState;
        if (graph->origin != stream.get()) return cudaErrorStreamCaptureUnmatched;
        bool valid = true;
        for (const auto &other : runtime.scheduler.streams()) {
            if (other->capture != graph) continue;
            valid = valid && other->capture_status == cudaStreamCaptureStatusActive;
            other->capture.reset();
            other->tails.clear();
            other->capture_status = cudaStreamCaptureStatusNone;
        }
        if (!valid) return cudaErrorStreamCaptureInvalidated;
        *result = runtime.graphs.add(graph);
        return cudaSuccess;
    });
}

cudaError_t is_capturing(cudaStream_t handle, cudaStreamCaptureStatus *status, bool per_thread) {
    return api([&](Runtime &runtime) {
        if (!status) return cudaErrorInvalidValue;
        *status = runtime.scheduler.resolve(handle, per_thread)->capture_status;
        return cudaSuccess;
    });
}

cudaError_t capture_info(cudaStream_t handle, cudaStreamCaptureStatus *status, unsigned long long *id,
                         cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                         size_t *count, bool per_thread) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
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

cudaError_t launch_graph(cudaGraphExec_t handle, cudaStream_t stream_handle, bool per_thread) {
    return api([&](Runtime &runtime) {
        const GraphInstance &instance = runtime.graphs.find(handle);
        const auto stream = runtime.scheduler.resolve(stream_handle, per_thread);
        runtime.reports.host.call("cudaGraphLaunch", stream->number());
        prepare_launch(runtime, instance.operations, instance.flags, stream);
        launch_in_order(runtime, instance, stream);
        return cudaSuccess;
    });
}

cudaError_t upload_graph(cudaGraphExec_t handle, cudaStream_t stream, bool per_thread) {
    return api([&](Runtime &runtime) {
        runtime.graphs.find(handle);
        runtime.scheduler.resolve(stream, per_thread);
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    return begin_capture(stream, false);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode) {
    return begin_capture(stream, true);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    return end_capture(stream, graph, false);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph) {
    return end_capture(stream, graph, true);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    return is_capturing(stream, status, false);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    return is_capturing(stream, status, true);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    return capture_info(stream, status, id, graph, dependencies, edges, count, false);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                                          cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                          const cudaGraphEdgeData **edges, size_t *count) {
    return capture_info(stream, status, id, graph, dependencies, edges, count, true);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    if (!mode) return record(cudaErrorInvalidValue);
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
}

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
        instance.behind = predecessors(*graph, nodes);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
    return launch_graph(instance, stream, false);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t instance, cudaStream_t stream) {
    return launch_graph(instance, stream, true);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t stream) {
    return upload_graph(instance, stream, false);
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t instance, cudaStream_t stream) {
    return upload_graph(instance, stream, true);
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
