// Stream-ordered allocation. Memory comes from the device at once and goes back when the stream comes to it; the pools
// are names with settings.
#include <map>
#include <memory>

#include "runtime/copy.h"
#include "runtime/graph_memory.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

WARPSIM_TWIN(cudaMallocAsync, cudaMallocAsync_ptsz);
WARPSIM_TWIN(cudaFreeAsync, cudaFreeAsync_ptsz);
WARPSIM_TWIN(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz);

namespace {

struct Pool {
    uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
};

// The default pool is the first; under the runtime's lock.
std::map<cudaMemPool_t, std::unique_ptr<Pool>> &pools() {
    static std::map<cudaMemPool_t, std::unique_ptr<Pool>> all;
    return all;
}

cudaMemPool_t add_pool() {
    auto pool = std::make_unique<Pool>();
    const auto handle = reinterpret_cast<cudaMemPool_t>(pool.get());
    pools()[handle] = std::move(pool);
    return handle;
}

cudaMemPool_t default_pool() {
    static const cudaMemPool_t pool = add_pool();
    return pool;
}

cudaMemPool_t &current_pool() {
    static cudaMemPool_t pool = default_pool();
    return pool;
}

Pool &find_pool(cudaMemPool_t handle) {
    default_pool();
    const auto it = pools().find(handle);
    if (it == pools().end()) throw Failure{cudaErrorInvalidValue};
    return *it->second;
}

cudaError_t allocate(void **result, size_t bytes, cudaMemPool_t pool, cudaStream_t handle, bool per_thread) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
        if (!result) return cudaErrorInvalidValue;
        if (pool) find_pool(pool);
        *result = nullptr;
        if (bytes == 0) return cudaSuccess;
        if (stream->capture) {
            cudaMemAllocNodeParams p{};
            p.poolProps.allocType = cudaMemAllocationTypePinned;
            p.poolProps.location.type = cudaMemLocationTypeDevice;
            p.bytesize = bytes;
            runtime.scheduler.enqueue(stream, allocation_node(runtime, *stream->capture, p));
            *result = p.dptr;
            return cudaSuccess;
        }
        const uint64_t address = runtime.memory->allocate(bytes, MemoryKind::device);
        if (!address) {
            say_out_of_memory(runtime, bytes);
            return cudaErrorMemoryAllocation;
        }
        *result = reinterpret_cast<void *>(address);
        return cudaSuccess;
    });
}

cudaError_t release(void *p, cudaStream_t handle, bool per_thread) {
    return api([&](Runtime &runtime) {
        const auto stream = runtime.scheduler.resolve(handle, per_thread);
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
        operation.run = [&runtime, address] {
            if (runtime.memory->release(address)) return;
            say("cudaFreeAsync: when the stream came to it, the memory had been freed already");
            throw Failure{cudaErrorInvalidValue};
        };
        runtime.scheduler.enqueue(stream, std::move(operation));
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaMallocAsync(void **result, size_t bytes, cudaStream_t stream) {
    return allocate(result, bytes, nullptr, stream, false);
}
cudaError_t cudaMallocAsync_ptsz(void **result, size_t bytes, cudaStream_t stream) {
    return allocate(result, bytes, nullptr, stream, true);
}
cudaError_t cudaMallocFromPoolAsync(void **result, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return allocate(result, bytes, pool, stream, false);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void **result, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return allocate(result, bytes, pool, stream, true);
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
    return release(p, stream, false);
}
cudaError_t cudaFreeAsync_ptsz(void *p, cudaStream_t stream) {
    return release(p, stream, true);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return api([&](Runtime &) {
        if (!pool) return cudaErrorInvalidValue;
        if (device != 0) return cudaErrorInvalidDevice;
        *pool = default_pool();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return api([&](Runtime &) {
        if (!pool) return cudaErrorInvalidValue;
        if (device != 0) return cudaErrorInvalidDevice;
        *pool = current_pool();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return api([&](Runtime &) {
        if (device != 0) return cudaErrorInvalidDevice;
        find_pool(pool);
        current_pool() = pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    return api([&](Runtime &) {
        if (!pool || !properties) return cudaErrorInvalidValue;
        *pool = add_pool();
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return api([&](Runtime &) {
        find_pool(pool);
        if (pool == default_pool()) return cudaErrorInvalidValue;
        if (current_pool() == pool) current_pool() = default_pool();
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
                *static_cast<uint64_t *>(value) = runtime.memory->used();
                return cudaSuccess;
            default:
                return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *, size_t) {
    return api([&](Runtime &) {
        find_pool(pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool, cudaMemLocation *) {
    return api([&](Runtime &) {
        find_pool(pool);
        if (!flags) return cudaErrorInvalidValue;
        *flags = cudaMemAccessFlagsProtReadWrite;
        return cudaSuccess;
    });
}
