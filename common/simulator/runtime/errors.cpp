// Names and texts of the runtime's error codes.
#include <algorithm>
#include <iterator>

#include "runtime/cuda_api.h"

namespace {

struct Entry {
    int code;
    const char *name, *text;
};

// In ascending order of code.
constexpr Entry kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {4, "cudaErrorCudartUnloading", "the runtime is shutting down"},
    {5, "cudaErrorProfilerDisabled", "the profiler is disabled"},
    {6, "cudaErrorProfilerNotInitialized", "the profiler is not initialized"},
    {7, "cudaErrorProfilerAlreadyStarted", "the profiler has been started already"},
    {8, "cudaErrorProfilerAlreadyStopped", "the profiler has been stopped already"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {16, "cudaErrorInvalidHostPointer", "invalid host pointer"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {18, "cudaErrorInvalidTexture", "invalid texture reference"},
    {19, "cudaErrorInvalidTextureBinding", "texture is not bound"},
    {20, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {22, "cudaErrorAddressOfConstant", "address of a constant was taken"},
    {23, "cudaErrorTextureFetchFailed", "texture fetch failed"},
    {24, "cudaErrorTextureNotBound", "texture is not bound to a pointer"},
    {25, "cudaErrorSynchronizationError", "synchronization failed"},
    {26, "cudaErrorInvalidFilterSetting", "linear filtering is not possible for this type"},
    {27, "cudaErrorInvalidNormSetting", "normalized reads are not possible for this type"},
    {28, "cudaErrorMixedDeviceExecution", "device and emulation code cannot be mixed"},
    {31, "cudaErrorNotYetImplemented", "not implemented yet"},
    {32, "cudaErrorMemoryValueTooLarge", "memory size or pointer value is too large"},
    {34, "cudaErrorStubLibrary", "a stub library was loaded in place of the driver"},
    {35, "cudaErrorInsufficientDriver", "the driver is too old for this runtime"},
    {36, "cudaErrorCallRequiresNewerDriver", "this call needs a newer driver"},
    {37, "cudaErrorInvalidSurface", "invalid surface reference"},
    {43, "cudaErrorDuplicateVariableName", "several global variables share one name"},
    {44, "cudaErrorDuplicateTextureName", "several textures share one name"},
    {45, "cudaErrorDuplicateSurfaceName", "several surfaces share one name"},
    {46, "cudaErrorDevicesUnavailable", "all devices are busy or unavailable"},
    {49, "cudaErrorIncompatibleDriverContext", "the current driver context is incompatible with this runtime"},
    {52, "cudaErrorMissingConfiguration", "a kernel launch without a configuration"},
    {53, "cudaErrorPriorLaunchFailure", "an earlier launch failed"},
    {65, "cudaErrorLaunchMaxDepthExceeded", "launches are nested too deeply"},
    {66, "cudaErrorLaunchFileScopedTex", "the kernel uses file-scoped textures"},
    {67, "cudaErrorLaunchFileScopedSurf", "the kernel uses file-scoped surfaces"},
    {68, "cudaErrorSyncDepthExceeded", "device-side synchronization is nested too deeply"},
    {69, "cudaErrorLaunchPendingCountExceeded", "too many device-side launches are pending"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {102, "cudaErrorDeviceNotLicensed", "the device has no licence for this"},
    {103, "cudaErrorSoftwareValidityNotEstablished", "the software's integrity could not be established"},
    {127, "cudaErrorStartupFailure", "the runtime failed to start"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {205, "cudaErrorMapBufferObjectFailed", "mapping of a buffer object failed"},
    {206, "cudaErrorUnmapBufferObjectFailed", "unmapping of a buffer object failed"},
    {207, "cudaErrorArrayIsMapped", "the array is mapped"},
    {208, "cudaErrorAlreadyMapped", "the resource is mapped already"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {210, "cudaErrorAlreadyAcquired", "the resource is acquired already"},
    {211, "cudaErrorNotMapped", "the resource is not mapped"},
    {212, "cudaErrorNotMappedAsArray", "the resource is not mapped as an array"},
    {213, "cudaErrorNotMappedAsPointer", "the resource is not mapped as a pointer"},
    {214, "cudaErrorECCUncorrectable", "an uncorrectable memory error"},
    {215, "cudaErrorUnsupportedLimit", "this limit is not supported"},
    {216, "cudaErrorDeviceAlreadyInUse", "another thread or process uses the device exclusively"},
    {217, "cudaErrorPeerAccessUnsupported", "peer access is not possible between these devices"},
    {218, "cudaErrorInvalidPtx", "the PTX could not be compiled"},
    {219, "cudaErrorInvalidGraphicsContext", "invalid graphics context"},
    {220, "cudaErrorNvlinkUncorrectable", "an uncorrectable NVLink error"},
    {221, "cudaErrorJitCompilerNotFound", "no PTX compiler was found"},
    {222, "cudaErrorUnsupportedPtxVersion", "the PTX is of a version that is not supported"},
    {223, "cudaErrorJitCompilationDisabled", "PTX compilation is switched off"},
    {224, "cudaErrorUnsupportedExecAffinity", "this execution affinity is not supported"},
    {225, "cudaErrorUnsupportedDevSideSync", "device-side synchronization is not supported"},
    {226, "cudaErrorContained", "an error that was contained"},
    {300, "cudaErrorInvalidSource", "invalid device kernel source"},
    {301, "cudaErrorFileNotFound", "file not found"},
    {302, "cudaErrorSharedObjectSymbolNotFound", "a symbol of a shared object was not found"},
    {303, "cudaErrorSharedObjectInitFailed", "initialization of a shared object failed"},
    {304, "cudaErrorOperatingSystem", "a call to the operating system failed"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "the resource is in the wrong state for this"},
    {402, "cudaErrorLossyQuery", "the query cannot be answered without loss"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch took too long and was ended"},
    {703, "cudaErrorLaunchIncompatibleTexturing", "the launch uses an incompatible texturing mode"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is enabled already"},
    {705, "cudaErrorPeerAccessNotEnabled", "peer access is not enabled"},
    {708, "cudaErrorSetOnActiveProcess", "too late: the device is in use"},
    {709, "cudaErrorContextIsDestroyed", "the context is destroyed"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {711, "cudaErrorTooManyPeers", "too many peers"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "the host memory is registered already"},
    {713, "cudaErrorHostMemoryNotRegistered", "the host memory is not registered"},
    {714, "cudaErrorHardwareStackError", "an error in the device's call stack"},
    {715, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {717, "cudaErrorInvalidAddressSpace", "an instruction met an address of the wrong space"},
    {718, "cudaErrorInvalidPc", "invalid program counter"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in a cooperative launch"},
    {721, "cudaErrorTensorMemoryLeak", "a kernel ended without freeing its tensor memory"},
    {800, "cudaErrorNotPermitted", "operation not permitted"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {802, "cudaErrorSystemNotReady", "the system is not ready"},
    {803, "cudaErrorSystemDriverMismatch", "driver and system software do not match"},
    {804, "cudaErrorCompatNotSupportedOnDevice", "forward compatibility is not possible on this device"},
    {805, "cudaErrorMpsConnectionFailed", "no connection to the MPS server"},
    {806, "cudaErrorMpsRpcFailure", "a call to the MPS server failed"},
    {807, "cudaErrorMpsServerNotReady", "the MPS server is not ready"},
    {808, "cudaErrorMpsMaxClientsReached", "the MPS server has all the clients that it takes"},
    {809, "cudaErrorMpsMaxConnectionsReached", "the MPS server has all the connections that it takes"},
    {810, "cudaErrorMpsClientTerminated", "the MPS client was ended by its server"},
    {811, "cudaErrorCdpNotSupported", "dynamic parallelism is not supported"},
    {812, "cudaErrorCdpVersionMismatch", "versions of dynamic parallelism differ"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge", "two captures would merge"},
    {903, "cudaErrorStreamCaptureUnmatched", "the capture was not begun in this stream"},
    {904, "cudaErrorStreamCaptureUnjoined", "a stream of the capture was not joined to its first one"},
    {905, "cudaErrorStreamCaptureIsolation", "a dependency would cross the capture's edge"},
    {906, "cudaErrorStreamCaptureImplicit", "an implicit dependency on the legacy stream during capture"},
    {907, "cudaErrorCapturedEvent", "the event was last recorded in a capturing stream"},
    {908, "cudaErrorStreamCaptureWrongThread", "the capture was begun by another thread"},
    {909, "cudaErrorTimeout", "the wait ended before its time was up"},
    {910, "cudaErrorGraphExecUpdateFailure", "the graph's update does not fit what was instantiated"},
    {911, "cudaErrorExternalDevice", "an error of an external device"},
    {912, "cudaErrorInvalidClusterSize", "invalid cluster size"},
    {913, "cudaErrorFunctionNotLoaded", "the function is not loaded"},
    {914, "cudaErrorInvalidResourceType", "invalid resource type"},
    {915, "cudaErrorInvalidResourceConfiguration", "invalid resource configuration"},
    {999, "cudaErrorUnknown", "unknown error"},
    {10000, "cudaErrorApiFailureBase", "failure of the API"},
};

const Entry *find(cudaError_t code) {
    const Entry *end = std::end(kErrors);
    const Entry *entry = std::lower_bound(std::begin(kErrors), end, static_cast<int>(code),
                                          [](const Entry &e, int wanted) { return e.code < wanted; });
    return entry != end && entry->code == static_cast<int>(code) ? entry : nullptr;
}

}  // namespace

const char *cudaGetErrorName(cudaError_t code) {
    const Entry *entry = find(code);
    return entry ? entry->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code) {
    const Entry *entry = find(code);
    return entry ? entry->text : "unrecognized error code";
}
