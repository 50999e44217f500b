// Entry points by name, names of results, functions that are missing.
#include "cases.h"

namespace {

CASE(names_of_results) {
    const char *text = nullptr;
    OK(cuGetErrorName(CUDA_ERROR_INVALID_PTX, &text));
    CHECK(!std::strcmp(text, "CUDA_ERROR_INVALID_PTX"));
    OK(cuGetErrorString(CUDA_ERROR_INVALID_PTX, &text));
    CHECK(text && *text);
    EXPECT(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(!text);
    EXPECT(cuGetErrorString(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
}

CASE(functions_by_name) {
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

CASE(what_is_not_supported) {
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

}  // namespace
