#include "runtime/graphs.h"

#include <algorithm>
#include <set>

#include "runtime/graph_order.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

cudaGraph_t Graphs::add(std::shared_ptr<Graph> graph) {
    const auto handle = reinterpret_cast<cudaGraph_t>(graph.get());
    graphs_[handle] = std::move(graph);
    return handle;
}

std::shared_ptr<Graph> Graphs::find(cudaGraph_t handle) const {
    const auto it = graphs_.find(handle);
    if (it == graphs_.end()) throw Failure{cudaErrorInvalidValue};
    return it->second;
}

GraphInstance &Graphs::find(cudaGraphExec_t handle) const {
    const auto it = instances_.find(handle);
    if (it == instances_.end()) throw Failure{cudaErrorInvalidValue};
    return *it->second;
}

Graph::Node &Graphs::node(cudaGraphNode_t handle, Graph **graph) const {
    for (const auto &[key, candidate] : graphs_) {
        for (const auto &node : candidate->nodes) {
            if (handle_of(node.get()) != handle) continue;
            if (graph) *graph = candidate.get();
            return *node;
        }
    }
    throw Failure{cudaErrorInvalidValue};
}

std::vector<const Graph::Node *> in_order(const Graph &graph) {
    std::vector<const Graph::Node *> order;
    std::set<const Graph::Node *> placed;
    while (placed.size() < graph.nodes.size()) {
        const size_t before = placed.size();
        for (const auto &node : graph.nodes) {
            const bool ready = std::all_of(node->after.begin(), node->after.end(),
                                           [&](const Graph::Node *other) { return placed.count(other) > 0; });
            if (!ready || !placed.insert(node.get()).second) continue;
            if (node->child) {
                const auto inner = in_order(*node->child);
                order.insert(order.end(), inner.begin(), inner.end());
            } else {
                order.push_back(node.get());
            }
        }
        if (placed.size() == before) throw Failure{cudaErrorInvalidValue};
    }
    return order;
}

std::shared_ptr<Graph> clone(const Graph &original) {
    auto copy = std::make_shared<Graph>();
    std::map<const Graph::Node *, Graph::Node *> copies;
    for (const auto &node : original.nodes) {
        copies[node.get()] = copy->add(node->operation);
        if (node->child) copy->nodes.back()->child = clone(*node->child);
    }
    for (const auto &node : original.nodes)
        for (const Graph::Node *before : node->after) copies[node.get()]->after.push_back(copies.at(before));
    return copy;
}

bool Graphs::has_instance_with_memory_of(const Graph &graph) const {
    return std::any_of(instances_.begin(), instances_.end(), [&](const auto &entry) {
        const GraphInstance &instance = *entry.second;
        const auto has_memory = [](const Operation &operation) { return operation.memory != nullptr; };
        return instance.graph == graph.number &&
               std::any_of(instance.operations.begin(), instance.operations.end(), has_memory);
    });
}

cudaGraphExec_t Graphs::instantiate(const Graph &graph, unsigned long long flags) {
    auto instance = std::make_unique<GraphInstance>();
    instance->graph = graph.number;
    instance->flags = flags;
    instance->nodes = in_order(graph);
    instance->predecessors = predecessors(graph, instance->nodes);
    for (const Graph::Node *node : instance->nodes) instance->operations.push_back(node->operation);
    const auto handle = reinterpret_cast<cudaGraphExec_t>(instance.get());
    instances_[handle] = std::move(instance);
    return handle;
}

void Graphs::destroy(cudaGraph_t handle) {
    if (!graphs_.erase(handle)) throw Failure{cudaErrorInvalidValue};
}

void Graphs::destroy(cudaGraphExec_t handle) {
    if (!instances_.erase(handle)) throw Failure{cudaErrorInvalidValue};
}

}  // namespace warpsim::rt
