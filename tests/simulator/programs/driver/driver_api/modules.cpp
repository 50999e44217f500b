// Modules, libraries and the linker.
#include <cstdint>

#include "cases.h"

namespace {

CASE(add_from_ptx) {
    new_context();
    CUmodule module = load_ptx();
    for (int n : {1, 127, 128, 129, 5000}) check_add(function_of(module, "add"), n);
    OK(cuModuleUnload(module));
    EXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

CASE(add_from_fat_binary) {
    new_context();
    const std::string code = content("kernels.fatbin");
    CUmodule module;
    OK(cuModuleLoadFatBinary(&module, code.data()));
    check_add(function_of(module, "add"));
    OK(cuModuleUnload(module));
    OK(cuModuleLoadData(&module, code.data()));
    check_add(function_of(module, "add"));
}

CASE(add_from_files) {
    new_context();
    CUmodule module;
    for (const char *file : {"kernels.ptx", "kernels.fatbin"}) {
        OK(cuModuleLoad(&module, (folder() + "/" + file).c_str()));
        check_add(function_of(module, "add"));
        OK(cuModuleUnload(module));
    }
    EXPECT(cuModuleLoad(&module, (folder() + "/none.ptx").c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

CASE(machine_code_alone) {
    new_context();
    CUmodule module;
    const std::string code = content("kernels.cubin");
    EXPECT(cuModuleLoadData(&module, code.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

CASE(bad_ptx) {
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

CASE(wrong_names_and_handles) {
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

CASE(globals) {
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

CASE(libraries) {
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

CASE(linking) {
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

}  // namespace
