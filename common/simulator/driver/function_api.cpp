// Functions of modules and kernels of libraries, whose handles are the same: what they are and may be told.
#include "driver/contexts.h"
#include "driver/libraries.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

// A function is known by its handle alone: the address of a host function that stands for a kernel is the runtime's.
template <class F>
CUresult with_kernel(const void *handle, F body, const char *function = __builtin_FUNCTION()) {
    return call_runtime(
        [&](rt::Runtime &runtime) {
            rt::Kernel *kernel = runtime.modules.find_kernel(handle);
            if (kernel->first) kernel = kernel->first;  // whose handle programs have
            want(kernel == handle, CUDA_ERROR_INVALID_HANDLE);
            return body(runtime, *kernel);
        },
        function);
}

CUresult get_attribute(int *value, CUfunction_attribute attribute, const void *handle, const char *function) {
    return call(
        [&] {
            want(value);
            cudaFuncAttributes a;
            check(cudaFuncGetAttributes(&a, handle));
            // clang-format off
            switch (attribute) {
                case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = a.maxThreadsPerBlock; break;
                case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(a.sharedSizeBytes); break;
                case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(a.constSizeBytes); break;
                case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(a.localSizeBytes); break;
                case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = a.numRegs; break;
                case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = a.ptxVersion; break;
                case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = a.binaryVersion; break;
                case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = a.cacheModeCA; break;
                case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = a.maxDynamicSharedSizeBytes; break;
                case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = a.preferredShmemCarveout; break;
                case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = a.clusterDimMustBeSet; break;
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = a.requiredClusterWidth; break;
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = a.requiredClusterHeight; break;
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = a.requiredClusterDepth; break;
                case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
                    *value = a.nonPortableClusterSizeAllowed;
                    break;
                case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
                    *value = a.clusterSchedulingPolicyPreference;
                    break;
                default: return CUDA_ERROR_INVALID_VALUE;
            }
            // clang-format on
            return CUDA_SUCCESS;
        },
        Needs::context, function);
}

// The runtime has the same numbers for what may be set.
CUresult set_attribute(const void *handle, CUfunction_attribute attribute, int value, const char *function) {
    return call([&] { return cudaFuncSetAttribute(handle, static_cast<cudaFuncAttribute>(attribute), value); },
                Needs::context, function);
}

CUresult accept(const void *handle, const char *function) {
    return with_kernel(handle, [](rt::Runtime &, rt::Kernel &) { return cudaSuccess; }, function);
}

CUresult name_of(const char **name, const void *handle, const char *function) {
    return with_kernel(
        handle,
        [&](rt::Runtime &, rt::Kernel &kernel) {
            want(name);
            *name = kernel.name.c_str();
            return cudaSuccess;
        },
        function);
}

CUresult parameter(const void *handle, size_t index, size_t *offset, size_t *size, const char *function) {
    return call([&] { return cudaFuncGetParamInfo(handle, index, offset, size); }, Needs::context, function);
}

}  // namespace

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    return get_attribute(value, attribute, function, __func__);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
    return call([&] {
        const OnDevice scope(primary_context(device).device);  // there is such a device
        return get_attribute(value, attribute, kernel, __func__);
    });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    return set_attribute(function, attribute, value, __func__);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
    return call([&] {
        return cudaKernelSetAttributeForDevice(kernel, static_cast<cudaFuncAttribute>(attribute), value, device);
    });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
    return accept(function, __func__);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
    return accept(kernel, __func__);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
    return accept(function, __func__);
}

CUresult cuFuncGetName(const char **name, CUfunction function) {
    return name_of(name, function, __func__);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    return name_of(name, kernel, __func__);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    return parameter(function, index, offset, size, __func__);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    return parameter(kernel, index, offset, size, __func__);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
    return with_kernel(function, [&](rt::Runtime &, rt::Kernel &kernel) {
        want(module);
        *module = module_of(kernel.library);
        return cudaSuccess;
    });
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel handle) {
    return with_kernel(handle, [&](rt::Runtime &, rt::Kernel &kernel) {
        want(library);
        *library = reinterpret_cast<CUlibrary>(kernel.library);
        return cudaSuccess;
    });
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel handle) {
    return with_kernel(handle, [&](rt::Runtime &, rt::Kernel &kernel) {
        want(function);
        *function = reinterpret_cast<CUfunction>(&kernel);
        return cudaSuccess;
    });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
    return with_kernel(function, [&](rt::Runtime &, rt::Kernel &kernel) {
        want(state);
        *state = kernel.program ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
        return cudaSuccess;
    });
}

CUresult cuFuncLoad(CUfunction function) {
    return with_kernel(function, [&](rt::Runtime &runtime, rt::Kernel &kernel) {
        runtime.modules.program(kernel);
        return cudaSuccess;
    });
}
