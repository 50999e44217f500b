// Stream-ordered allocation and its pools: cuMemAllocAsync, cuMemPool*.
#include <vector>

#include "driver/call.h"

using namespace warpsim;
using namespace warpsim::driver;

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
