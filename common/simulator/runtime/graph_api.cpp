// CUDA graphs: stream capture, graphs built by hand from the common kinds of nodes, launches.
#include <algorithm>

#include "runtime/copy.h"
#include "runtime/launch.h"
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
        for (const Operation &operation : instance.operations) runtime.scheduler.enqueue(stream, operation);
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

// The body of the functions that add a node: `make` gives its operation.
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

Operation kernel_operation(Runtime &runtime, const cudaKernelNodeParams &p) {
    if (p.extra) throw Failure{cudaErrorNotSupported};
    return make_launch(runtime, {.grid = p.gridDim, .block = p.blockDim, .shared = p.sharedMemBytes}, p.func,
                       p.kernelParams);
}

Operation nothing() {
    Operation operation;
    operation.run = [] {};
    return operation;
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
        *result = runtime.graphs.instantiate(*runtime.graphs.find(graph), flags);
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

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaKernelNodeParams *p) {
    if (!p) return record(cudaErrorInvalidValue);
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) { return kernel_operation(runtime, *p); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) {
        return make_copy(runtime, "cudaGraphAddMemcpyNode1D", {address_of(to)}, {address_of(from)}, {bytes}, kind);
    });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaMemsetParams *p) {
    if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return record(cudaErrorInvalidValue);
    return add_node(node, graph, dependencies, count, [&](Runtime &runtime) {
        return make_fill(runtime, "cudaGraphAddMemsetNode", {address_of(p->dst), p->pitch},
                         {p->width * p->elementSize, p->height}, p->value, p->elementSize);
    });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const cudaHostNodeParams *p) {
    if (!p || !p->fn) return record(cudaErrorInvalidValue);
    return add_node(node, graph, dependencies, count, [&](Runtime &) {
        Operation operation;
        operation.run = [function = p->fn, data = p->userData] { function(data); };
        operation.host_function = true;
        operation.node_type = cudaGraphNodeTypeHost;
        return operation;
    });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count) {
    return add_node(node, graph, dependencies, count, [](Runtime &) { return nothing(); });
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

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t handle, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *p) {
    return api([&](Runtime &runtime) {
        GraphInstance &instance = runtime.graphs.find(handle);
        if (!p) return cudaErrorInvalidValue;
        const Graph::Node *wanted = &runtime.graphs.node(node);
        const auto found = std::find(instance.nodes.begin(), instance.nodes.end(), wanted);
        if (found == instance.nodes.end()) return cudaErrorInvalidValue;
        Operation &operation = instance.operations[static_cast<size_t>(found - instance.nodes.begin())];
        if (operation.node_type != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
        operation = kernel_operation(runtime, *p);
        return cudaSuccess;
    });
}
