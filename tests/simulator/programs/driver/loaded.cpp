// A program that is linked with neither library and loads the driver when it runs.
//
//     loaded FOLDER
#include <dlfcn.h>

#include "driver.h"

namespace {

void *library = nullptr;

template <class F>
F *find(const char *symbol) {
    void *function = dlsym(library, symbol);
    if (!function) {
        std::printf("there is no %s\n", symbol);
        std::exit(1);
    }
    return reinterpret_cast<F *>(function);
}

void check(CUresult result, int line) {
    if (result == CUDA_SUCCESS) return;
    std::printf("line %d: %d\n", line, int(result));
    std::exit(1);
}

}  // namespace

#define CALL(name, ...) check(find<decltype(name)>(SYMBOL_OF(name))(__VA_ARGS__), __LINE__)
#define SYMBOL_OF(name) TEXT_OF(name)
#define TEXT_OF(name) #name

int main(int, char **argv) {
    folder() = argv[1];
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuCtxCreate, &context, nullptr, 0, device);
    std::ifstream stream(folder() + "/kernels.ptx");
    const std::string ptx{std::istreambuf_iterator<char>(stream), {}};
    CALL(cuModuleLoadData, &module, ptx.c_str());
    CALL(cuModuleGetFunction, &function, module, "read_globals");
    CALL(cuMemAlloc, &out, 16);
    void *parameters[] = {&out};
    CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    float values[4];
    CALL(cuMemcpyDtoH, values, out, sizeof values);
    CALL(cuCtxDestroy, context);
    if (values[0] != 5 || values[3] != 20) return 1;
    std::printf("passed\n");
    return 0;
}
