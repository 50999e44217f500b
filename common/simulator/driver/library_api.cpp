// Libraries, which belong to no context: cuLibrary*.
#include <cstdint>

#include "driver/libraries.h"

using namespace warpsim;
using namespace warpsim::driver;

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
