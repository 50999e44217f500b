// Initialization, devices and contexts.
#include <thread>

#include "cases.h"

namespace {

CASE(before_initialization) {
    int count;
    CUcontext context;
    CUdeviceptr address;
    EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuMemAlloc(&address, 4), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    int version = 0;
    OK(cuDriverGetVersion(&version));
    CHECK(version >= 13000);
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count >= 1);
}

CASE(devices) {
    OK(cuInit(0));
    CUdevice device = 7;
    int count = 0;
    OK(cuDeviceGetCount(&count));
    EXPECT(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGet(&device, 0));
    char name[64] = "", cut[4] = "";
    OK(cuDeviceGetName(name, sizeof name, device));
    OK(cuDeviceGetName(cut, sizeof cut, device));
    CHECK(std::strlen(name) > 3 && !std::strncmp(name, cut, 3) && cut[3] == '\0');
    int major = 0, minor = -1, value = 0;
    OK(cuDeviceComputeCapability(&major, &minor, device));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CHECK(value == major);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    CHECK(value == 32);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, device));
    CHECK(value == (major >= 9));
    EXPECT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), device), CUDA_ERROR_INVALID_VALUE);
    size_t bytes = 0;
    OK(cuDeviceTotalMem(&bytes, device));
    CHECK(bytes > (1u << 30));
    CUuuid uuid{}, none{};
    OK(cuDeviceGetUuid(&uuid, device));
    CHECK(std::memcmp(&uuid, &none, sizeof uuid));
    char bus[32];
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, device));
    CUdevice same = 3;
    OK(cuDeviceGetByPCIBusId(&same, bus));
    CHECK(same == device);
    OK(cuDeviceCanAccessPeer(&value, device, device));
    CHECK(value == 0);
}

CASE(without_context) {
    OK(cuInit(0));
    CUdeviceptr address;
    CUmodule module;
    CUstream stream;
    CUcontext context = reinterpret_cast<CUcontext>(1);
    OK(cuCtxGetCurrent(&context));
    CHECK(!context);
    EXPECT(cuMemAlloc(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuModuleLoadData(&module, content("kernels.ptx").c_str()), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
    new_context();
    OK(cuMemAlloc(&address, 4));
    // Another thread has none of its own.
    CUresult there = CUDA_SUCCESS;
    std::thread([&] { there = cuMemAlloc(&address, 4); }).join();
    CHECK(there == CUDA_ERROR_INVALID_CONTEXT);
}

CASE(contexts) {
    CUcontext first = new_context(CU_CTX_SCHED_SPIN), second = new_context(), current = nullptr;
    CHECK(first != second);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == second);
    OK(cuCtxPopCurrent(&current));
    CHECK(current == second);
    unsigned flags = 0, version = 0;
    OK(cuCtxGetFlags(&flags));
    CHECK(flags == CU_CTX_SCHED_SPIN);
    OK(cuCtxGetApiVersion(first, &version));
    CHECK(version > 0);
    unsigned long long id = 0, other = 0;
    OK(cuCtxGetId(first, &id));
    OK(cuCtxGetId(second, &other));
    CHECK(id != other);
    OK(cuCtxPushCurrent(second));
    CUdeviceptr of_second, of_first;
    OK(cuMemAlloc(&of_second, 64));
    CUcontext owner = nullptr;
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, of_second));
    CHECK(owner == second);
    OK(cuCtxPopCurrent(nullptr));
    OK(cuMemAlloc(&of_first, 64));
    size_t free_before, free_after, total;
    OK(cuMemGetInfo(&free_before, &total));
    // What was made in it goes with it; what is the other's stays.
    OK(cuCtxDestroy(second));
    OK(cuMemGetInfo(&free_after, &total));
    CHECK(free_after - free_before == 64);
    OK(cuMemFree(of_first));
    EXPECT(cuCtxSetCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDestroy(second), CUDA_ERROR_INVALID_CONTEXT);
    size_t limit = 0;
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    CHECK(limit == 4096);
    EXPECT(cuCtxGetLimit(&limit, static_cast<CUlimit>(77)), CUDA_ERROR_UNSUPPORTED_LIMIT);
    OK(cuCtxDestroy(first));
    OK(cuCtxGetCurrent(&current));
    CHECK(!current);
    EXPECT(cuCtxCreate(&first, nullptr, 0, 99), CUDA_ERROR_INVALID_DEVICE);
}

CASE(destroyed_elsewhere) {
    CUcontext context = new_context();
    std::thread([&] {
        OK(cuCtxSetCurrent(context));
        OK(cuCtxDestroy(context));
    }).join();
    CUdeviceptr address;
    EXPECT(cuMemAlloc(&address, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

CASE(primary_context) {
    OK(cuInit(0));
    unsigned flags = 1;
    int active = 1;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active && !flags);
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    CUcontext context, again, current;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(context == again);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active && flags == CU_CTX_SCHED_BLOCKING_SYNC);
    OK(cuCtxGetCurrent(&current));
    CHECK(!current);  // retaining makes nothing current
    OK(cuCtxSetCurrent(context));
    check_add(function_of(load_ptx(), "add"));
    EXPECT(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease(0));
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active);
}

CASE_OF_TWO_DEVICES(two_devices) {
    OK(cuInit(0));
    int count = 0;
    OK(cuDeviceGetCount(&count));
    CHECK(count == 2);
    CUcontext contexts[2], current = nullptr;
    CUdevice device = -1;
    CUmodule modules[2];
    CUdeviceptr values[2];
    const std::string ptx = content("kernels.ptx");
    for (int i = 0; i < 2; ++i) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuCtxGetDevice(&device));
        CHECK(device == i);
        OK(cuModuleLoadData(&modules[i], ptx.c_str()));
        check_add(function_of(modules[i], "add"));
        values[i] = upload(std::vector<int>(100, i + 1));
        int ordinal = -1;
        OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, values[i]));
        CHECK(ordinal == i);
        CUdeviceptr counter;
        OK(cuModuleGetGlobal(&counter, nullptr, modules[i], "counter"));
        OK(cuMemsetD32(counter, 10 * (i + 1), 1));
        CUmodule same = nullptr;
        OK(cuFuncGetModule(&same, function_of(modules[i], "add")));
        CHECK(same == modules[i]);
    }
    CHECK(contexts[0] != contexts[1]);
    // Each module has its variables on its own device.
    for (int i = 0; i < 2; ++i) {
        OK(cuCtxPushCurrent(contexts[i]));
        CUdeviceptr out = upload(std::vector<float>(4));
        void *parameters[] = {&out};
        OK(cuLaunchKernel(function_of(modules[i], "read_globals"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        CHECK(download<float>(out, 1)[0] == 10.0f * (i + 1));
        OK(cuCtxPopCurrent(&current));
        CHECK(current == contexts[i]);
    }
    OK(cuCtxGetCurrent(&current));
    CHECK(current == contexts[1]);
    int can = 0;
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    OK(cuMemcpyPeer(values[1], contexts[1], values[0], contexts[0], 400));
    CHECK(download<int>(values[1], 100) == std::vector<int>(100, 1));
    OK(cuCtxEnablePeerAccess(contexts[0], 0));
    EXPECT(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    // Memory of one device that the other may access, too.
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    size_t unit = 0;
    OK(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr place;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&place, unit, 0, 0, 0));
    OK(cuMemCreate(&memory, unit, &properties, 0));
    OK(cuMemMap(place, unit, 0, memory, 0));
    const CUmemAccessDesc access[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                      {{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    OK(cuMemSetAccess(place, unit, access, 2));
    int n = 4;
    CUdeviceptr ones = upload(std::vector<float>(4, 1.0f));
    OK(cuMemsetD32(place, 0, 4));
    void *parameters[] = {&place, &ones, &place, &n};
    OK(cuLaunchKernel(function_of(modules[1], "add"), 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<float>(place, 4) == std::vector<float>(4, 1.0f));
    OK(cuDevicePrimaryCtxRelease(1));
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuCtxSynchronize());
}

}  // namespace
