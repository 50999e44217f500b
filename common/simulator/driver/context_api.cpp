// Contexts, and the primary contexts that the runtime uses.
#include <algorithm>

#include "driver/call.h"
#include "driver/contexts.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

constexpr unsigned kApiVersion = 3020;  // what contexts of this kind have answered since CUDA 3.2

CUresult create(CUcontext *result, unsigned flags, CUdevice device, const char *function) {
    return call(
        [&] {
            want(result && !(flags & ~unsigned{CU_CTX_FLAGS_MASK}));
            primary_context(device);  // there is such a device
            *result = handle_of(&create_context(device, flags));
            return CUDA_SUCCESS;
        },
        Needs::driver, function);
}

CUresult refuse_affinity() {
    rt::say("cuCtxCreate: execution affinity and sharing with graphics are not supported");
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext *result, unsigned flags,
                                                                          CUdevice device) {
    return create(result, flags, device, __func__);
}

extern "C" __attribute__((visibility("default"))) CUresult cuCtxCreate_v3(CUcontext *result, CUexecAffinityParam *,
                                                                          int count, unsigned flags, CUdevice device) {
    return count ? refuse_affinity() : create(result, flags, device, __func__);
}

CUresult cuCtxCreate_v4(CUcontext *result, CUctxCreateParams *p, unsigned flags, CUdevice device) {
    if (p && (p->numExecAffinityParams || p->cigParams)) return refuse_affinity();
    return create(result, flags, device, __func__);
}

CUresult cuCtxDestroy(CUcontext context) {
    return call(
        [&] {
            destroy_context(find_context(context));
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuCtxSetCurrent(CUcontext context) {
    return call(
        [&] {
            set_current(context ? &find_context(context) : nullptr);
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    return call(
        [&] {
            want(context);
            *context = handle_of(current_context());
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuCtxPushCurrent(CUcontext context) {
    return call(
        [&] {
            push_current(find_context(context));
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    return call(
        [&] {
            Context &popped = pop_current();
            if (context) *context = handle_of(&popped);
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuCtxGetDevice(CUdevice *device) {
    return call([&] {
        want(device);
        *device = current_context()->device;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    return call(
        [&] {
            want(device);
            *device = context ? find_context(context).device : current_context()->device;
            return CUDA_SUCCESS;
        },
        context ? Needs::driver : Needs::context);
}

CUresult cuCtxGetFlags(unsigned *flags) {
    return call([&] {
        want(flags);
        *flags = current_context()->flags;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSetFlags(unsigned flags) {
    return call([&] {
        want(!(flags & ~unsigned{CU_CTX_FLAGS_MASK}));
        current_context()->flags = flags;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    return call(
        [&] {
            want(id);
            *id = context ? find_context(context).id : current_context()->id;
            return CUDA_SUCCESS;
        },
        context ? Needs::driver : Needs::context);
}

CUresult cuCtxSynchronize() {
    return call([] { return cudaDeviceSynchronize(); });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
    return call(
        [&] {
            const OnDevice scope(context ? find_context(context).device : current_context()->device);
            return cudaDeviceSynchronize();
        },
        context ? Needs::driver : Needs::context);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    return call(
        [&] {
            want(version);
            if (context) find_context(context);
            *version = kApiVersion;
            return CUDA_SUCCESS;
        },
        context ? Needs::driver : Needs::context);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    return call([&] { return cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value); });
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    return call([&] { return cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)); });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
    return call([&] {
        want(config);
        *config = CU_FUNC_CACHE_PREFER_NONE;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) {
    return call([] { return CUDA_SUCCESS; });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
    return call([&] {
        want(config);
        *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
    return call([] { return CUDA_SUCCESS; });
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    return call([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}

CUresult cuCtxResetPersistingL2Cache() {
    return call([] { return CUDA_SUCCESS; });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    return call(
        [&] {
            want(context);
            Context &primary = primary_context(device);
            retain_primary(primary);
            *context = handle_of(&primary);
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    return call(
        [&] {
            release_primary(primary_context(device));
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    return call(
        [&] {
            const OnDevice scope(primary_context(device).device);
            return cudaDeviceReset();
        },
        Needs::driver);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return call(
        [&] {
            want(!(flags & ~unsigned{CU_CTX_FLAGS_MASK}));
            primary_context(device).flags = flags;
            return CUDA_SUCCESS;
        },
        Needs::driver);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    return call(
        [&] {
            want(flags && active);
            const Context &primary = primary_context(device);
            *flags = primary.flags;
            *active = is_active(primary);
            return CUDA_SUCCESS;
        },
        Needs::driver);
}
