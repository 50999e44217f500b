// Graphs and their executable instances, by handle; which nodes come before which, child graphs taken apart: for the
// order of a launch's operations.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/scheduler.h"

namespace warpsim::rt {

// A graph as it was when it was instantiated: its operations in a valid order.
struct GraphInstance {
    uint64_t graph = 0;  // its number
    std::vector<Operation> operations;
    std::vector<const Graph::Node *> nodes;         // of the graph, to find an operation by its node
    std::vector<std::vector<size_t>> predecessors;  // of each operation: those that it directly follows
    unsigned long long flags = 0;
    Ticket last_launch;
};

class Graphs {
  public:
    cudaGraph_t add(std::shared_ptr<Graph>);
    // Both throw Failure{cudaErrorInvalidValue} for an unknown handle.
    std::shared_ptr<Graph> find(cudaGraph_t) const;
    GraphInstance &find(cudaGraphExec_t) const;
    // The node, and the graph it belongs to where `graph` is given. Throws Failure.
    Graph::Node &node(cudaGraphNode_t, Graph **graph = nullptr) const;
    // Some instance was made of this graph, and it allocates or frees memory.
    bool has_instance_with_memory_of(const Graph &) const;
    cudaGraphExec_t instantiate(const Graph &, unsigned long long flags);
    void destroy(cudaGraph_t);
    void destroy(cudaGraphExec_t);

  private:
    std::map<cudaGraph_t, std::shared_ptr<Graph>> graphs_;
    std::map<cudaGraphExec_t, std::unique_ptr<GraphInstance>> instances_;
};

std::shared_ptr<Graph> clone(const Graph &);

// The nodes so that each comes after those it depends on, those of child graphs in place of the node. Throws
// Failure{cudaErrorInvalidValue} for a cycle.
std::vector<const Graph::Node *> in_order(const Graph &);

inline cudaGraphNode_t handle_of(Graph::Node *node) {
    return reinterpret_cast<cudaGraphNode_t>(node);
}

// Of each operation of the list that in_order() gives: the numbers of those that it directly follows.
std::vector<std::vector<size_t>> predecessors(const Graph &, const std::vector<const Graph::Node *> &in_order);

// Queues an instance's operations: branches of the graph are not ordered with one another (launch_order.h), though
// they run one after the other. The launches of one instance come one after the other, whatever their streams.
void launch_in_order(Runtime &, GraphInstance &, const std::shared_ptr<Stream> &);

}  // namespace warpsim::rt
