#include "runtime/graph_memory.h"

#include <algorithm>
#include <map>

#include "core/text.h"
#include "runtime/runtime.h"

namespace warpsim::rt {
namespace {

struct Bytes {
    uint64_t current = 0, high = 0;
    void add(uint64_t bytes) { high = std::max(high, current += bytes); }
};

// Under the runtime's lock.
struct Registry {
    std::map<uint64_t, std::weak_ptr<GraphAllocation>> allocations;  // by address
    Bytes all, unfreed;
};

Registry &registry() {
    static Registry everything;
    return everything;
}

void set_unfreed(GraphAllocation &memory, bool unfreed) {
    if (memory.unfreed == unfreed) return;
    memory.unfreed = unfreed;
    registry().unfreed.add(unfreed ? memory.parameters.bytesize : -memory.parameters.bytesize);
}

std::string name_of(const GraphAllocation &memory) {
    return "the " + std::to_string(memory.parameters.bytesize) + " bytes at " + hex(memory.address()) +
           " that a graph allocates";
}

[[noreturn]] void refuse(const char *function, const std::string &why) {
    say(std::string(function) + ": " + why);
    throw Failure{cudaErrorInvalidValue};
}

Operation memory_operation(cudaGraphNodeType type, const std::shared_ptr<GraphAllocation> &memory) {
    Operation operation;
    operation.node_type = type;
    operation.memory = memory;
    return operation;
}

}  // namespace

GraphAllocation::GraphAllocation(Runtime &runtime, uint64_t graph, const cudaMemAllocNodeParams &p)
    : owner(graph), parameters(p) {
    const int device = p.poolProps.location.type == cudaMemLocationTypeDevice ? p.poolProps.location.id : 0;
    if (!runtime.devices->has(device)) throw Failure{cudaErrorInvalidDevice};
    const uint64_t address =
        runtime.devices->memory(static_cast<unsigned>(device)).allocate(p.bytesize, MemoryKind::device);
    if (!address) {
        say_out_of_memory(runtime, p.bytesize);
        throw Failure{cudaErrorMemoryAllocation};
    }
    runtime.memory->rest(address);
    parameters.dptr = reinterpret_cast<void *>(address);
    registry().all.add(p.bytesize);
}

GraphAllocation::~GraphAllocation() {
    // After a reset of the device the address is not this one's any more.
    if (!registry().allocations.erase(address())) return;
    registry().all.add(-parameters.bytesize);
    GlobalMemory &memory = *Runtime::get()->memory;
    if (memory.find(address())) return;
    memory.wake(address());
    memory.release(address());
}

std::shared_ptr<GraphAllocation> find_graph_allocation(uint64_t address) {
    const auto found = registry().allocations.find(address);
    return found == registry().allocations.end() ? nullptr : found->second.lock();
}

uint64_t graph_memory_bytes(bool unfreed, bool current) {
    const Bytes &bytes = unfreed ? registry().unfreed : registry().all;
    return current ? bytes.current : bytes.high;
}

void reset_graph_memory_peak(bool unfreed) {
    Bytes &bytes = unfreed ? registry().unfreed : registry().all;
    bytes.high = bytes.current;
}

void forget_graph_memory() {
    registry() = {};
}

Operation allocation_node(Runtime &runtime, const Graph &graph, cudaMemAllocNodeParams &p) {
    const auto memory = std::make_shared<GraphAllocation>(runtime, graph.number, p);
    p.dptr = memory->parameters.dptr;
    registry().allocations[memory->address()] = memory;
    Operation operation = memory_operation(cudaGraphNodeTypeMemAlloc, memory);
    operation.run = [&runtime, address = memory->address()] { runtime.memory->wake(address); };
    return operation;
}

Operation free_node(Runtime &runtime, const char *function, const Graph &graph, uint64_t address) {
    const auto memory = find_graph_allocation(address);
    if (!memory)
        refuse(function, "this pointer is none that a graph's allocation node gave: it is " +
                             runtime.memory->explain(address, 1));
    std::set<uint64_t> &by = memory->freed_by;
    if (by.count(graph.number)) refuse(function, "a node of this graph frees " + name_of(*memory) + " already");
    if (memory->owner == graph.number ? !by.empty() : by.count(memory->owner) > 0)
        refuse(function, "a node of another graph frees " + name_of(*memory) +
                             ", and it may be freed in its own graph or in others, not in both");
    by.insert(graph.number);
    return free_in_stream(runtime, memory);
}

bool has_memory_nodes(const Graph &graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const auto &node) { return node->operation.memory != nullptr; });
}

void free_outside(const char *function, GraphAllocation &memory) {
    if (memory.freed_by.count(memory.owner))
        refuse(function, name_of(memory) + " are freed by a node of the same graph, and cannot be freed outside of it");
    if (!memory.unfreed)
        refuse(function, name_of(memory) + " are not there: its graph was not launched since they were freed last");
    set_unfreed(memory, false);
}

Operation free_in_stream(Runtime &runtime, const std::shared_ptr<GraphAllocation> &memory) {
    Operation operation = memory_operation(cudaGraphNodeTypeMemFree, memory);
    operation.call = "a graph's free";
    operation.frees = true;
    operation.regions = {{.address = memory->address(), .width = memory->parameters.bytesize, .writes = true}};
    operation.run = [&runtime, address = memory->address()] {
        if (runtime.memory->rest(address)) return;
        say("the memory at " + hex(address) +
            " that a graph allocates had been freed when the stream came to its free");
        throw Failure{cudaErrorInvalidValue};
    };
    return operation;
}

void prepare_launch(Runtime &runtime, const std::vector<Operation> &operations, unsigned long long flags,
                    const std::shared_ptr<Stream> &stream) {
    const char *const name = "cudaGraphLaunch";
    std::set<const GraphAllocation *> there;  // allocated by the nodes so far
    for (const Operation &operation : operations) {
        const auto &memory = operation.memory;
        if (!memory) continue;
        if (stream->capture)
            refuse(name, "a graph that allocates or frees memory cannot be launched in a stream that is captured");
        const bool allocates = operation.node_type == cudaGraphNodeTypeMemAlloc;
        if (allocates && memory->unfreed && !(flags & cudaGraphInstantiateFlagAutoFreeOnLaunch))
            refuse(name, name_of(*memory) +
                             " have not been freed since the launch before. Free them with cudaFree or cudaFreeAsync, "
                             "by a free node, or instantiate with cudaGraphInstantiateFlagAutoFreeOnLaunch");
        if (!allocates && !memory->unfreed && !there.count(memory.get()))
            refuse(name, "a node frees " + name_of(*memory) + ", and they are not there");
        if (allocates)
            there.insert(memory.get());
        else
            there.erase(memory.get());
    }
    for (const Operation &operation : operations) {
        const auto &memory = operation.memory;
        if (!memory) continue;
        const bool allocates = operation.node_type == cudaGraphNodeTypeMemAlloc;
        if (allocates && memory->unfreed) runtime.scheduler.enqueue(stream, free_in_stream(runtime, memory));
        set_unfreed(*memory, allocates);
    }
}

}  // namespace warpsim::rt
