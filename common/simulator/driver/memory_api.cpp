// Allocation, and the host's memory that devices reach.
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
