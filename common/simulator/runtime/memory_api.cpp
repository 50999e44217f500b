// Allocation, and questions about pointers.
#include <algorithm>

#include "core/round_up.h"
#include "runtime/capture.h"
#include "runtime/copy.h"
#include "runtime/graph_memory.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

constexpr size_t kPitchAlignment = 512;

template <class T>
T *pointer(uint64_t address) {
    return reinterpret_cast<T *>(address);
}

cudaError_t allocate(const char *name, void **result, size_t bytes, MemoryKind kind) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        *result = nullptr;
        if (bytes == 0) return cudaSuccess;
        refuse_in_host_function();
        if (kind == MemoryKind::device) refuse_unsafe(runtime, name);
        const uint64_t address = runtime.current_memory().allocate(bytes, kind);
        if (!address) {
            say_out_of_memory(runtime, bytes);
            return cudaErrorMemoryAllocation;
        }
        *result = pointer<void>(address);
        return cudaSuccess;
    });
}

// Frees what one of these kinds holds. Waits for the device first: queued work may still use it.
template <class Allowed>
cudaError_t release(const char *name, void *p, cudaError_t otherwise, Allowed allowed) {
    if (!p) return api([](Runtime &) { return cudaSuccess; });
    return api_waiting([&](Runtime &runtime) {
        runtime.reports.host.call(name, HostLog::kNoStream);
        const AllocationView *view = runtime.memory->find(address_of(p));
        if (view && view->kind == MemoryKind::device) refuse_unsafe(runtime, name);
        // Memory of the host may be in use by any device.
        if (view && view->kind == MemoryKind::device) {
            runtime.scheduler.wait_device(view->device);
        } else {
            runtime.scheduler.wait_all();
        }
        view = runtime.memory->find(address_of(p));
        if (!view || view->base != address_of(p) || !allowed(*view)) {
            say(std::string(name) + ": this pointer is " +
                (view && view->base == address_of(p) ? "to memory of another kind"
                                                     : runtime.memory->explain(address_of(p), 1)));
            return otherwise;
        }
        if (const auto memory = find_graph_allocation(address_of(p))) {
            free_outside(name, *memory);
            runtime.memory->rest(address_of(p));
            return cudaSuccess;
        }
        runtime.memory->release(address_of(p));
        return cudaSuccess;
    });
}

// The allocation that holds all of [p, p + bytes); throws Failure{cudaErrorInvalidValue}.
const AllocationView &holder(Runtime &runtime, const void *p, size_t bytes) {
    const AllocationView *view = runtime.memory->find(address_of(p));
    if (!view || !view->contains(address_of(p), bytes)) throw Failure{cudaErrorInvalidValue};
    return *view;
}

}  // namespace

cudaError_t cudaMalloc(void **result, size_t bytes) {
    return allocate("cudaMalloc", result, bytes, MemoryKind::device);
}

cudaError_t cudaMallocHost(void **result, size_t bytes) {
    return allocate("cudaMallocHost", result, bytes, MemoryKind::pinned);
}

cudaError_t cudaHostAlloc(void **result, size_t bytes, unsigned flags) {
    constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (flags & ~kKnown) return record(cudaErrorInvalidValue);
    return allocate("cudaHostAlloc", result, bytes, MemoryKind::pinned);
}

cudaError_t cudaMallocManaged(void **result, size_t bytes, unsigned flags) {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return record(cudaErrorInvalidValue);
    if (bytes == 0) return record(cudaErrorInvalidValue);
    return allocate("cudaMallocManaged", result, bytes, MemoryKind::managed);
}

cudaError_t cudaMallocPitch(void **result, size_t *pitch, size_t width, size_t height) {
    if (!pitch) return record(cudaErrorInvalidValue);
    *pitch = round_up(width, kPitchAlignment);
    size_t bytes;
    if (__builtin_mul_overflow(*pitch, height, &bytes)) return record(cudaErrorMemoryAllocation);
    return allocate("cudaMallocPitch", result, bytes, MemoryKind::device);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *result, cudaExtent extent) {
    if (!result) return record(cudaErrorInvalidValue);
    size_t pitch = 0, rows;
    void *p = nullptr;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return record(cudaErrorMemoryAllocation);
    const cudaError_t code = cudaMallocPitch(&p, &pitch, extent.width, rows);
    if (code == cudaSuccess) *result = {p, pitch, extent.width, extent.height};
    return code;
}

cudaError_t cudaFree(void *p) {
    return release("cudaFree", p, cudaErrorInvalidValue, [](const AllocationView &view) {
        return view.kind == MemoryKind::device || view.kind == MemoryKind::managed;
    });
}

cudaError_t cudaFreeHost(void *p) {
    return release("cudaFreeHost", p, cudaErrorInvalidValue,
                   [](const AllocationView &view) { return view.kind == MemoryKind::pinned && !view.adopted; });
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags) {
    constexpr unsigned kKnown =
        cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    return api([&](Runtime &runtime) {
        if (!p || !bytes || flags & ~kKnown) return cudaErrorInvalidValue;
        if (runtime.memory->is_device_address(address_of(p))) return cudaErrorInvalidValue;
        return runtime.memory->adopt(p, bytes, MemoryKind::pinned) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
    });
}

cudaError_t cudaHostUnregister(void *p) {
    if (!p) return record(cudaErrorInvalidValue);
    return release("cudaHostUnregister", p, cudaErrorHostMemoryNotRegistered,
                   [](const AllocationView &view) { return view.adopted; });
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    return api([&](Runtime &runtime) {
        if (!device || flags) return cudaErrorInvalidValue;
        const AllocationView &view = holder(runtime, host, 1);
        if (view.kind != MemoryKind::pinned && view.kind != MemoryKind::managed) return cudaErrorInvalidValue;
        *device = host;  // one address for both, as with unified addressing
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    return api([&](Runtime &runtime) {
        if (!flags || holder(runtime, host, 1).kind != MemoryKind::pinned) return cudaErrorInvalidValue;
        *flags = cudaHostAllocMapped | cudaHostAllocPortable;
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    return api([&](Runtime &runtime) {
        if (!free || !total) return cudaErrorInvalidValue;
        *total = runtime.current_memory().limit();
        *free = *total - runtime.current_memory().used();
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p) {
    return api([&](Runtime &runtime) {
        if (!attributes) return cudaErrorInvalidValue;
        *attributes = {};
        const AllocationView *view = runtime.memory->find(address_of(p));
        if (!view) view = runtime.memory->find_resting(address_of(p));
        if (!view) {
            if (runtime.memory->is_device_address(address_of(p))) return cudaErrorInvalidValue;
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->device = -2;  // cudaInvalidDeviceId
            attributes->hostPointer = const_cast<void *>(p);
            return cudaSuccess;
        }
        attributes->device = view->device;
        const bool on_host = view->kind == MemoryKind::pinned || view->kind == MemoryKind::managed;
        attributes->type = view->kind == MemoryKind::pinned    ? cudaMemoryTypeHost
                           : view->kind == MemoryKind::managed ? cudaMemoryTypeManaged
                                                               : cudaMemoryTypeDevice;
        attributes->devicePointer = const_cast<void *>(p);
        attributes->hostPointer = on_host ? const_cast<void *>(p) : nullptr;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPrefetchAsync(const void *p, size_t bytes, cudaMemLocation, unsigned, cudaStream_t stream) {
    return api([&](Runtime &runtime) {
        runtime.scheduler.resolve(stream);
        // Managed memory is where both sides reach it: there is nothing to move.
        return holder(runtime, p, bytes).kind == MemoryKind::managed ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaMemAdvise(const void *p, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
    return api([&](Runtime &runtime) {
        return holder(runtime, p, bytes).kind == MemoryKind::managed ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaGetSymbolAddress(void **result, const void *symbol) {
    return api([&](Runtime &runtime) {
        if (!result) return cudaErrorInvalidValue;
        *result = pointer<void>(runtime.modules.address_of(*runtime.modules.find_variable(symbol)).first);
        return cudaSuccess;
    });
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    return api([&](Runtime &runtime) {
        if (!bytes) return cudaErrorInvalidValue;
        *bytes = runtime.modules.address_of(*runtime.modules.find_variable(symbol)).second;
        return cudaSuccess;
    });
}
