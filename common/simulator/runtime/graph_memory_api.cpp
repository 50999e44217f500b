// What a program asks of the memory that graphs allocate: the parameters of its nodes, and how much there is.
#include "runtime/graph_memory.h"
#include "runtime/graphs.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

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
