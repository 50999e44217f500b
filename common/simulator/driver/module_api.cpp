// Modules: cuModule*.
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
