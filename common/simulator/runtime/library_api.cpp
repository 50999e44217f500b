// Code loaded at run time: cudaLibrary*.
#include <fstream>
#include <iterator>

#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

cudaLibrary_t handle_of(Library *library) {
    return reinterpret_cast<cudaLibrary_t>(library);
}

// Parses the code at once, so that errors in it come from the call that loads it.
cudaError_t finish_loading(Runtime &runtime, Library *library, cudaLibrary_t *result) {
    try {
        runtime.modules.loaded(*library);
    } catch (...) {
        runtime.modules.remove(library);
        throw;
    }
    *result = handle_of(library);
    return cudaSuccess;
}

cudaError_t global_of(void **address, size_t *bytes, cudaLibrary_t library, const char *name, bool managed) {
    return api([&](Runtime &runtime) {
        if (!name || (!address && !bytes)) return cudaErrorInvalidValue;
        Library &wanted = *runtime.modules.find_library(library);
        runtime.modules.loaded(wanted);
        const LoadedModule &module = runtime.modules.loaded(runtime.modules.here(wanted));
        const auto found = module.globals.find(name);
        if (found == module.globals.end()) return cudaErrorSymbolNotFound;
        if (managed && runtime.memory->find(found->second)->kind != MemoryKind::managed) return cudaErrorSymbolNotFound;
        if (address) *address = reinterpret_cast<void *>(found->second);
        if (bytes) *bytes = module.global_bytes.at(name);
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
                                cudaLibraryOption *, void **, unsigned) {
    return api([&](Runtime &runtime) {
        if (!library || !code) return cudaErrorInvalidValue;
        return finish_loading(runtime, runtime.modules.add_data(code), library);
    });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, cudaJitOption *, void **, unsigned,
                                    cudaLibraryOption *, void **, unsigned) {
    return api([&](Runtime &runtime) {
        if (!library || !path) return cudaErrorInvalidValue;
        std::ifstream file(path, std::ios::binary);
        if (!file) return cudaErrorFileNotFound;
        std::string text(std::istreambuf_iterator<char>(file), {});
        if (text.find(".version") == std::string::npos) {
            say(std::string(path) + " is no PTX file");
            return cudaErrorNoKernelImageForDevice;
        }
        return finish_loading(runtime, runtime.modules.add_text(std::move(text), path), library);
    });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return api_waiting([&](Runtime &runtime) {
        Library *found = runtime.modules.find_library(library);
        if (found->registered) return cudaErrorInvalidResourceHandle;
        runtime.reports.host.call("cudaLibraryUnload", HostLog::kNoStream);
        runtime.scheduler.wait_all();
        runtime.modules.remove(found);
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    return api([&](Runtime &runtime) {
        if (!kernel || !name) return cudaErrorInvalidValue;
        *kernel =
            reinterpret_cast<cudaKernel_t>(runtime.modules.kernel_of(runtime.modules.find_library(library), name));
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
    return api([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        *count = static_cast<unsigned>(runtime.modules.kernel_names(runtime.modules.find_library(library)).size());
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned count, cudaLibrary_t library) {
    return api([&](Runtime &runtime) {
        if (!kernels || !count) return cudaErrorInvalidValue;
        Library *found = runtime.modules.find_library(library);
        unsigned i = 0;
        for (const std::string &name : runtime.modules.kernel_names(found)) {
            if (i == count) break;
            kernels[i++] = reinterpret_cast<cudaKernel_t>(runtime.modules.kernel_of(found, name));
        }
        return cudaSuccess;
    });
}

cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library, const char *name) {
    return global_of(address, bytes, library, name, false);
}

cudaError_t cudaLibraryGetManaged(void **address, size_t *bytes, cudaLibrary_t library, const char *name) {
    return global_of(address, bytes, library, name, true);
}
