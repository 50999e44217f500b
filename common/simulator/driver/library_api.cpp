// Modules, cuModule*, and libraries, which belong to no context: cuLibrary*.
#include <cstdint>

#include "driver/libraries.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

CUresult load_module(CUmodule *module, const void *code, unsigned count, CUjit_option *options, void **values,
                     const char *function) {
    return call(
        [&] {
            want(module && code);
            JitOptions(count, options, values).run([&] { *module = module_of(load_code(code, true)); });
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

}  // namespace

CUresult cuModuleLoad(CUmodule *module, const char *path) {
    return call([&] {
        want(module && path);
        *module = module_of(load_file(path, true));
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleLoadData(CUmodule *module, const void *code) {
    return load_module(module, code, 0, nullptr, nullptr, __func__);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *code, unsigned count, CUjit_option *options, void **values) {
    return load_module(module, code, count, options, values, __func__);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *code) {
    return load_module(module, code, 0, nullptr, nullptr, __func__);
}

CUresult cuModuleUnload(CUmodule module) {
    return call([&] {
        unload(library_of(module));
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    return call(
        [&] {
            want(mode);
            *mode = CU_MODULE_LAZY_LOADING;
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    return call([&] {
        cudaKernel_t kernel = nullptr;
        want(function && name && *name);
        check(cudaLibraryGetKernel(&kernel, reinterpret_cast<cudaLibrary_t>(module), name));
        *function = reinterpret_cast<CUfunction>(kernel);
        return CUDA_SUCCESS;
    });
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    return call([&] { return cudaLibraryGetKernelCount(count, reinterpret_cast<cudaLibrary_t>(module)); });
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module) {
    return call([&] {
        return cudaLibraryEnumerateKernels(reinterpret_cast<cudaKernel_t *>(functions), count,
                                           reinterpret_cast<cudaLibrary_t>(module));
    });
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
    return call([&] {
        return cudaLibraryGetGlobal(reinterpret_cast<void **>(address), bytes, reinterpret_cast<cudaLibrary_t>(module),
                                    name);
    });
}

namespace {

CUlibrary handle_of(rt::Library *library) {
    return reinterpret_cast<CUlibrary>(library);
}

template <class F>
CUresult load_library(CUlibrary *result, unsigned count, CUjit_option *options, void **values, F load,
                      const char *function) {
    return call(
        [&] {
            want(result);
            JitOptions(count, options, values).run([&] { *result = handle_of(load()); });
            return CUDA_SUCCESS;
        },
        Needs::driver, function);
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values, unsigned count,
                           CUlibraryOption *, void **, unsigned) {
    const auto load = [&] {
        want(code);
        return load_code(code, false);
    };
    return load_library(library, count, options, values, load, __func__);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                               unsigned count, CUlibraryOption *, void **, unsigned) {
    const auto load = [&] {
        want(path);
        return load_file(path, false);
    };
    return load_library(library, count, options, values, load, __func__);
}

CUresult cuLibraryUnload(CUlibrary library) {
    return call(
        [&] {
            unload(reinterpret_cast<rt::Library *>(library));
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    return call([&] { return cudaLibraryGetKernel(kernel, library, name); }, Needs::driver);
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
    return call([&] { return cudaLibraryGetKernelCount(count, library); }, Needs::driver);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
    return call([&] { return cudaLibraryEnumerateKernels(kernels, count, library); }, Needs::driver);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    return call_runtime([&](rt::Runtime &runtime) {
        want(module);
        *module = module_of(runtime.modules.find_library(library));
        return cudaSuccess;
    });
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    return call([&] { return cudaLibraryGetGlobal(reinterpret_cast<void **>(address), bytes, library, name); });
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    return call([&] { return cudaLibraryGetManaged(reinterpret_cast<void **>(address), bytes, library, name); });
}
