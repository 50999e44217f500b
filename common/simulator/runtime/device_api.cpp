// The device: which, how large, how many, and its errors' names.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/device.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

constexpr int kVersion = 13000;

thread_local int current_device = 0;

cudaError_t check_device(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

// Answers from tables only: the call must work on a device with an error, too.
template <class F>
cudaError_t answer(F body) {
    return api(body, true);
}

}  // namespace

cudaError_t cudaGetDeviceCount(int *count) {
    return answer([&](Runtime &) {
        if (!count) return cudaErrorInvalidValue;
        *count = 1;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device) {
    return answer([&](Runtime &) {
        if (!device) return cudaErrorInvalidValue;
        *device = current_device;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device) {
    return answer([&](Runtime &runtime) {
        if (check_device(device) != cudaSuccess) return cudaErrorInvalidDevice;
        if (!this_thread().in_driver_call) this_thread().has_primary = runtime.primary_used = true;
        current_device = device;
        return cudaSuccess;
    });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    return answer([&](Runtime &) { return check_device(device); });
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
    return answer([&](Runtime &) {
        if (count < 0 || (count && !devices)) return cudaErrorInvalidValue;
        return std::all_of(devices, devices + count, [](int d) { return d == 0; }) ? cudaSuccess
                                                                                   : cudaErrorInvalidDevice;
    });
}

cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) {
    return answer([&](Runtime &) {
        if (!device) return cudaErrorInvalidValue;
        *device = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    return answer([&](Runtime &runtime) {
        if (flags & ~static_cast<unsigned>(cudaDeviceMask)) return cudaErrorInvalidValue;
        runtime.device_flags = flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    return answer([&](Runtime &runtime) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = runtime.device_flags | cudaDeviceMapHost;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    return answer([&](Runtime &runtime) {
        if (!properties) return cudaErrorInvalidValue;
        if (check_device(device) != cudaSuccess) return cudaErrorInvalidDevice;
        fill_properties(runtime.profile, *properties);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return answer([&](Runtime &runtime) {
        if (!value) return cudaErrorInvalidValue;
        if (check_device(device) != cudaSuccess) return cudaErrorInvalidDevice;
        return device_attribute(runtime.profile, attribute, *value) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDriverGetVersion(int *version) {
    return answer([&](Runtime &) {
        if (!version) return cudaErrorInvalidValue;
        *version = kVersion;
        return cudaSuccess;
    });
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    return cudaDriverGetVersion(version);
}

cudaError_t cudaDeviceSynchronize() {
    return api_waiting([](Runtime &runtime) {
        runtime.reports.host.call("cudaDeviceSynchronize", HostLog::kNoStream);
        runtime.scheduler.wait_all();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceReset() {
    return answer([](Runtime &runtime) {
        runtime.reports.host.call("cudaDeviceReset", HostLog::kNoStream);
        if (runtime.sticky == cudaSuccess) runtime.scheduler.wait_all();
        runtime.reports.synchronized();
        runtime.reset();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    return api([&](Runtime &runtime) {
        if (!value) return cudaErrorInvalidValue;
        switch (limit) {
            case cudaLimitStackSize:
                *value = runtime.stack_limit;
                return cudaSuccess;
            case cudaLimitPrintfFifoSize:
                *value = runtime.printf_limit;
                return cudaSuccess;
            case cudaLimitMallocHeapSize:
                *value = runtime.heap_limit;
                return cudaSuccess;
            case cudaLimitDevRuntimePendingLaunchCount:
                *value = runtime.pending_launch_limit;
                return cudaSuccess;
            case cudaLimitMaxL2FetchGranularity:
                *value = 64;
                return cudaSuccess;
            case cudaLimitPersistingL2CacheSize:
                *value = 0;
                return cudaSuccess;
            default:
                return cudaErrorUnsupportedLimit;
        }
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return api([&](Runtime &runtime) {
        constexpr size_t kMaxStack = 512 * 1024 - 1024;
        switch (limit) {
            case cudaLimitStackSize:
                if (value > kMaxStack) return cudaErrorInvalidValue;
                runtime.stack_limit = (value + 15) / 16 * 16;
                return cudaSuccess;
            case cudaLimitPrintfFifoSize:
                runtime.printf_limit = value;
                return cudaSuccess;
            case cudaLimitMallocHeapSize:
                runtime.heap_limit = value;
                return cudaSuccess;
            case cudaLimitDevRuntimePendingLaunchCount:
                runtime.pending_launch_limit = value;
                return cudaSuccess;
            case cudaLimitMaxL2FetchGranularity:
            case cudaLimitPersistingL2CacheSize:
                return cudaSuccess;  // hints; nothing here depends on them
            default:
                return cudaErrorUnsupportedLimit;
        }
    });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    return answer([&](Runtime &) {
        if (!config) return cudaErrorInvalidValue;
        *config = cudaFuncCachePreferNone;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return answer([](Runtime &) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
    return answer([&](Runtime &) {
        if (!config) return cudaErrorInvalidValue;
        *config = cudaSharedMemBankSizeFourByte;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return answer([](Runtime &) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    return answer([&](Runtime &) {
        if (!text || length < 13) return cudaErrorInvalidValue;
        if (check_device(device) != cudaSuccess) return cudaErrorInvalidDevice;
        std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
    return answer([&](Runtime &) {
        if (!device || !text) return cudaErrorInvalidValue;
        if (std::strcmp(text, "0000:00:00.0") != 0) return cudaErrorInvalidDevice;
        *device = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return answer([&](Runtime &) {
        if (!can) return cudaErrorInvalidValue;
        if (check_device(device) != cudaSuccess || check_device(peer) != cudaSuccess) return cudaErrorInvalidDevice;
        *can = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
    return answer([](Runtime &) { return cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceDisablePeerAccess(int) {
    return answer([](Runtime &) { return cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr, int, int) {
    // There is one device, and a device is no peer of its own.
    return record(value ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
}

cudaError_t cudaCtxResetPersistingL2Cache() {
    return api([](Runtime &) { return cudaSuccess; });
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaProfilerStart() {
    return answer([](Runtime &) { return cudaSuccess; });
}

extern "C" __attribute__((visibility("default"))) cudaError_t cudaProfilerStop() {
    return answer([](Runtime &) { return cudaSuccess; });
}

cudaError_t cudaGetLastError() {
    ThreadState &thread = this_thread();
    const cudaError_t code = thread.last_error;
    thread.last_error = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError() {
    return this_thread().last_error;
}
