// The driver API without the runtime, a case at a time:
//
//     driver_api CASE FOLDER
#include <cstdint>
#include <thread>

#include "driver.h"

namespace {

void before_initialization() {
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

void without_context() {
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

void contexts() {
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

void destroyed_elsewhere() {
    CUcontext context = new_context();
    std::thread([&] {
        OK(cuCtxSetCurrent(context));
        OK(cuCtxDestroy(context));
    }).join();
    CUdeviceptr address;
    EXPECT(cuMemAlloc(&address, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

void primary_context() {
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

void devices() {
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

void add_from_ptx() {
    new_context();
    CUmodule module = load_ptx();
    for (int n : {1, 127, 128, 129, 5000}) check_add(function_of(module, "add"), n);
    OK(cuModuleUnload(module));
    EXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

void add_from_fat_binary() {
    new_context();
    const std::string code = content("kernels.fatbin");
    CUmodule module;
    OK(cuModuleLoadFatBinary(&module, code.data()));
    check_add(function_of(module, "add"));
    OK(cuModuleUnload(module));
    OK(cuModuleLoadData(&module, code.data()));
    check_add(function_of(module, "add"));
}

void add_from_files() {
    new_context();
    CUmodule module;
    for (const char *file : {"kernels.ptx", "kernels.fatbin"}) {
        OK(cuModuleLoad(&module, (folder() + "/" + file).c_str()));
        check_add(function_of(module, "add"));
        OK(cuModuleUnload(module));
    }
    EXPECT(cuModuleLoad(&module, (folder() + "/none.ptx").c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

void machine_code_alone() {
    new_context();
    CUmodule module;
    const std::string code = content("kernels.cubin");
    EXPECT(cuModuleLoadData(&module, code.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

void bad_ptx() {
    new_context();
    CUmodule module;
    const char *const bad =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  mov.u32 %r1 7;\n}\n";
    char log[256] = "", info[64] = "?";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log), info, reinterpret_cast<void *>(sizeof info),
                      reinterpret_cast<void *>(32)};
    EXPECT(cuModuleLoadDataEx(&module, bad, 5, options, values), CUDA_ERROR_INVALID_PTX);
    CHECK(std::strstr(log, "line 5") && reinterpret_cast<uintptr_t>(values[1]) == std::strlen(log) + 1);
    CHECK(info[0] == '\0');
    // A log that is too short is cut.
    char small[8];
    std::memset(small, '?', sizeof small);
    values[0] = small;
    values[1] = reinterpret_cast<void *>(7);
    EXPECT(cuModuleLoadDataEx(&module, bad, 2, options, values), CUDA_ERROR_INVALID_PTX);
    CHECK(std::strlen(small) == 6 && small[7] == '?');
    // And one of good code is empty.
    values[0] = log;
    values[1] = reinterpret_cast<void *>(sizeof log);
    OK(cuModuleLoadDataEx(&module, content("kernels.ptx").c_str(), 2, options, values));
    CHECK(log[0] == '\0' && !values[1]);
    options[0] = static_cast<CUjit_option>(1000);
    EXPECT(cuModuleLoadDataEx(&module, bad, 1, options, values), CUDA_ERROR_INVALID_VALUE);
}

void wrong_names_and_handles() {
    CUcontext context = new_context();
    CUmodule module = load_ptx();
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    EXPECT(cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetGlobal(&address, &bytes, module, "none"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetFunction(&function, reinterpret_cast<CUmodule>(context), "add"), CUDA_ERROR_INVALID_HANDLE);
    int value;
    EXPECT(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, reinterpret_cast<CUfunction>(module)),
           CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuEventQuery(reinterpret_cast<CUevent>(context)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSynchronize(reinterpret_cast<CUstream>(context)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAlloc(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAlloc(&address, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
    function = function_of(module, "bounded");
    void *parameters[] = {&address};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 129, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());  // what was refused leaves no error behind
}

void packed_parameters() {
    new_context();
    CUfunction function = function_of(load_ptx(), "mixed_parameters");
    CUdeviceptr out = upload(std::vector<double>{0});
    struct {
        char small;
        double large;
        short middle;
        CUdeviceptr out;
    } buffer{3, 0.5, 40, out};
    size_t bytes = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    CHECK(download<double>(out, 1)[0] == 43.5);
    size_t offset = 0, size = 0;
    OK(cuFuncGetParamInfo(function, 3, &offset, &size));
    CHECK(offset == offsetof(decltype(buffer), out) && size == 8);
    EXPECT(cuFuncGetParamInfo(function, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    bytes -= 8;
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
    void *parameters[] = {&buffer.small, &buffer.large, &buffer.middle, &buffer.out};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

void globals() {
    new_context();
    CUmodule module = load_ptx();
    CUdeviceptr counter, factors;
    size_t bytes = 0;
    OK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
    CHECK(bytes == sizeof(int));
    OK(cuModuleGetGlobal(&factors, &bytes, module, "factors"));
    CHECK(bytes == 4 * sizeof(float));
    CHECK(download<int>(counter, 1)[0] == 5);
    OK(cuMemsetD32(counter, 10, 1));
    const float first = 9;
    OK(cuMemcpyHtoD(factors, &first, sizeof first));
    CUdeviceptr out = upload(std::vector<float>(4));
    void *parameters[] = {&out};
    OK(cuLaunchKernel(function_of(module, "read_globals"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK((download<float>(out, 4) == std::vector<float>{90, 20, 30, 40}));
    // Another module of the same code has variables of its own.
    CUdeviceptr other;
    OK(cuModuleGetGlobal(&other, nullptr, load_ptx(), "counter"));
    CHECK(other != counter && download<int>(other, 1)[0] == 5);
}

void libraries() {
    new_context();
    CUlibrary library, from_file;
    OK(cuLibraryLoadData(&library, content("kernels.ptx").c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(cuLibraryLoadFromFile(&from_file, (folder() + "/kernels.fatbin").c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                             0));
    CUkernel kernel;
    CUfunction function;
    OK(cuLibraryGetKernel(&kernel, from_file, "add"));
    OK(cuKernelGetFunction(&function, kernel));
    check_add(function);
    EXPECT(cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryGetKernel(&kernel, library, "add"));
    check_add(reinterpret_cast<CUfunction>(kernel));  // as CUDA allows
    const char *name = nullptr;
    OK(cuKernelGetName(&name, kernel));
    CHECK(!std::strcmp(name, "add"));
    CUlibrary owner;
    OK(cuKernelGetLibrary(&owner, kernel));
    CHECK(owner == library);
    unsigned count = 0;
    OK(cuLibraryGetKernelCount(&count, library));
    CHECK(count >= 9);
    std::vector<CUkernel> kernels(count);
    OK(cuLibraryEnumerateKernels(kernels.data(), count, library));
    for (CUkernel one : kernels) CHECK(one);
    CUdeviceptr address;
    size_t bytes = 0;
    OK(cuLibraryGetGlobal(&address, &bytes, library, "counter"));
    CHECK(bytes == 4 && download<int>(address, 1)[0] == 5);
    EXPECT(cuLibraryGetManaged(&address, &bytes, library, "counter"), CUDA_ERROR_NOT_FOUND);
    CUmodule module;
    OK(cuLibraryGetModule(&module, library));
    check_add(function_of(module, "add"));
    int value = 0;
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, kernel, 0));
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    CHECK(value == 50000);
    OK(cuLibraryUnload(library));
    OK(cuLibraryUnload(from_file));
    EXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

void linking() {
    new_context();
    std::string part = content("linked_part.ptx"), main = content("linked_main.ptx");
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    CUlinkState link;
    OK(cuLinkCreate(2, options, values, &link));
    EXPECT(
        cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char *>("nonsense"), 9, "the nonsense", 0, nullptr, nullptr),
        CUDA_ERROR_INVALID_PTX);
    CHECK(std::strstr(log, "the nonsense"));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, main.data(), main.size() + 1, "main", 0, nullptr, nullptr));
    OK(cuLinkAddFile(link, CU_JIT_INPUT_PTX, (folder() + "/linked_part.ptx").c_str(), 0, nullptr, nullptr));
    // The device runtime is there without its library, and other libraries are not linked.
    char archive[] = "!<arch>\n";
    const CUjitInputType library = CU_JIT_INPUT_LIBRARY;
    OK(cuLinkAddData(link, library, archive, sizeof archive, "lib64/libcudadevrt.a", 0, nullptr, nullptr));
    EXPECT(cuLinkAddData(link, library, archive, sizeof archive, "other.a", 0, nullptr, nullptr),
           CUDA_ERROR_NOT_SUPPORTED);
    void *code = nullptr;
    size_t bytes = 0;
    OK(cuLinkComplete(link, &code, &bytes));
    CHECK(code && bytes);
    CUmodule module;
    OK(cuModuleLoadData(&module, code));
    OK(cuLinkDestroy(link));
    EXPECT(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
    CUdeviceptr value = upload(std::vector<int>{10});
    void *parameters[] = {&value};
    OK(cuLaunchKernel(function_of(module, "quadruple"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<int>(value, 1)[0] == 40);
}

void function_attributes() {
    new_context();
    CUmodule module = load_ptx();
    CUfunction function = function_of(module, "with_dynamic_shared"), bounded = function_of(module, "bounded");
    int value = 0;
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
    CHECK(value == 128);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    CHECK(value > 0);
    OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED));
    CUmodule same;
    OK(cuFuncGetModule(&same, function));
    CHECK(same == module);
    const char *name = nullptr;
    OK(cuFuncGetName(&name, bounded));
    CHECK(!std::strcmp(name, "bounded"));
    unsigned count = 0;
    OK(cuModuleGetFunctionCount(&count, module));
    CHECK(count >= 9);
    // More than 48 KB of dynamic shared memory must be asked for.
    CUdeviceptr out = upload(std::vector<int>(64));
    int n = 64;
    void *parameters[] = {&out, &n};
    EXPECT(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 60000, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 60000, nullptr, parameters, nullptr));
    const std::vector<int> values = download<int>(out, 64);
    for (int i = 0; i < 64; ++i) CHECK(values[i] == 63 - i);
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), CUDA_ERROR_INVALID_VALUE);
}

void occupancy() {
    new_context();
    CUmodule module = load_ptx();
    CUfunction function = function_of(module, "add"), bounded = function_of(module, "bounded");
    int blocks = 0, grid = 0, block = 0, multiprocessors = 0, threads = 0;
    OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    CHECK(blocks == threads / 256);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
    CHECK(block * (grid / multiprocessors) == threads && grid % multiprocessors == 0);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, nullptr, 0, 0));
    CHECK(block == 128);
    OK(cuOccupancyMaxPotentialBlockSize(
        &grid, &block, function, [](int size) { return size > 64 ? size_t{1} << 30 : size_t{0}; }, 0, 0));
    CHECK(block == 64);  // no larger one fits
    size_t bytes = 0;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 128));
    CHECK(bytes > 48 * 1024);
}

void memory() {
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

void pointers() {
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

void copies() {
    new_context();
    std::vector<int> values(300), back(300);
    for (int i = 0; i < 300; ++i) values[i] = i * i;
    CUdeviceptr first = upload(values), second;
    OK(cuMemAlloc(&second, 1200));
    OK(cuMemcpyDtoD(second, first, 1200));
    OK(cuMemcpyDtoDAsync(second, first, 600, nullptr));
    OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), second, 1200));
    CHECK(back == values);
    EXPECT(cuMemcpyHtoD(first + 4, values.data(), 1200), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(back.data()), values.data(), 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(back.data(), reinterpret_cast<CUdeviceptr>(values.data()), 8), CUDA_ERROR_INVALID_VALUE);
    // A box of 3 rows of 5 numbers at (2, 1) of rows of 10, to rows of 5 numbers.
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = first;
    box.srcPitch = 40;
    box.srcXInBytes = 8;
    box.srcY = 1;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    std::vector<int> part(15);
    box.dstHost = part.data();
    box.dstPitch = 20;
    box.WidthInBytes = 20;
    box.Height = 3;
    OK(cuMemcpy2D(&box));
    for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 5; ++x) CHECK(part[y * 5 + x] == values[(y + 1) * 10 + x + 2]);
    box.srcPitch = 24;  // less than what a row takes from x on
    EXPECT(cuMemcpy2D(&box), CUDA_ERROR_INVALID_VALUE);
    // 2 planes of 2 rows of 3 numbers at (1, 1, 1) of 10 x 5 x 6.
    CUDA_MEMCPY3D cube{};
    cube.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    cube.srcDevice = first;
    cube.srcPitch = 40;
    cube.srcHeight = 5;
    cube.srcXInBytes = 4;
    cube.srcY = cube.srcZ = 1;
    cube.dstMemoryType = CU_MEMORYTYPE_HOST;
    std::vector<int> little(12);
    cube.dstHost = little.data();
    cube.dstPitch = 12;
    cube.dstHeight = 2;
    cube.WidthInBytes = 12;
    cube.Height = cube.Depth = 2;
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpy3DAsync(&cube, stream));
    OK(cuStreamSynchronize(stream));
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 2; ++y)
            for (int x = 0; x < 3; ++x) CHECK(little[z * 6 + y * 3 + x] == values[(z + 1) * 50 + (y + 1) * 10 + x + 1]);
}

void fills() {
    new_context();
    CUdeviceptr address = upload(std::vector<unsigned>(16));
    OK(cuMemsetD32(address, 0x01020304, 16));
    OK(cuMemsetD16(address + 4, 0xabcd, 2));
    OK(cuMemsetD8(address + 1, 0xff, 1));
    std::vector<unsigned> values = download<unsigned>(address, 16);
    CHECK(values[0] == 0x0102ff04 && values[1] == 0xabcdabcd && values[2] == 0x01020304 && values[15] == 0x01020304);
    OK(cuMemsetD2D32(address, 16, 9, 2, 3));
    OK(cuMemsetD2D8Async(address + 8, 16, 1, 4, 2, nullptr));
    values = download<unsigned>(address, 16);
    CHECK(values[0] == 9 && values[1] == 9 && values[2] == 0x01010101 && values[10] == 0x01020304);
    EXPECT(cuMemsetD16(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD32(address, 0, 17), CUDA_ERROR_INVALID_VALUE);
}

void arrays_and_textures() {
    new_context();
    CUDA_ARRAY_DESCRIPTOR description{8, 4, CU_AD_FORMAT_FLOAT, 1}, found{};
    CUarray array;
    OK(cuArrayCreate(&array, &description));
    OK(cuArrayGetDescriptor(&found, array));
    CHECK(found.Width == 8 && found.Height == 4 && found.Format == CU_AD_FORMAT_FLOAT && found.NumChannels == 1);
    std::vector<float> values(32);
    for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i);
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = values.data();
    box.srcPitch = 32;
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstArray = array;
    box.WidthInBytes = 32;
    box.Height = 4;
    OK(cuMemcpy2D(&box));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC texture{};
    texture.addressMode[0] = texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject object;
    OK(cuTexObjectCreate(&object, &resource, &texture, nullptr));
    CUDA_RESOURCE_DESC same{};
    OK(cuTexObjectGetResourceDesc(&same, object));
    CHECK(same.res.array.hArray == array);
    CUdeviceptr out = upload(std::vector<float>(32));
    int width = 8;
    void *parameters[] = {&object, &out, &width};
    OK(cuLaunchKernel(function_of(load_ptx(), "read_texture"), 1, 1, 1, 8, 4, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<float>(out, 32) == values);
    OK(cuTexObjectDestroy(object));
    OK(cuArrayDestroy(array));
    EXPECT(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    description.Format = CU_AD_FORMAT_BC1_UNORM;
    EXPECT(cuArrayCreate(&array, &description), CUDA_ERROR_NOT_SUPPORTED);
    // A line of bytes, there and back.
    CUDA_ARRAY3D_DESCRIPTOR line{16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    OK(cuArray3DCreate(&array, &line));
    const char text[] = "fifteen letters";
    char back[16] = "";
    OK(cuMemcpyHtoA(array, 0, text, 16));
    OK(cuMemcpyAtoH(back, array, 0, 16));
    CHECK(!std::strcmp(back, text));
    EXPECT(cuMemcpyAtoH(back, array, 8, 16), CUDA_ERROR_INVALID_VALUE);
}

void streams_and_events() {
    CUcontext context = new_context(), found = nullptr;
    CUmodule module = load_ptx();
    CUstream first, second;
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    OK(cuStreamGetCtx(first, &found));
    CHECK(found == context);
    unsigned flags = 0;
    int priority = 0;
    OK(cuStreamGetFlags(second, &flags));
    OK(cuStreamGetPriority(second, &priority));
    CHECK(flags == CU_STREAM_NON_BLOCKING && priority == -1);
    check_add(function_of(module, "add"), 300, first);
    CUevent start, end, without_time;
    OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&without_time, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr value = upload(std::vector<int>{5});
    int *pinned;
    OK(cuMemAllocHost(reinterpret_cast<void **>(&pinned), 4));
    *pinned = 0;
    OK(cuEventRecord(start, first));
    OK(cuMemsetD32Async(value, 77, 1, first));
    OK(cuEventRecord(end, first));
    EXPECT(cuEventQuery(end), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(second, end, 0));
    OK(cuMemcpyDtoHAsync(pinned, value, 4, second));
    CHECK(*pinned == 0);  // late means late
    OK(cuStreamSynchronize(second));
    CHECK(*pinned == 77);
    OK(cuEventQuery(end));
    OK(cuEventSynchronize(end));
    OK(cuStreamQuery(first));
    float milliseconds = -1;
    OK(cuEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0);
    EXPECT(cuEventElapsedTime(&milliseconds, start, without_time), CUDA_ERROR_INVALID_HANDLE);
    int calls = 0;
    OK(cuLaunchHostFunc(first, [](void *p) { *static_cast<int *>(p) += 1; }, &calls));
    OK(cuStreamAddCallback(
        first,
        [](CUstream, CUresult result, void *p) {
            if (result == CUDA_SUCCESS) *static_cast<int *>(p) += 10;
        },
        &calls, 0));
    CHECK(calls == 0);
    OK(cuStreamSynchronize(first));
    CHECK(calls == 11);
    OK(cuEventDestroy(start));
    EXPECT(cuEventDestroy(start), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(first));
    EXPECT(cuStreamDestroy(first), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxDestroy(context));
}

void captured_and_built_graphs() {
    new_context();
    CUmodule module = load_ptx();
    CUfunction add = function_of(module, "add");
    const std::vector<float> ones(100, 1.0f);
    CUdeviceptr a = upload(ones), b = upload(ones);
    int n = 100;
    void *parameters[] = {&a, &b, &a, &n};
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUgraph graph;
    CUgraphExec instance;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    for (int i = 0; i < 2; ++i) OK(cuLaunchKernel(add, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    OK(cuStreamEndCapture(stream, &graph));
    size_t count = 0;
    OK(cuGraphGetNodes(graph, nullptr, &count));
    CHECK(count == 2);
    OK(cuGraphInstantiate(&instance, graph, 0));
    for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(instance, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(download<float>(a, 100) == std::vector<float>(100, 7.0f));
    OK(cuGraphExecDestroy(instance));
    OK(cuGraphDestroy(graph));
    // By hand: a fill, a kernel, a copy and a host function, one after the other.
    CUgraphNode fill, kernel, copy, host;
    OK(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill_parameters{a, 0, 0, 4, 100, 1};
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    OK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_parameters, context));
    CUDA_KERNEL_NODE_PARAMS launch{};
    launch.func = add;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
    launch.blockDimX = 128;
    launch.blockDimY = launch.blockDimZ = 1;
    launch.kernelParams = parameters;
    OK(cuGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
    std::vector<float> back(100);
    CUDA_MEMCPY3D move{};
    move.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    move.srcDevice = a;
    move.dstMemoryType = CU_MEMORYTYPE_HOST;
    move.dstHost = back.data();
    move.WidthInBytes = 400;
    move.Height = move.Depth = 1;
    OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &move, context));
    int calls = 0;
    CUDA_HOST_NODE_PARAMS call{[](void *p) { ++*static_cast<int *>(p); }, &calls};
    OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
    CUgraphNodeType type;
    OK(cuGraphNodeGetType(kernel, &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
    OK(cuGraphInstantiate(&instance, graph, 0));
    OK(cuGraphLaunch(instance, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(back == ones && calls == 1);
}

void pools() {
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

CUlaunchConfig config_of(unsigned grid, unsigned block, CUlaunchAttribute *attributes, unsigned count) {
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.blockDimX = block;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.attrs = attributes;
    config.numAttrs = count;
    return config;
}

void launches_with_attributes() {
    new_context();
    CUmodule module = load_ptx("kernels_sm_90.ptx");
    CUdeviceptr out = upload(std::vector<unsigned>(8));
    void *parameters[] = {&out};
    CUlaunchAttribute attributes[2]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = 4;
    attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
    CUlaunchConfig config = config_of(8, 32, attributes, 1);
    CUfunction ranks = function_of(module, "cluster_ranks");
    OK(cuLaunchKernelEx(&config, ranks, parameters, nullptr));
    CHECK((download<unsigned>(out, 8) == std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3}));
    int clusters = 0;
    OK(cuOccupancyMaxActiveClusters(&clusters, ranks, &config));
    CHECK(clusters > 0);
    config.gridDimX = 6;  // no multiple of the cluster
    EXPECT(cuLaunchKernelEx(&config, ranks, parameters, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CUdeviceptr value = upload(std::vector<int>{1});
    void *of_value[] = {&value};
    attributes[0] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[0].value.programmaticStreamSerializationAllowed = 1;
    config = config_of(1, 1, attributes, 1);
    CUfunction after = function_of(module, "wait_for_the_kernel_before");
    for (int i = 0; i < 2; ++i) OK(cuLaunchKernelEx(&config, after, of_value, nullptr));
    CHECK(download<int>(value, 1)[0] == 3);
    EXPECT(cuLaunchKernelEx(nullptr, after, of_value, nullptr), CUDA_ERROR_INVALID_VALUE);
}

void cooperative_launches() {
    new_context();
    CUfunction meet = function_of(load_ptx(), "meet");
    CUdeviceptr arrived = upload(std::vector<unsigned>{0}), parts = upload(std::vector<int>(4)),
                sums = upload(std::vector<int>(4));
    void *parameters[] = {&arrived, &parts, &sums};
    OK(cuLaunchCooperativeKernel(meet, 4, 1, 1, 1, 1, 1, 0, nullptr, parameters));
    CHECK(download<int>(sums, 4) == std::vector<int>(4, 10));
    EXPECT(cuLaunchCooperativeKernel(meet, 1000000, 1, 1, 1024, 1, 1, 0, nullptr, parameters),
           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

void names_of_results() {
    const char *text = nullptr;
    OK(cuGetErrorName(CUDA_ERROR_INVALID_PTX, &text));
    CHECK(!std::strcmp(text, "CUDA_ERROR_INVALID_PTX"));
    OK(cuGetErrorString(CUDA_ERROR_INVALID_PTX, &text));
    CHECK(text && *text);
    EXPECT(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(!text);
    EXPECT(cuGetErrorString(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
}

void functions_by_name() {
    CUdriverProcAddressQueryResult status;
    void *function = nullptr, *per_thread = nullptr;
    OK(cuGetProcAddress("cuMemAlloc", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    CHECK(function == reinterpret_cast<void *>(&cuMemAlloc) && status == CU_GET_PROC_ADDRESS_SUCCESS);
    // The version tells which one: the second form of contexts came with 3.2, the fourth with 12.5.
    void *second = nullptr, *fourth = nullptr;
    OK(cuGetProcAddress("cuCtxCreate", &second, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    OK(cuGetProcAddress("cuCtxCreate", &fourth, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    CHECK(second && fourth == reinterpret_cast<void *>(&cuCtxCreate) && second != fourth);
    OK(cuGetProcAddress("cuLaunchKernel", &function, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
    OK(cuGetProcAddress("cuLaunchKernel", &per_thread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    CHECK(function == reinterpret_cast<void *>(&cuLaunchKernel) && per_thread && per_thread != function);
    OK(cuGetProcAddress("cuLaunchKernelEx", &function, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    CHECK(!function && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuNoSuchFunction", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    CHECK(!function && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(cuGetProcAddress(nullptr, &function, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    CUcontext context;
    OK(reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(second)(&context, 0, 0));
    check_add(function_of(load_ptx(), "add"));
}

void what_is_not_supported() {
    new_context();
    CUipcMemHandle handle;
    CUdeviceptr address = upload(std::vector<int>(1));
    EXPECT(cuIpcGetMemHandle(&handle, address), CUDA_ERROR_NOT_SUPPORTED);
    void *function = nullptr;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress("cuMulticastCreate", &function, 13000, 0, &status));
    CHECK(reinterpret_cast<CUresult (*)()>(function)() == CUDA_ERROR_NOT_SUPPORTED);
    OK(cuCtxSynchronize());
}

void virtual_memory() {
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

// With WARPSIM_DEVICES=2.
void two_devices() {
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

// The last case: nothing else runs after it.
void illegal_address() {
    new_context();
    CUfunction function = function_of(load_ptx(), "add_one_too_many");
    const std::vector<float> ones(100, 1.0f);
    CUdeviceptr a = upload(ones), b = upload(ones), c = upload(ones);
    int n = 100;
    void *parameters[] = {&a, &b, &c, &n};
    OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(cuMemFree(a), CUDA_ERROR_ILLEGAL_ADDRESS);  // as all later calls
    OK(cuDevicePrimaryCtxReset(0));
}

#define CASE(name) {#name, name}
constexpr struct {
    const char *name;
    void (*run)();
} kCases[] = {
    CASE(before_initialization),
    CASE(without_context),
    CASE(contexts),
    CASE(destroyed_elsewhere),
    CASE(primary_context),
    CASE(devices),
    CASE(add_from_ptx),
    CASE(add_from_fat_binary),
    CASE(add_from_files),
    CASE(machine_code_alone),
    CASE(bad_ptx),
    CASE(wrong_names_and_handles),
    CASE(packed_parameters),
    CASE(globals),
    CASE(libraries),
    CASE(linking),
    CASE(function_attributes),
    CASE(occupancy),
    CASE(memory),
    CASE(pointers),
    CASE(copies),
    CASE(fills),
    CASE(arrays_and_textures),
    CASE(streams_and_events),
    CASE(captured_and_built_graphs),
    CASE(pools),
    CASE(launches_with_attributes),
    CASE(cooperative_launches),
    CASE(names_of_results),
    CASE(functions_by_name),
    CASE(virtual_memory),
    {"two_devices", two_devices},
    CASE(what_is_not_supported),
    CASE(illegal_address),
};

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    folder() = argv[2];
    for (const auto &one : kCases) {
        if (std::strcmp(one.name, argv[1])) continue;
        one.run();
        std::printf("passed\n");
        return 0;
    }
    return 2;
}
