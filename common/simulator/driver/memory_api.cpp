// Allocation, and the host's memory that devices reach; stream-ordered allocation and its pools: cuMemAllocAsync,
// cuMemPool*.
#include <vector>

#include "driver/call.h"
#include "driver/contexts.h"
#include "driver/virtual_memory.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

const void *pointer(CUdeviceptr address) {
    return reinterpret_cast<const void *>(address);
}

template <class Pointer, class F>
CUresult allocate(Pointer *result, Resource kind, F allocate, const char *function) {
    return call(
        [&] {
            want(result);
            void *p = nullptr;
            check(allocate(&p));
            *result = (Pointer)p;
            if (p) own(kind, p);
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

template <class F>
CUresult release(const void *p, F release, const char *function) {
    return call(
        [&] {
            want(p);
            check(release(const_cast<void *>(p)));
            disown(p);
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

cudaMemLocation same(const CUmemLocation &location) {
    return {static_cast<cudaMemLocationType>(location.type), location.id};
}

}  // namespace

CUresult cuMemAlloc(CUdeviceptr *result, size_t bytes) {
    const auto one = [&](void **p) { return bytes ? cudaMalloc(p, bytes) : cudaErrorInvalidValue; };
    return allocate(result, Resource::memory, one, __func__);
}

CUresult cuMemAllocPitch(CUdeviceptr *result, size_t *pitch, size_t width, size_t height, unsigned element) {
    const auto one = [&](void **p) {
        want(element == 4 || element == 8 || element == 16);
        want(pitch && width && height);
        return cudaMallocPitch(p, pitch, width, height);
    };
    return allocate(result, Resource::memory, one, __func__);
}

CUresult cuMemAllocManaged(CUdeviceptr *result, size_t bytes, unsigned flags) {
    static_assert(unsigned{CU_MEM_ATTACH_GLOBAL} == cudaMemAttachGlobal);
    return allocate(result, Resource::memory, [&](void **p) { return cudaMallocManaged(p, bytes, flags); }, __func__);
}

CUresult cuMemAllocHost(void **result, size_t bytes) {
    const auto one = [&](void **p) { return bytes ? cudaMallocHost(p, bytes) : cudaErrorInvalidValue; };
    return allocate(result, Resource::host_memory, one, __func__);
}

CUresult cuMemHostAlloc(void **result, size_t bytes, unsigned flags) {
    static_assert(CU_MEMHOSTALLOC_WRITECOMBINED == cudaHostAllocWriteCombined);
    const auto one = [&](void **p) { return bytes ? cudaHostAlloc(p, bytes, flags) : cudaErrorInvalidValue; };
    return allocate(result, Resource::host_memory, one, __func__);
}

CUresult cuMemFree(CUdeviceptr address) {
    const auto free = [](void *p) {
        check(rt::api([&](rt::Runtime &) {
            return is_mapped(reinterpret_cast<CUdeviceptr>(p)) ? cudaErrorInvalidValue : cudaSuccess;
        }));
        return cudaFree(p);
    };
    return release(pointer(address), free, __func__);
}

CUresult cuMemFreeHost(void *p) {
    return release(p, cudaFreeHost, __func__);
}

CUresult cuMemHostRegister(void *p, size_t bytes, unsigned flags) {
    return call([&] { return cudaHostRegister(p, bytes, flags); });
}

CUresult cuMemHostUnregister(void *p) {
    return call([&] { return cudaHostUnregister(p); });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *p, unsigned flags) {
    return call([&] { return cudaHostGetDevicePointer(reinterpret_cast<void **>(address), p, flags); });
}

CUresult cuMemHostGetFlags(unsigned *flags, void *p) {
    return call([&] { return cudaHostGetFlags(flags, p); });
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
    return call([&] { return cudaMemGetInfo(free, total); });
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    return call_runtime([&](rt::Runtime &runtime) {
        const AllocationView *view = runtime.memory->find(address);
        want(view, CUDA_ERROR_NOT_FOUND);
        if (base) *base = view->base;
        if (bytes) *bytes = view->bytes;
        return cudaSuccess;
    });
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                            CUstream stream) {
    return call([&] { return cudaMemPrefetchAsync(pointer(address), bytes, same(location), flags, stream); });
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
    return call(
        [&] { return cudaMemAdvise(pointer(address), bytes, static_cast<cudaMemoryAdvise>(advice), same(location)); });
}

CUresult cuMemAllocAsync(CUdeviceptr *result, size_t bytes, CUstream stream) {
    return call([&] { return cudaMallocAsync(reinterpret_cast<void **>(result), bytes, stream); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *result, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return call([&] { return cudaMallocFromPoolAsync(reinterpret_cast<void **>(result), bytes, pool, stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return call([&] { return cudaFreeAsync(reinterpret_cast<void *>(address), stream); });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return call([&] { return cudaDeviceGetDefaultMemPool(pool, device); }, Needs::driver);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    return call([&] { return cudaDeviceGetMemPool(pool, device); }, Needs::driver);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return call([&] { return cudaDeviceSetMemPool(device, pool); }, Needs::driver);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *p) {
    return call(
        [&] {
            want(p);
            cudaMemPoolProps same{};
            same.allocType = static_cast<cudaMemAllocationType>(p->allocType);
            same.handleTypes = static_cast<cudaMemAllocationHandleType>(p->handleTypes);
            same.location = {static_cast<cudaMemLocationType>(p->location.type), p->location.id};
            same.maxSize = p->maxSize;
            return cudaMemPoolCreate(pool, &same);
        },
        Needs::driver);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    return call([&] { return cudaMemPoolDestroy(pool); }, Needs::driver);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    return call([&] { return cudaMemPoolTrimTo(pool, bytes); }, Needs::driver);
}

// The runtime has the same numbers.
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    return call([&] { return cudaMemPoolSetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); },
                Needs::driver);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    return call([&] { return cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); },
                Needs::driver);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *descriptions, size_t count) {
    return call(
        [&] {
            want(!count || descriptions);
            std::vector<cudaMemAccessDesc> same(count);
            for (size_t i = 0; i < count; ++i) {
                const CUmemAccessDesc &d = descriptions[i];
                same[i].location = {static_cast<cudaMemLocationType>(d.location.type), d.location.id};
                same[i].flags = static_cast<cudaMemAccessFlags>(d.flags);
            }
            return cudaMemPoolSetAccess(pool, same.data(), count);
        },
        Needs::driver);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location) {
    return call(
        [&] {
            want(flags && location);
            cudaMemLocation same = {static_cast<cudaMemLocationType>(location->type), location->id};
            cudaMemAccessFlags found{};
            check(cudaMemPoolGetAccess(&found, pool, &same));
            *flags = static_cast<CUmemAccess_flags>(found);
            return CUDA_SUCCESS;
        },
        Needs::driver);
}
