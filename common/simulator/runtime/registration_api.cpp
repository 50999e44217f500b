// What the code that nvcc generates calls: registration before main(), and the <<< >>> launch.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch.h"
#include "runtime/per_thread.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

struct CallConfiguration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

std::vector<CallConfiguration> &call_configurations() {
    thread_local std::vector<CallConfiguration> stack;
    return stack;
}

Library *library_of(void **handle) {
    return reinterpret_cast<Library *>(handle);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void **__cudaRegisterFatBinary(void *wrapper) {
    Library *library = nullptr;
    api(
        [&](Runtime &runtime) {
            library = runtime.modules.add_fat_binary(wrapper);
            return cudaSuccess;
        },
        true);
    return reinterpret_cast<void **>(library);
}

void __cudaRegisterFatBinaryEnd(void **) {}

void __cudaUnregisterFatBinary(void **handle) {
    // At exit kernels may still be queued: the code stays until the library is gone for good.
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *, const char *device_name, int, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *) {
    if (!handle) return;
    api(
        [&](Runtime &runtime) {
            runtime.modules.add_kernel(library_of(handle), device_name, host_function);
            return cudaSuccess;
        },
        true);
}

void __cudaRegisterVar(void **handle, char *host_variable, char *, const char *device_name, int, size_t size, int,
                       int) {
    if (!handle) return;
    api(
        [&](Runtime &runtime) {
            runtime.modules.add_variable(library_of(handle), host_variable, device_name, size, nullptr);
            return cudaSuccess;
        },
        true);
}

void __cudaRegisterHostVar(void **, const char *, char *, size_t) {}

void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *, const char *device_name, int, size_t size,
                              int, int) {
    if (!handle) return;
    api(
        [&](Runtime &runtime) {
            runtime.modules.add_variable(library_of(handle), host_pointer, device_name, size, host_pointer);
            return cudaSuccess;
        },
        true);
}

char __cudaInitModule(void **handle) {
    if (!handle) return 0;
    const cudaError_t code = api([&](Runtime &runtime) {
        runtime.modules.initialize_managed(*library_of(handle));
        return cudaSuccess;
    });
    return code == cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    call_configurations().push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    std::vector<CallConfiguration> &stack = call_configurations();
    if (stack.empty()) return record(cudaErrorMissingConfiguration);
    const CallConfiguration top = stack.back();
    stack.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *static_cast<cudaStream_t *>(stream) = top.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function) {
    return cudaGetKernel(kernel, host_function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
    std::string said;
    std::string *const before = std::exchange(this_thread().heard, &said);
    const cudaError_t code =
        launch_api({.grid = grid, .block = block, .shared = shared, .stream = stream}, kernel, arguments);
    this_thread().heard = before;
    if (code == cudaSuccess) return code;
    // <<<>>> drops the error. What ended the device is in the report of the launch that did it.
    Runtime *const runtime = Runtime::get();
    if (!runtime) return code;
    const std::lock_guard guard(runtime->mutex);
    if (runtime->sticky == cudaSuccess) {
        if (said.empty()) said = std::string("a launch failed with ") + cudaGetErrorName(code) + "\n";
        note_undone(said.substr(0, said.find('\n')));
    }
    return code;
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
    const PerThreadStream scope;
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
}
#pragma GCC visibility pop
