// Devices: which, how large, and what they can do.
#include <cstring>

#include "driver/call.h"
#include "driver/contexts.h"

using namespace warpsim;
using namespace warpsim::driver;

namespace {

void check_device(CUdevice device) {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    want(device >= 0 && device < count, CUDA_ERROR_INVALID_DEVICE);
}

template <class F>
CUresult ask(CUdevice device, F body, const char *function = __builtin_FUNCTION()) {
    return call(
        [&] {
            check_device(device);
            return body();
        },
        Needs::driver, function);
}

cudaDeviceProp properties_of(CUdevice device) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device));
    return properties;
}

int attribute_of(CUdevice device, cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

}  // namespace

CUresult cuInit(unsigned flags) {
    return call(
        [&] {
            want(flags == 0);
            // Wrong settings of the simulator's: the library has said which.
            want(rt::Runtime::get(), CUDA_ERROR_NO_DEVICE);
            initialize();
            return CUDA_SUCCESS;
        },
        Needs::nothing);
}

CUresult cuDriverGetVersion(int *version) {
    return call([&] { return version ? cudaDriverGetVersion(version) : cudaErrorInvalidValue; }, Needs::nothing);
}

CUresult cuDeviceGetCount(int *count) {
    return call([&] { return cudaGetDeviceCount(count); }, Needs::driver);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    return ask(ordinal, [&] {
        want(device);
        *device = ordinal;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    return ask(device, [&] {
        want(name && length > 0);
        std::strncpy(name, properties_of(device).name, static_cast<size_t>(length));
        name[length - 1] = '\0';
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    return ask(device, [&] {
        want(uuid);
        std::memcpy(uuid->bytes, properties_of(device).uuid.bytes, sizeof uuid->bytes);
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    return ask(device, [&] {
        want(bytes);
        *bytes = properties_of(device).totalGlobalMem;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    return ask(device, [&] {
        want(value && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
        // The runtime has no names for these.
        if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
            *value = 1;
            return CUDA_SUCCESS;
        }
        if (attribute == CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED) {
            *value = attribute_of(device, cudaDevAttrComputeCapabilityMajor) >= 9;
            return CUDA_SUCCESS;
        }
        *value = attribute_of(device, static_cast<cudaDeviceAttr>(attribute));
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    return ask(device, [&] {
        want(major && minor);
        *major = attribute_of(device, cudaDevAttrComputeCapabilityMajor);
        *minor = attribute_of(device, cudaDevAttrComputeCapabilityMinor);
        return CUDA_SUCCESS;
    });
}

// What the runtime no longer gives in one piece.
CUresult cuDeviceGetProperties(CUdevprop *to, CUdevice device) {
    return ask(device, [&] {
        want(to);
        const cudaDeviceProp p = properties_of(device);
        *to = {};
        to->maxThreadsPerBlock = p.maxThreadsPerBlock;
        std::memcpy(to->maxThreadsDim, p.maxThreadsDim, sizeof to->maxThreadsDim);
        std::memcpy(to->maxGridSize, p.maxGridSize, sizeof to->maxGridSize);
        to->sharedMemPerBlock = static_cast<int>(p.sharedMemPerBlock);
        to->totalConstantMemory = static_cast<int>(p.totalConstMem);
        to->SIMDWidth = p.warpSize;
        to->memPitch = static_cast<int>(p.memPitch);
        to->regsPerBlock = p.regsPerBlock;
        to->clockRate = attribute_of(device, cudaDevAttrClockRate);
        to->textureAlign = static_cast<int>(p.textureAlignment);
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    return ask(device, [&] { return cudaDeviceGetPCIBusId(text, length, device); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
    return call([&] { return cudaDeviceGetByPCIBusId(device, text); }, Needs::driver);
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType, CUdevice device) {
    return ask(device, [&] {
        want(supported);
        *supported = 0;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    return call([&] { return cudaDeviceCanAccessPeer(can, device, peer); }, Needs::driver);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    return call([&] { return cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attribute), from, to); },
                Needs::driver);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    return call([&] { return cudaDeviceEnablePeerAccess(find_context(peer).device, flags); });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    return call([&] { return cudaDeviceDisablePeerAccess(find_context(peer).device); });
}

CUresult cuProfilerStart() {
    return call([] { return CUDA_SUCCESS; });
}

CUresult cuProfilerStop() {
    return call([] { return CUDA_SUCCESS; });
}
