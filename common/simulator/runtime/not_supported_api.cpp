// What the runtime library exports and the simulator lacks: interoperation, and the rarer parts of arrays,
// graphs and pools. A program that needs one of them learns which.
//
// The toolkit's prototypes stay out of this file: the arguments are not looked at.
#include <string>

#include "runtime/not_supported.h"

#define WARPSIM_NOT_SUPPORTED(X)                          \
    X(__cudaGetProcAddress)                               \
    X(__cudaRegisterUnifiedTable)                         \
    X(cudaArrayGetMemoryRequirements)                     \
    X(cudaArrayGetPlane)                                  \
    X(cudaArrayGetSparseProperties)                       \
    X(cudaDestroyExternalMemory)                          \
    X(cudaDestroyExternalSemaphore)                       \
    X(cudaDeviceFlushGPUDirectRDMAWrites)                 \
    X(cudaDeviceGetHostAtomicCapabilities)                \
    X(cudaDeviceGetNvSciSyncAttributes)                   \
    X(cudaDeviceGetP2PAtomicCapabilities)                 \
    X(cudaDeviceRegisterAsyncNotification)                \
    X(cudaDeviceUnregisterAsyncNotification)              \
    X(cudaEGLStreamConsumerAcquireFrame)                  \
    X(cudaEGLStreamConsumerConnect)                       \
    X(cudaEGLStreamConsumerConnectWithFlags)              \
    X(cudaEGLStreamConsumerDisconnect)                    \
    X(cudaEGLStreamConsumerReleaseFrame)                  \
    X(cudaEGLStreamProducerConnect)                       \
    X(cudaEGLStreamProducerDisconnect)                    \
    X(cudaEGLStreamProducerPresentFrame)                  \
    X(cudaEGLStreamProducerReturnFrame)                   \
    X(cudaEventCreateFromEGLSync)                         \
    X(cudaExternalMemoryGetMappedBuffer)                  \
    X(cudaExternalMemoryGetMappedMipmappedArray)          \
    X(cudaGLGetDevices)                                   \
    X(cudaGLMapBufferObject)                              \
    X(cudaGLMapBufferObjectAsync)                         \
    X(cudaGLRegisterBufferObject)                         \
    X(cudaGLSetBufferObjectMapFlags)                      \
    X(cudaGLSetGLDevice)                                  \
    X(cudaGLUnmapBufferObject)                            \
    X(cudaGLUnmapBufferObjectAsync)                       \
    X(cudaGLUnregisterBufferObject)                       \
    X(cudaGetExportTable)                                 \
    X(cudaGetTextureObjectResourceViewDesc)               \
    X(cudaGraphAddExternalSemaphoresSignalNode)           \
    X(cudaGraphAddExternalSemaphoresWaitNode)             \
    X(cudaGraphAddMemcpyNodeFromSymbol)                   \
    X(cudaGraphAddMemcpyNodeToSymbol)                     \
    X(cudaGraphChildGraphNodeGetGraph)                    \
    X(cudaGraphConditionalHandleCreate)                   \
    X(cudaGraphDebugDotPrint)                             \
    X(cudaGraphEventRecordNodeGetEvent)                   \
    X(cudaGraphEventRecordNodeSetEvent)                   \
    X(cudaGraphEventWaitNodeGetEvent)                     \
    X(cudaGraphEventWaitNodeSetEvent)                     \
    X(cudaGraphExecChildGraphNodeSetParams)               \
    X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
    X(cudaGraphExecExternalSemaphoresWaitNodeSetParams)   \
    X(cudaGraphExecMemcpyNodeSetParamsFromSymbol)         \
    X(cudaGraphExecMemcpyNodeSetParamsToSymbol)           \
    X(cudaGraphExternalSemaphoresSignalNodeGetParams)     \
    X(cudaGraphExternalSemaphoresSignalNodeSetParams)     \
    X(cudaGraphExternalSemaphoresWaitNodeGetParams)       \
    X(cudaGraphExternalSemaphoresWaitNodeSetParams)       \
    X(cudaGraphHostNodeGetParams)                         \
    X(cudaGraphInstantiateWithParams)                     \
    X(cudaGraphInstantiateWithParams_ptsz)                \
    X(cudaGraphKernelNodeCopyAttributes)                  \
    X(cudaGraphKernelNodeGetAttribute)                    \
    X(cudaGraphKernelNodeGetParams)                       \
    X(cudaGraphKernelNodeSetAttribute)                    \
    X(cudaGraphMemcpyNodeGetParams)                       \
    X(cudaGraphMemcpyNodeSetParamsFromSymbol)             \
    X(cudaGraphMemcpyNodeSetParamsToSymbol)               \
    X(cudaGraphMemsetNodeGetParams)                       \
    X(cudaGraphNodeFindInClone)                           \
    X(cudaGraphNodeGetEnabled)                            \
    X(cudaGraphNodeSetEnabled)                            \
    X(cudaGraphReleaseUserObject)                         \
    X(cudaGraphRemoveDependencies)                        \
    X(cudaGraphRetainUserObject)                          \
    X(cudaGraphicsEGLRegisterImage)                       \
    X(cudaGraphicsGLRegisterBuffer)                       \
    X(cudaGraphicsGLRegisterImage)                        \
    X(cudaGraphicsMapResources)                           \
    X(cudaGraphicsResourceGetMappedEglFrame)              \
    X(cudaGraphicsResourceGetMappedMipmappedArray)        \
    X(cudaGraphicsResourceGetMappedPointer)               \
    X(cudaGraphicsResourceSetMapFlags)                    \
    X(cudaGraphicsSubResourceGetMappedArray)              \
    X(cudaGraphicsUnmapResources)                         \
    X(cudaGraphicsUnregisterResource)                     \
    X(cudaGraphicsVDPAURegisterOutputSurface)             \
    X(cudaGraphicsVDPAURegisterVideoSurface)              \
    X(cudaImportExternalMemory)                           \
    X(cudaImportExternalSemaphore)                        \
    X(cudaLibraryGetUnifiedFunction)                      \
    X(cudaLogsCurrent)                                    \
    X(cudaLogsDumpToFile)                                 \
    X(cudaLogsDumpToMemory)                               \
    X(cudaLogsRegisterCallback)                           \
    X(cudaLogsUnregisterCallback)                         \
    X(cudaMemDiscardAndPrefetchBatchAsync)                \
    X(cudaMemDiscardAndPrefetchBatchAsync_ptsz)           \
    X(cudaMemDiscardBatchAsync)                           \
    X(cudaMemDiscardBatchAsync_ptsz)                      \
    X(cudaMemGetDefaultMemPool)                           \
    X(cudaMemGetMemPool)                                  \
    X(cudaMemPoolExportPointer)                           \
    X(cudaMemPoolExportToShareableHandle)                 \
    X(cudaMemPoolImportFromShareableHandle)               \
    X(cudaMemPoolImportPointer)                           \
    X(cudaMemPrefetchBatchAsync)                          \
    X(cudaMemPrefetchBatchAsync_ptsz)                     \
    X(cudaMemRangeGetAttribute)                           \
    X(cudaMemRangeGetAttributes)                          \
    X(cudaMemSetMemPool)                                  \
    X(cudaMemcpy3DBatchAsync)                             \
    X(cudaMemcpy3DBatchAsync_ptsz)                        \
    X(cudaMemcpyBatchAsync)                               \
    X(cudaMemcpyBatchAsync_ptsz)                          \
    X(cudaMipmappedArrayGetMemoryRequirements)            \
    X(cudaMipmappedArrayGetSparseProperties)              \
    X(cudaSignalExternalSemaphoresAsync)                  \
    X(cudaSignalExternalSemaphoresAsync_ptsz)             \
    X(cudaStreamBeginCaptureToGraph)                      \
    X(cudaStreamBeginCaptureToGraph_ptsz)                 \
    X(cudaStreamUpdateCaptureDependencies)                \
    X(cudaStreamUpdateCaptureDependencies_ptsz)           \
    X(cudaUserObjectCreate)                               \
    X(cudaUserObjectRelease)                              \
    X(cudaUserObjectRetain)                               \
    X(cudaVDPAUGetDevice)                                 \
    X(cudaVDPAUSetVDPAUDevice)                            \
    X(cudaWaitExternalSemaphoresAsync)                    \
    X(cudaWaitExternalSemaphoresAsync_ptsz)

#define WARPSIM_DEFINE(name)                                       \
    extern "C" __attribute__((visibility("default"))) int name() { \
        return warpsim::rt::not_supported(#name);                  \
    }

WARPSIM_NOT_SUPPORTED(WARPSIM_DEFINE)
