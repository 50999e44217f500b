// Memory: allocations, pools, virtual memory, what is known of a pointer.
#include <cstdint>

#include "cases.h"

namespace {

CASE(memory) {
    new_context();
    size_t free, total, after, bytes = 0, pitch = 0;
    OK(cuMemGetInfo(&free, &total));
    CUdeviceptr address, base = 0;
    OK(cuMemAlloc(&address, 1000));
    OK(cuMemGetInfo(&after, &total));
    CHECK(free - after == 1000);
    OK(cuMemGetAddressRange(&base, &bytes, address + 999));
    CHECK(base == address && bytes == 1000);
    EXPECT(cuMemGetAddressRange(&base, &bytes, address + 1000), CUDA_ERROR_NOT_FOUND);
    OK(cuMemFree(address));
    EXPECT(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocPitch(&address, &pitch, 100, 3, 4));
    CHECK(pitch >= 100 && pitch % 4 == 0);
    EXPECT(cuMemAllocPitch(&address, &pitch, 100, 3, 5), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(address));
    void *pinned, *mapped;
    OK(cuMemAllocHost(&pinned, 64));
    OK(cuMemHostAlloc(&mapped, 64, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostGetDevicePointer(&address, mapped, 0));
    std::memset(mapped, 1, 64);
    CHECK(download<int>(address, 1)[0] == 0x01010101);
    unsigned flags = 0;
    OK(cuMemHostGetFlags(&flags, mapped));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFreeHost(mapped));
    EXPECT(cuMemFreeHost(mapped), CUDA_ERROR_INVALID_VALUE);
    std::vector<int> own(256);
    OK(cuMemHostRegister(own.data(), own.size() * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT(cuMemHostRegister(own.data(), own.size() * 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostUnregister(own.data()));
    EXPECT(cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemAllocManaged(&address, 64, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<int *>(address) = 3;
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    OK(cuMemPrefetchAsync(address, 64, here, 0, nullptr));
    OK(cuMemAdvise(address, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    CHECK(download<int>(address, 1)[0] == 3);
    OK(cuMemFree(address));
}

CASE(pointers) {
    CUcontext context = new_context();
    CUdeviceptr address;
    OK(cuMemAlloc(&address, 256));
    unsigned type = 0, managed = 7;
    int device = 7;
    CUdeviceptr start = 0;
    size_t size = 0;
    CUcontext owner = nullptr;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 8));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *to[] = {&owner, &device, &managed, &start, &size};
    OK(cuPointerGetAttributes(5, which, to, address + 8));
    CHECK(owner == context && device == 0 && !managed && start == address && size == 256);
    int host = 0;
    const auto of_host = reinterpret_cast<CUdeviceptr>(&host);
    EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, of_host), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttributes(5, which, to, of_host));
    CHECK(!owner && device == -2 && !managed && !start && !size);
    void *pinned, *seen = nullptr;
    OK(cuMemAllocHost(&pinned, 64));
    OK(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_HOST_POINTER, reinterpret_cast<CUdeviceptr>(pinned) + 4));
    CHECK(seen == static_cast<char *>(pinned) + 4);
    EXPECT(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_HOST_POINTER, address), CUDA_ERROR_INVALID_VALUE);
}

CASE(pools) {
    new_context();
    CUmemoryPool pool, mine;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = 1 << 20, found = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &found));
    CHECK(found == threshold);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    OK(cuMemPoolCreate(&mine, &properties));
    CUstream stream;
    OK(cuStreamCreate(&stream, 0));
    CUdeviceptr first, second;
    OK(cuMemAllocAsync(&first, 400, stream));
    OK(cuMemAllocFromPoolAsync(&second, 400, mine, stream));
    OK(cuMemsetD32Async(first, 3, 100, stream));
    OK(cuMemcpyDtoDAsync(second, first, 400, stream));
    CHECK(download<int>(second, 100) == std::vector<int>(100, 3));
    OK(cuMemFreeAsync(first, stream));
    OK(cuMemFreeAsync(second, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(cuMemFreeAsync(first, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolDestroy(mine));
}

CASE(virtual_memory) {
    new_context();
    int supported = 0;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    CHECK(supported);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    size_t unit = 0, free, total, after;
    OK(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr place = 0, other = 0;
    OK(cuMemAddressReserve(&place, 4 * unit, 0, 0, 0));
    OK(cuMemAddressReserve(&other, 2 * unit, 4 * unit, 0, 0));
    CHECK(place % unit == 0 && other % (4 * unit) == 0 && place != other);
    EXPECT(cuMemAddressReserve(&other, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetInfo(&free, &total));
    CUmemGenericAllocationHandle first, second;
    OK(cuMemCreate(&first, unit, &properties, 0));
    OK(cuMemCreate(&second, 2 * unit, &properties, 0));
    OK(cuMemGetInfo(&after, &total));
    CHECK(free - after == 3 * unit);
    EXPECT(cuMemCreate(&first, unit / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(place, unit, 0, first, 0));
    EXPECT(cuMemMap(place, 2 * unit, 0, second, 0), CUDA_ERROR_INVALID_VALUE);             // there is memory already
    EXPECT(cuMemMap(place + 3 * unit, 2 * unit, 0, second, 0), CUDA_ERROR_INVALID_VALUE);  // past the end
    OK(cuMemMap(place + unit, 2 * unit, 0, second, 0));
    EXPECT(cuMemsetD8(place, 0, 1), CUDA_ERROR_INVALID_VALUE);  // no access yet
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemSetAccess(place, 3 * unit, &access, 1));
    unsigned long long flags = 0;
    OK(cuMemGetAccess(&flags, &access.location, place + unit));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    // Both are one piece for copies, fills and kernels.
    OK(cuMemsetD32(place, 7, 3 * unit / 4));
    const float half = 0.5f;
    CUdeviceptr middle = place + unit - 8, ones = upload(std::vector<float>(4, 1.0f));
    std::vector<float> halves(4, half);
    OK(cuMemcpyHtoD(middle, halves.data(), 16));
    int n = 4;
    void *parameters[] = {&middle, &ones, &middle, &n};
    OK(cuLaunchKernel(function_of(load_ptx(), "add"), 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<float>(middle, 4) == std::vector<float>(4, 1.5f));
    EXPECT(cuMemsetD8(place + 3 * unit - 1, 0, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(place), CUDA_ERROR_INVALID_VALUE);
    // What is in memory moves with it.
    EXPECT(cuMemAddressFree(place, 4 * unit), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(place, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(place + unit, 2 * unit));
    EXPECT(cuMemsetD8(place + unit, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK(download<int>(place, 1)[0] == 7);
    OK(cuMemMap(other, 2 * unit, 0, second, 0));
    OK(cuMemSetAccess(other, 2 * unit, &access, 1));
    CHECK(download<float>(other, 2) == std::vector<float>(2, 1.5f) && download<int>(other + 8, 1)[0] == 7);
    CUmemGenericAllocationHandle again;
    OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(other + unit)));
    CHECK(again == second);
    OK(cuMemRelease(again));
    OK(cuMemRelease(second));
    CHECK(download<int>(other + 8, 1)[0] == 7);  // it lives as long as it is mapped
    OK(cuMemUnmap(other, 2 * unit));
    EXPECT(cuMemRelease(second), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(first));
    OK(cuMemUnmap(place, unit));
    OK(cuMemAddressFree(other, 2 * unit));
    OK(cuMemAddressFree(place, 4 * unit));
    EXPECT(cuMemAddressFree(place, 4 * unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(ones));
    OK(cuMemGetInfo(&after, &total));
    CHECK(total - free <= total - after && free - after < unit);
}

}  // namespace
