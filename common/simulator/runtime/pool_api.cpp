// Stream-ordered allocation. Memory comes from the device at once, the program's when the stream has come to the
// allocation, and goes back when the stream comes to the free; the pools are names with settings.
#include <map>
#include <memory>

#include "runtime/copy.h"
#include "runtime/graph_memory.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

struct Pool {
    unsigned device = 0;
    uint64_t number = 0;
    uint32_t reached_by = 0;  // a bit for each device besides its own
    uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
};

// Under the runtime's lock.
std::map<cudaMemPool_t, std::unique_ptr<Pool>> &pools() {
    static std::map<cudaMemPool_t, std::unique_ptr<Pool>> all;
    return all;
}

cudaMemPool_t add_pool(unsigned device) {
    static uint64_t number = 0;
    auto pool = std::make_unique<Pool>();
    pool->device = device;
    pool->number = ++number;
    const auto handle = reinterpret_cast<cudaMemPool_t>(pool.get());
    pools()[handle] = std::move(pool);
    return handle;
}

cudaMemPool_t default_pool(unsigned device) {
    static std::map<unsigned, cudaMemPool_t> all;
    const auto [found, is_new] = all.try_emplace(device);
    if (is_new) found->second = add_pool(device);
    return found->second;
}

cudaMemPool_t &current_pool(unsigned device) {
    static std::map<unsigned, cudaMemPool_t> all;
    return all.try_emplace(device, default_pool(device)).first->second;
}

Pool &find_pool(cudaMemPool_t handle) {
    const auto it = pools().find(handle);
    if (it == pools().end()) throw Failure{cudaErrorInvalidValue};
    return *it->second;
}

}  // namespace

cudaError_t cudaMallocAsync(void **result, size_t bytes, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(result, bytes, nullptr, stream);
}

cudaError_t cudaMallocFromPoolAsync(void **result, size_t bytes, cudaMemPool_t pool, cudaStream_t handle) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!result) return cudaErrorInvalidValue;
        const Pool &from = find_pool(pool ? pool : current_pool(stream->device));
        *result = nullptr;
        if (bytes == 0) return cudaSuccess;
        if (stream->capture) {
            cudaMemAllocNodeParams p{};
            p.poolProps.allocType = cudaMemAllocationTypePinned;
            p.poolProps.location.type = cudaMemLocationTypeDevice;
            p.poolProps.location.id = static_cast<int>(stream->device);
            p.bytesize = bytes;
            runtime.scheduler.enqueue(stream, allocation_node(runtime, *stream->capture, p));
            *result = p.dptr;
            return cudaSuccess;
        }
        const uint64_t address = runtime.devices->memory(from.device).allocate(bytes, MemoryKind::device);
        if (!address) {
            say_out_of_memory(runtime, bytes);
            return cudaErrorMemoryAllocation;
        }
        runtime.memory->set_pool(address, from.number, from.reached_by);
        if (runtime.options.hazards) {  // what other streams do there must be ordered behind it
            Operation operation;
            operation.call = "cudaMallocAsync";
            operation.allocates = true;
            operation.regions = {{.address = address, .width = bytes, .writes = true}};
            operation.run = [] {};
            runtime.scheduler.enqueue(stream, std::move(operation));
        }
        *result = reinterpret_cast<void *>(address);
        return cudaSuccess;
    });
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t handle) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle);
        if (!p) return cudaSuccess;
        const uint64_t address = address_of(p);
        if (stream->capture) {
            runtime.scheduler.enqueue(stream, free_node(runtime, "cudaFreeAsync", *stream->capture, address));
            return cudaSuccess;
        }
        if (const auto memory = find_graph_allocation(address)) {
            free_outside("cudaFreeAsync", *memory);
            runtime.scheduler.enqueue(stream, free_in_stream(runtime, memory));
            return cudaSuccess;
        }
        const AllocationView *view = runtime.memory->find(address);
        if (!view || view->base != address || view->kind != MemoryKind::device) {
            say("cudaFreeAsync: this pointer is " + runtime.memory->explain(address, 1));
            return cudaErrorInvalidValue;
        }
        Operation operation;
        operation.node_type = cudaGraphNodeTypeMemFree;
        operation.call = "cudaFreeAsync";
        operation.frees = true;
        operation.regions = {{.address = address, .width = view->bytes, .writes = true}};
        operation.run = [&runtime, address] {
            // What is queued and not ordered with it may still use the memory; that is said when it does.
            if (runtime.options.hazards && runtime.scheduler.meets_queued()) {
                if (runtime.order.release_later(runtime.scheduler.running().operation->mark, address)) return;
            } else if (runtime.memory->release(address)) {
                return;
            }
            say("cudaFreeAsync: when the stream came to it, the memory had been freed already");
            throw Failure{cudaErrorInvalidValue};
        };
        runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return api([&](Runtime &runtime) {
        if (!pool) return cudaErrorInvalidValue;
        if (!runtime.devices->has(device)) return cudaErrorInvalidDevice;
        *pool = default_pool(static_cast<unsigned>(device));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return api([&](Runtime &runtime) {
        if (!pool) return cudaErrorInvalidValue;
        if (!runtime.devices->has(device)) return cudaErrorInvalidDevice;
        *pool = current_pool(static_cast<unsigned>(device));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return api([&](Runtime &runtime) {
        if (!runtime.devices->has(device)) return cudaErrorInvalidDevice;
        if (find_pool(pool).device != static_cast<unsigned>(device)) return cudaErrorInvalidValue;
        current_pool(static_cast<unsigned>(device)) = pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    return api([&](Runtime &runtime) {
        if (!pool || !properties) return cudaErrorInvalidValue;
        const bool of_device = properties->location.type == cudaMemLocationTypeDevice;
        if (of_device && !runtime.devices->has(properties->location.id)) return cudaErrorInvalidDevice;
        *pool = add_pool(of_device ? static_cast<unsigned>(properties->location.id) : 0);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return api([&](Runtime &) {
        const unsigned device = find_pool(pool).device;
        if (pool == default_pool(device)) return cudaErrorInvalidValue;
        if (current_pool(device) == pool) current_pool(device) = default_pool(device);
        pools().erase(pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
    return api([&](Runtime &) {
        find_pool(pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void *value) {
    return api([&](Runtime &) {
        Pool &pool = find_pool(handle);
        if (!value) return cudaErrorInvalidValue;
        switch (attribute) {
            case cudaMemPoolReuseFollowEventDependencies:
            case cudaMemPoolReuseAllowOpportunistic:
            case cudaMemPoolReuseAllowInternalDependencies:
                pool.reuse[attribute - cudaMemPoolReuseFollowEventDependencies] = *static_cast<int *>(value);
                return cudaSuccess;
            case cudaMemPoolAttrReleaseThreshold:
                pool.release_threshold = *static_cast<uint64_t *>(value);
                return cudaSuccess;
            case cudaMemPoolAttrReservedMemHigh:
            case cudaMemPoolAttrUsedMemHigh:
                return cudaSuccess;  // a reset of the mark
            default:
                return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void *value) {
    return api([&](Runtime &runtime) {
        const Pool &pool = find_pool(handle);
        if (!value) return cudaErrorInvalidValue;
        switch (attribute) {
            case cudaMemPoolReuseFollowEventDependencies:
            case cudaMemPoolReuseAllowOpportunistic:
            case cudaMemPoolReuseAllowInternalDependencies:
                *static_cast<int *>(value) = pool.reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
                return cudaSuccess;
            case cudaMemPoolAttrReleaseThreshold:
                *static_cast<uint64_t *>(value) = pool.release_threshold;
                return cudaSuccess;
            case cudaMemPoolAttrReservedMemCurrent:
            case cudaMemPoolAttrReservedMemHigh:
            case cudaMemPoolAttrUsedMemCurrent:
            case cudaMemPoolAttrUsedMemHigh:
                *static_cast<uint64_t *>(value) = runtime.devices->memory(pool.device).used();
                return cudaSuccess;
            default:
                return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc *accesses, size_t count) {
    return api([&](Runtime &runtime) {
        Pool &pool = find_pool(handle);
        if (count && !accesses) return cudaErrorInvalidValue;
        uint32_t reached_by = pool.reached_by;
        for (size_t i = 0; i < count; ++i) {
            const cudaMemLocation &location = accesses[i].location;
            if (location.type != cudaMemLocationTypeDevice || !runtime.devices->has(location.id))
                return cudaErrorInvalidDevice;
            const uint32_t bit = 1u << location.id;
            reached_by = accesses[i].flags == cudaMemAccessFlagsProtReadWrite ? reached_by | bit : reached_by & ~bit;
        }
        pool.reached_by = reached_by;
        runtime.memory->change_pool(pool.number, reached_by);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t handle, cudaMemLocation *location) {
    return api([&](Runtime &runtime) {
        const Pool &pool = find_pool(handle);
        if (!flags || !location) return cudaErrorInvalidValue;
        if (location->type != cudaMemLocationTypeDevice || !runtime.devices->has(location->id))
            return cudaErrorInvalidDevice;
        const bool reaches = unsigned(location->id) == pool.device || pool.reached_by >> location->id & 1;
        *flags = reaches ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
        return cudaSuccess;
    });
}
