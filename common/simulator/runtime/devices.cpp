#include "runtime/devices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "runtime/arrays.h"
#include "runtime/runtime.h"

namespace warpsim::rt {

Devices::Devices(const GlobalMemory &all, unsigned count) {
    for (unsigned device = 0; device < count; ++device) memory_.push_back(std::make_unique<GlobalMemory>(all, device));
}

void Devices::forget(unsigned device) {
    for (unsigned peer = 0; peer < count(); ++peer) {
        memory_[peer]->reach(device, false);
        memory_[device]->reach(peer, false);
    }
}

cudaError_t Devices::reach(unsigned device, int peer, bool reaches) {
    if (!has(peer) || unsigned(peer) == device) return cudaErrorInvalidDevice;
    if (memory_[device]->reaches(unsigned(peer)) == reaches)
        return reaches ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled;
    memory_[device]->reach(unsigned(peer), reaches);
    return cudaSuccess;
}

unsigned current_device() {
    return this_thread().device;
}

namespace {

void set(int *to, std::initializer_list<int> values) {
    std::copy(values.begin(), values.end(), to);
}

void fill_image_limits(cudaDeviceProp &p) {
    p.maxTexture1D = kImage1D;
    p.maxTexture1DMipmap = kImage1DMipmap;
    set(p.maxTexture2D, {kImage2DWidth, kImage2DHeight});
    set(p.maxTexture2DMipmap, {kImage2DSmall, kImage2DSmall});
    set(p.maxTexture2DLinear, {kPitchedWidth, kPitchedHeight, kPitchedBytes});
    set(p.maxTexture2DGather, {kImage2DSmall, kImage2DSmall});
    set(p.maxTexture3D, {kImage3D, kImage3D, kImage3D});
    set(p.maxTexture3DAlt, {kImage3D / 2, kImage3D / 2, kImage3D * 2});
    p.maxTextureCubemap = p.maxSurfaceCubemap = kCubemap;
    set(p.maxTexture1DLayered, {kImage1DLayered, kLayers});
    set(p.maxTexture2DLayered, {kImage2DSmall, kImage2DSmall, kLayers});
    set(p.maxTextureCubemapLayered, {kCubemap, kCubemapLayers});
    p.maxSurface1D = kSurface1D;
    set(p.maxSurface2D, {kImage2DWidth, kImage2DHeight});
    set(p.maxSurface3D, {kImage3D, kImage3D, kImage3D});
    set(p.maxSurface1DLayered, {kImage1DLayered, kLayers});
    set(p.maxSurface2DLayered, {kImage2DSmall, kImage2DSmall, kLayers});
    set(p.maxSurfaceCubemapLayered, {kCubemap, kCubemapLayers});
}

}  // namespace

void fill_properties(const Profile &profile, cudaDeviceProp &p) {
    p = cudaDeviceProp{};
    std::snprintf(p.name, sizeof p.name, "%s (warpsim)", profile.product);
    std::memcpy(p.uuid.bytes, "warpsim-", 8);
    std::memcpy(p.uuid.bytes + 8, profile.name, 5);
    p.totalGlobalMem = profile.memory_bytes;
    p.sharedMemPerBlock = kSharedPerBlock;
    p.regsPerBlock = kRegistersPerMultiprocessor;
    p.warpSize = 32;
    p.memPitch = 0x7fffffff;
    p.maxThreadsPerBlock = kThreadsPerBlock;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = 64 * 1024;
    p.major = static_cast<int>(profile.compute / 10);
    p.minor = static_cast<int>(profile.compute % 10);
    p.textureAlignment = p.surfaceAlignment = kTextureAlignment;
    p.texturePitchAlignment = kTexturePitchAlignment;
    fill_image_limits(p);
    p.multiProcessorCount = static_cast<int>(profile.multiprocessors);
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.ECCEnabled = profile.copy_engines == 3;  // data-centre boards
    p.asyncEngineCount = static_cast<int>(profile.copy_engines);
    p.unifiedAddressing = 1;
    p.memoryBusWidth = static_cast<int>(profile.memory_bus_bits);
    p.l2CacheSize = static_cast<int>(profile.l2_bytes);
    p.persistingL2CacheMaxSize = static_cast<int>(profile.persisting_l2_bytes);
    p.maxThreadsPerMultiProcessor = static_cast<int>(profile.threads_per_multiprocessor);
    p.streamPrioritiesSupported = 1;
    p.globalL1CacheSupported = p.localL1CacheSupported = 1;
    p.sharedMemPerMultiprocessor = profile.shared_per_multiprocessor;
    p.regsPerMultiprocessor = kRegistersPerMultiprocessor;
    p.managedMemory = 1;
    p.concurrentManagedAccess = 1;
    p.computePreemptionSupported = 1;
    p.canUseHostPointerForRegisteredMem = 1;
    p.cooperativeLaunch = 1;
    p.sharedMemPerBlockOptin = profile.shared_per_block_optin;
    p.maxBlocksPerMultiProcessor = static_cast<int>(profile.blocks_per_multiprocessor);
    p.accessPolicyMaxWindowSize = profile.persisting_l2_bytes ? 128 << 20 : 0;
    p.reservedSharedMemPerBlock = profile.shared_reserved;
    p.hostRegisterSupported = 1;
    p.memoryPoolsSupported = 1;
    p.clusterLaunch = profile.compute >= 90;
    p.unifiedFunctionPointers = 0;
}

bool device_attribute(const Profile &profile, cudaDeviceAttr attribute, int &value) {
    cudaDeviceProp p;
    fill_properties(profile, p);
    // clang-format off
    switch (static_cast<int>(attribute)) {
        case cudaDevAttrMaxThreadsPerBlock: value = p.maxThreadsPerBlock; return true;
        case cudaDevAttrMaxBlockDimX: value = p.maxThreadsDim[0]; return true;
        case cudaDevAttrMaxBlockDimY: value = p.maxThreadsDim[1]; return true;
        case cudaDevAttrMaxBlockDimZ: value = p.maxThreadsDim[2]; return true;
        case cudaDevAttrMaxGridDimX: value = p.maxGridSize[0]; return true;
        case cudaDevAttrMaxGridDimY: value = p.maxGridSize[1]; return true;
        case cudaDevAttrMaxGridDimZ: value = p.maxGridSize[2]; return true;
        case cudaDevAttrMaxSharedMemoryPerBlock: value = kSharedPerBlock; return true;
        case cudaDevAttrTotalConstantMemory: value = static_cast<int>(p.totalConstMem); return true;
        case cudaDevAttrWarpSize: value = p.warpSize; return true;
        case cudaDevAttrMaxPitch: value = static_cast<int>(p.memPitch); return true;
        case cudaDevAttrMaxRegistersPerBlock: value = p.regsPerBlock; return true;
        case cudaDevAttrClockRate: value = static_cast<int>(profile.clock_khz); return true;
        case cudaDevAttrTextureAlignment: value = static_cast<int>(p.textureAlignment); return true;
        case cudaDevAttrTexturePitchAlignment: value = static_cast<int>(p.texturePitchAlignment); return true;
        case cudaDevAttrSurfaceAlignment: value = static_cast<int>(p.surfaceAlignment); return true;
        case cudaDevAttrMaxTexture1DWidth: value = p.maxTexture1D; return true;
        case cudaDevAttrMaxTexture2DWidth: value = p.maxTexture2D[0]; return true;
        case cudaDevAttrMaxTexture2DHeight: value = p.maxTexture2D[1]; return true;
        case cudaDevAttrMaxTexture3DWidth: value = p.maxTexture3D[0]; return true;
        case cudaDevAttrMaxTexture3DHeight: value = p.maxTexture3D[1]; return true;
        case cudaDevAttrMaxTexture3DDepth: value = p.maxTexture3D[2]; return true;
        case cudaDevAttrMaxTexture2DLayeredWidth: value = p.maxTexture2DLayered[0]; return true;
        case cudaDevAttrMaxTexture2DLayeredHeight: value = p.maxTexture2DLayered[1]; return true;
        case cudaDevAttrMaxTexture2DLayeredLayers: value = p.maxTexture2DLayered[2]; return true;
        case cudaDevAttrMaxTexture1DLayeredWidth: value = p.maxTexture1DLayered[0]; return true;
        case cudaDevAttrMaxTexture1DLayeredLayers: value = p.maxTexture1DLayered[1]; return true;
        case cudaDevAttrMaxTexture2DGatherWidth: value = p.maxTexture2DGather[0]; return true;
        case cudaDevAttrMaxTexture2DGatherHeight: value = p.maxTexture2DGather[1]; return true;
        case cudaDevAttrMaxTexture3DWidthAlt: value = p.maxTexture3DAlt[0]; return true;
        case cudaDevAttrMaxTexture3DHeightAlt: value = p.maxTexture3DAlt[1]; return true;
        case cudaDevAttrMaxTexture3DDepthAlt: value = p.maxTexture3DAlt[2]; return true;
        case cudaDevAttrMaxTextureCubemapWidth: value = p.maxTextureCubemap; return true;
        case cudaDevAttrMaxTextureCubemapLayeredWidth: value = p.maxTextureCubemapLayered[0]; return true;
        case cudaDevAttrMaxTextureCubemapLayeredLayers: value = p.maxTextureCubemapLayered[1]; return true;
        case cudaDevAttrMaxSurface1DWidth: value = p.maxSurface1D; return true;
        case cudaDevAttrMaxSurface2DWidth: value = p.maxSurface2D[0]; return true;
        case cudaDevAttrMaxSurface2DHeight: value = p.maxSurface2D[1]; return true;
        case cudaDevAttrMaxSurface3DWidth: value = p.maxSurface3D[0]; return true;
        case cudaDevAttrMaxSurface3DHeight: value = p.maxSurface3D[1]; return true;
        case cudaDevAttrMaxSurface3DDepth: value = p.maxSurface3D[2]; return true;
        case cudaDevAttrMaxSurface1DLayeredWidth: value = p.maxSurface1DLayered[0]; return true;
        case cudaDevAttrMaxSurface1DLayeredLayers: value = p.maxSurface1DLayered[1]; return true;
        case cudaDevAttrMaxSurface2DLayeredWidth: value = p.maxSurface2DLayered[0]; return true;
        case cudaDevAttrMaxSurface2DLayeredHeight: value = p.maxSurface2DLayered[1]; return true;
        case cudaDevAttrMaxSurface2DLayeredLayers: value = p.maxSurface2DLayered[2]; return true;
        case cudaDevAttrMaxSurfaceCubemapWidth: value = p.maxSurfaceCubemap; return true;
        case cudaDevAttrMaxSurfaceCubemapLayeredWidth: value = p.maxSurfaceCubemapLayered[0]; return true;
        case cudaDevAttrMaxSurfaceCubemapLayeredLayers: value = p.maxSurfaceCubemapLayered[1]; return true;
        case cudaDevAttrMaxTexture2DLinearWidth: value = p.maxTexture2DLinear[0]; return true;
        case cudaDevAttrMaxTexture2DLinearHeight: value = p.maxTexture2DLinear[1]; return true;
        case cudaDevAttrMaxTexture2DLinearPitch: value = p.maxTexture2DLinear[2]; return true;
        case cudaDevAttrMaxTexture2DMipmappedWidth: value = p.maxTexture2DMipmap[0]; return true;
        case cudaDevAttrMaxTexture2DMipmappedHeight: value = p.maxTexture2DMipmap[1]; return true;
        case cudaDevAttrMaxTexture1DMipmappedWidth: value = p.maxTexture1DMipmap; return true;
        case cudaDevAttrMaxTexture1DLinearWidth: value = kLinearTexels; return true;
        case cudaDevAttrGpuOverlap: value = 1; return true;
        case cudaDevAttrMultiProcessorCount: value = p.multiProcessorCount; return true;
        case cudaDevAttrCanMapHostMemory: value = 1; return true;
        case cudaDevAttrComputeMode: value = cudaComputeModeDefault; return true;
        case cudaDevAttrConcurrentKernels: value = 1; return true;
        case cudaDevAttrEccEnabled: value = p.ECCEnabled; return true;
        case cudaDevAttrMemoryClockRate: value = static_cast<int>(profile.memory_clock_khz); return true;
        case cudaDevAttrGlobalMemoryBusWidth: value = p.memoryBusWidth; return true;
        case cudaDevAttrL2CacheSize: value = p.l2CacheSize; return true;
        case cudaDevAttrMaxThreadsPerMultiProcessor: value = p.maxThreadsPerMultiProcessor; return true;
        case cudaDevAttrAsyncEngineCount: value = p.asyncEngineCount; return true;
        case cudaDevAttrUnifiedAddressing: value = 1; return true;
        case cudaDevAttrComputeCapabilityMajor: value = p.major; return true;
        case cudaDevAttrComputeCapabilityMinor: value = p.minor; return true;
        case cudaDevAttrStreamPrioritiesSupported: value = 1; return true;
        case cudaDevAttrGlobalL1CacheSupported: value = 1; return true;
        case cudaDevAttrLocalL1CacheSupported: value = 1; return true;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            value = static_cast<int>(p.sharedMemPerMultiprocessor);
            return true;
        case cudaDevAttrMaxRegistersPerMultiprocessor: value = p.regsPerMultiprocessor; return true;
        case cudaDevAttrManagedMemory: value = 1; return true;
        case cudaDevAttrSingleToDoublePrecisionPerfRatio:
            value = static_cast<int>(profile.single_to_double);
            return true;
        case cudaDevAttrConcurrentManagedAccess: value = 1; return true;
        case cudaDevAttrComputePreemptionSupported: value = 1; return true;
        case cudaDevAttrCanUseHostPointerForRegisteredMem: value = 1; return true;
        case cudaDevAttrCooperativeLaunch: value = 1; return true;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: value = static_cast<int>(p.sharedMemPerBlockOptin); return true;
        case cudaDevAttrHostRegisterSupported: value = 1; return true;
        case cudaDevAttrMaxBlocksPerMultiprocessor: value = p.maxBlocksPerMultiProcessor; return true;
        case cudaDevAttrMaxPersistingL2CacheSize: value = p.persistingL2CacheMaxSize; return true;
        case cudaDevAttrMaxAccessPolicyWindowSize: value = p.accessPolicyMaxWindowSize; return true;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            value = static_cast<int>(p.reservedSharedMemPerBlock);
            return true;
        case cudaDevAttrMemoryPoolsSupported: value = 1; return true;
        case cudaDevAttrClusterLaunch: value = p.clusterLaunch; return true;
        case cudaDevAttrMemSyncDomainCount: value = profile.compute >= 90 ? 4 : 1; return true;
        case cudaDevAttrNumaConfig: value = cudaDeviceNumaConfigNone; return true;
        case cudaDevAttrNumaId:
        case cudaDevAttrHostNumaId: value = -1; return true;
        default: break;
    }
    // clang-format on
    // The others say what a device lacks, and this one lacks it.
    value = 0;
    return attribute > 0 && attribute < cudaDevAttrMax;
}

}  // namespace warpsim::rt
