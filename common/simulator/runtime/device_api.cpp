// Devices: which, how large, how many, and their errors' names; what they reach of each other's memory, and copies from
// one to another.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "runtime/capture.h"
#include "runtime/copy.h"
#include "runtime/devices.h"
#include "runtime/not_supported.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

namespace {

constexpr int kVersion = 13000;

cudaError_t check_device(const Runtime &runtime, int device) {
    return runtime.devices->has(device) ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int *count) {
    return answer([&](Runtime &runtime) {
        if (!count) return cudaErrorInvalidValue;
        *count = static_cast<int>(runtime.devices->count());
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device) {
    return answer([&](Runtime &) {
        if (!device) return cudaErrorInvalidValue;
        *device = static_cast<int>(current_device());
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device) {
    return answer([&](Runtime &runtime) {
        if (check_device(runtime, device) != cudaSuccess) {
            if (device >= 0 && device < int(kMostDevices)) {
                const unsigned count = runtime.devices->count();
                say("cudaSetDevice(" + std::to_string(device) + "): there " + (count == 1 ? "is " : "are ") +
                    std::to_string(count) + (count == 1 ? " device" : " devices") + " (WARPSIM_DEVICES sets how many)");
            }
            return cudaErrorInvalidDevice;
        }
        this_thread().device = static_cast<unsigned>(device);
        use_primary(runtime);
        return cudaSuccess;
    });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    return answer([&](Runtime &runtime) { return check_device(runtime, device); });
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
    return answer([&](Runtime &runtime) {
        if (count < 0 || (count && !devices)) return cudaErrorInvalidValue;
        return std::all_of(devices, devices + count, [&](int d) { return runtime.devices->has(d); })
                   ? cudaSuccess
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
        if (check_device(runtime, device) != cudaSuccess) return cudaErrorInvalidDevice;
        fill_properties(runtime.profile, *properties);
        properties->uuid.bytes[15] = static_cast<char>(device);
        properties->pciBusID = device;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return answer([&](Runtime &runtime) {
        if (!value) return cudaErrorInvalidValue;
        if (check_device(runtime, device) != cudaSuccess) return cudaErrorInvalidDevice;
        if (!device_attribute(runtime.profile, attribute, *value)) return cudaErrorInvalidValue;
        if (attribute == cudaDevAttrPciBusId) *value = device;
        return cudaSuccess;
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
        refuse_captures(runtime, "cudaDeviceSynchronize", current_device());
        runtime.reports.host.call("cudaDeviceSynchronize", HostLog::kNoStream);
        runtime.scheduler.wait_device(current_device());
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceReset() {
    return answer([](Runtime &runtime) {
        runtime.reports.host.call("cudaDeviceReset", HostLog::kNoStream);
        if (runtime.sticky == cudaSuccess) runtime.scheduler.wait_all();
        runtime.reports.synchronized();
        if (runtime.devices->count() > 1 && runtime.sticky == cudaSuccess) {
            runtime.reset(current_device());
        } else {
            runtime.reset();
        }
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
    return answer([&](Runtime &runtime) {
        if (!text || length < 13) return cudaErrorInvalidValue;
        if (check_device(runtime, device) != cudaSuccess) return cudaErrorInvalidDevice;
        std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
    return answer([&](Runtime &runtime) {
        if (!device || !text) return cudaErrorInvalidValue;
        unsigned bus = 0;
        int end = 0;
        if (std::sscanf(text, "0000:%02x:00.0%n", &bus, &end) != 1 || std::strlen(text) != 12 || end != 12 ||
            bus >= runtime.devices->count())
            return cudaErrorInvalidDevice;
        *device = static_cast<int>(bus);
        return cudaSuccess;
    });
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

namespace {

// The thread asks for the error of what it has called before.
void ask() {
    ThreadState &thread = this_thread();
    if (!std::exchange(thread.undone, false)) return;
    const std::lock_guard guard(Runtime::get()->mutex);
    Runtime::get()->reports.host.asked(std::this_thread::get_id());
}

}  // namespace

cudaError_t cudaGetLastError() {
    ask();
    ThreadState &thread = this_thread();
    const cudaError_t code = thread.last_error;
    thread.last_error = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError() {
    ask();
    return this_thread().last_error;
}

namespace {

// The memory at `p` must be of the device that the call names.
void check_owner(Runtime &runtime, const char *name, const char *side, const void *p, int device) {
    if (!runtime.devices->has(device)) throw Failure{cudaErrorInvalidDevice};
    const AllocationView *view = runtime.memory->find(address_of(p));
    if (!view || view->kind == MemoryKind::pinned || view->kind == MemoryKind::managed || view->device == device)
        return;
    say(std::string(name) + ": the " + side + " is memory of device " + std::to_string(view->device) +
        ", and the call says device " + std::to_string(device));
    throw Failure{cudaErrorInvalidValue};
}

cudaError_t copy_peer(const char *name, void *to, int to_device, const void *from, int from_device, size_t count,
                      cudaStream_t stream, Timing timing) {
    return api([&](Runtime &runtime) {
        check_owner(runtime, name, "destination", to, to_device);
        check_owner(runtime, name, "source", from, from_device);
        copy(runtime, name, {address_of(to)}, {address_of(from)}, {count}, cudaMemcpyDefault,
             runtime.scheduler.resolve(stream), timing);
        return cudaSuccess;
    });
}

int no_sharing(const char *name) {
    say(std::string(name) +
        ": the simulated devices are those of one process, and another one has devices of its own. Within a process "
        "WARPSIM_DEVICES gives several, which reach each other's memory by cudaDeviceEnablePeerAccess");
    return record(cudaErrorNotSupported);
}

}  // namespace

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t count) {
    return copy_peer("cudaMemcpyPeer", to, to_device, from, from_device, count, nullptr, Timing::blocking);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t count,
                                cudaStream_t stream) {
    return copy_peer("cudaMemcpyPeerAsync", to, to_device, from, from_device, count, stream, Timing::async);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *) {
    return static_cast<cudaError_t>(not_supported("cudaMemcpy3DPeer"));
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *, cudaStream_t) {
    return static_cast<cudaError_t>(not_supported("cudaMemcpy3DPeerAsync"));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return answer([&](Runtime &runtime) {
        if (!can) return cudaErrorInvalidValue;
        if (!runtime.devices->has(device) || !runtime.devices->has(peer)) return cudaErrorInvalidDevice;
        *can = device != peer;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return answer([&](Runtime &runtime) {
        return flags ? cudaErrorInvalidValue : runtime.devices->reach(current_device(), peer, true);
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return answer([&](Runtime &runtime) { return runtime.devices->reach(current_device(), peer, false); });
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int device, int peer) {
    return answer([&](Runtime &runtime) {
        if (!value) return cudaErrorInvalidValue;
        // A device is no peer of its own.
        if (!runtime.devices->has(device) || !runtime.devices->has(peer) || device == peer)
            return cudaErrorInvalidDevice;
        switch (static_cast<int>(attribute)) {
            case cudaDevP2PAttrPerformanceRank:
                *value = 0;
                return cudaSuccess;
            case cudaDevP2PAttrAccessSupported:
            case cudaDevP2PAttrNativeAtomicSupported:
                *value = 1;
                return cudaSuccess;
            case cudaDevP2PAttrCudaArrayAccessSupported:
                *value = 0;
                return cudaSuccess;
            default:
                return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *, void *) {
    return static_cast<cudaError_t>(no_sharing("cudaIpcGetMemHandle"));
}
cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned) {
    return static_cast<cudaError_t>(no_sharing("cudaIpcOpenMemHandle"));
}
cudaError_t cudaIpcCloseMemHandle(void *) {
    return static_cast<cudaError_t>(no_sharing("cudaIpcCloseMemHandle"));
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *, cudaEvent_t) {
    return static_cast<cudaError_t>(no_sharing("cudaIpcGetEventHandle"));
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *, cudaIpcEventHandle_t) {
    return static_cast<cudaError_t>(no_sharing("cudaIpcOpenEventHandle"));
}
