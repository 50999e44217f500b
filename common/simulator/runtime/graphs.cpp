#include "runtime/graphs.h"

#include <algorithm>
#include <map>
#include <set>

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

namespace {

using Numbers = std::vector<size_t>;

void add(Numbers &all, const Numbers &more) {
    for (const size_t n : more)
        if (std::find(all.begin(), all.end(), n) == all.end()) all.push_back(n);
}

class Flat {
  public:
    Flat(const std::vector<const Graph::Node *> &order) : before_(order.size()) {
        for (size_t i = 0; i < order.size(); ++i) number_[order[i]] = i;
    }
    void place(const Graph &graph, const Numbers &incoming) {
        for (const auto &node : graph.nodes) ends_of(*node, incoming);
    }
    std::vector<Numbers> take() { return std::move(before_); }

  private:
    // The operations that whatever comes after the node directly follows.
    const Numbers &ends_of(const Graph::Node &node, const Numbers &incoming) {
        if (const auto known = ends_.find(&node); known != ends_.end()) return known->second;
        Numbers before;
        for (const Graph::Node *other : node.after) add(before, ends_of(*other, incoming));
        if (node.after.empty()) before = incoming;
        Numbers ends;
        if (node.child && !node.child->nodes.empty()) {
            place(*node.child, before);
            std::set<const Graph::Node *> followed;
            for (const auto &inner : node.child->nodes) followed.insert(inner->after.begin(), inner->after.end());
            for (const auto &inner : node.child->nodes)
                if (!followed.count(inner.get())) add(ends, ends_.at(inner.get()));
        } else if (node.child) {
            ends = before;
        } else {
            ends = {number_.at(&node)};
            before_[ends.front()] = before;
        }
        return ends_[&node] = std::move(ends);
    }

    std::map<const Graph::Node *, size_t> number_;
    std::map<const Graph::Node *, Numbers> ends_;
    std::vector<Numbers> before_;
};

}  // namespace

std::vector<std::vector<size_t>> predecessors(const Graph &graph, const std::vector<const Graph::Node *> &in_order) {
    Flat flat(in_order);
    flat.place(graph, {});
    return flat.take();
}

void launch_in_order(Runtime &runtime, GraphInstance &instance, const std::shared_ptr<Stream> &stream) {
    if (!stream->capture && instance.last_launch.stream && instance.last_launch.stream != stream) {
        Operation wait;
        wait.run = [] {};
        wait.after.push_back(instance.last_launch);
        runtime.scheduler.enqueue(stream, std::move(wait));
    }
    const SharedClock begin = runtime.scheduler.begin_graph(stream);
    const size_t count = instance.operations.size();
    std::vector<Clock> done(count);     // what each operation comes after, and itself
    std::vector<size_t> chain(count);   // 0: the stream's own lane, n: its branch n - 1
    std::vector<size_t> last_of_chain;  // number of its last operation
    Clock end = *begin;
    for (size_t i = 0; i < count; ++i) {
        Operation operation = instance.operations[i];
        if (operation.waits && operation.waits->ticket.stream) operation.after.push_back(operation.waits->ticket);
        const std::shared_ptr<Event> event = operation.records;
        if (event) {
            event->time = std::make_shared<Event::Clock::time_point>();
            operation.run = [&runtime, time = event->time] { *time = runtime.events.now(); };
        }
        done[i] = *begin;
        for (const Ticket &before : operation.after) done[i].join(before.clock);
        chain[i] = last_of_chain.size();
        for (const size_t before : instance.predecessors[i]) {
            done[i].join(done[before]);
            if (last_of_chain[chain[before]] == before) chain[i] = std::min(chain[i], chain[before]);
        }
        if (chain[i] == last_of_chain.size()) last_of_chain.push_back(i);
        last_of_chain[chain[i]] = i;
        operation.in_graph = true;
        if (!stream->capture) {
            const uint32_t lane = chain[i] ? runtime.scheduler.branch(*stream, chain[i] - 1) : stream->lane();
            operation.mark = {lane, stream->queued + 1, std::make_shared<Clock>(done[i])};
            done[i].advance(lane, operation.mark.step);
            end.join(done[i]);
        }
        Ticket ticket = runtime.scheduler.enqueue(stream, std::move(operation));
        if (event) {
            if (ticket.stream) ticket.clock = std::make_shared<Clock>(done[i]);
            event->ticket = ticket;
        }
    }
    if (stream->capture) return;
    runtime.scheduler.end_graph(stream, end);
    instance.last_launch = Scheduler::last(stream);
}

}  // namespace warpsim::rt
