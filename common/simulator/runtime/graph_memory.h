// Memory that graphs allocate. It has one address in all launches of its graph. Between an allocation and a free the
// memory is there; before and after that it rests (GlobalMemory::rest), so that a use is an illegal address.
#pragma once

#include <memory>
#include <set>

#include "runtime/scheduler.h"

namespace warpsim::rt {

class Runtime;

// What one allocation node allocates. Held by the operations of its nodes; with the last of them the address is given
// back, unless the memory is there: then it is as any other, and cudaFree frees it.
struct GraphAllocation {
    GraphAllocation(Runtime &, uint64_t owner, const cudaMemAllocNodeParams &);
    ~GraphAllocation();
    GraphAllocation(const GraphAllocation &) = delete;

    const uint64_t owner;               // its graph, by number
    cudaMemAllocNodeParams parameters;  // with the address
    std::set<uint64_t> freed_by;        // graphs, by number, that have a free node for it
    bool unfreed = false;               // in the order of the host's calls: launched, and no free has been asked for

    uint64_t address() const { return reinterpret_cast<uint64_t>(parameters.dptr); }
};

// The allocation of a graph that begins at this address; null: none does.
std::shared_ptr<GraphAllocation> find_graph_allocation(uint64_t address);
// Bytes of those that are there (`unfreed`), or of all. With `now` false the most there ever were.
uint64_t graph_memory_bytes(bool unfreed, bool current);
void reset_graph_memory_peak(bool unfreed);
// The device is as new: what graphs allocated is forgotten with the rest of its memory.
void forget_graph_memory();

// The operations of nodes. A free node is checked as cudaGraphAddMemFreeNode has it. Both throw Failure.
Operation allocation_node(Runtime &, const Graph &, cudaMemAllocNodeParams &);
Operation free_node(Runtime &, const char *function, const Graph &, uint64_t address);
bool has_memory_nodes(const Graph &);

// For cudaFree and cudaFreeAsync: the memory may be freed outside of graphs, and counts as freed from now on. Throws
// Failure{cudaErrorInvalidValue} where it may not.
void free_outside(const char *function, GraphAllocation &);
// The operation that frees it in a stream.
Operation free_in_stream(Runtime &, const std::shared_ptr<GraphAllocation> &);

// For a launch: what the instance allocates must have been freed, or it is freed first in the stream with
// cudaGraphInstantiateFlagAutoFreeOnLaunch; what it frees must be there. Throws Failure{cudaErrorInvalidValue}.
void prepare_launch(Runtime &, const std::vector<Operation> &, unsigned long long flags,
                    const std::shared_ptr<Stream> &);

}  // namespace warpsim::rt
