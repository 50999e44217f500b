// Several devices: what they reach of each other's memory, and copies from one to another.
#include <string>

#include "runtime/copy.h"
#include "runtime/not_supported.h"
#include "runtime/runtime.h"

using namespace warpsim;
using namespace warpsim::rt;

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
