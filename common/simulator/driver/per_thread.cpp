// The entries that programs built with --default-stream per-thread call: the same functions, with another meaning of
// stream 0. One row for each: how many parameters it has, its name, and what its symbol ends in.
#include "runtime/per_thread.h"
#include "driver/call.h"

using namespace warpsim::driver;

// The name is a macro of the header's, which is its symbol.
#define TWIN(n, function, suffix) TWIN_OF(n, function, suffix)
#define TWIN_OF(n, function, suffix)                                                                    \
    extern "C" __attribute__((visibility("default"))) CUresult function##suffix(FORWARD_##n(function)); \
    CUresult function##suffix(FORWARD_##n(function)) {                                                  \
        const warpsim::rt::PerThreadStream scope;                                                       \
        return function(PASS_##n);                                                                      \
    }

// clang-format off
TWIN(2, cuEventRecord, _ptsz)
TWIN(3, cuEventRecordWithFlags, _ptsz)
TWIN(2, cuGraphLaunch, _ptsz)
TWIN(2, cuGraphUpload, _ptsz)
TWIN(10, cuLaunchCooperativeKernel, _ptsz)
TWIN(3, cuLaunchHostFunc, _ptsz)
TWIN(11, cuLaunchKernel, _ptsz)
TWIN(4, cuLaunchKernelEx, _ptsz)
TWIN(3, cuMemAllocAsync, _ptsz)
TWIN(4, cuMemAllocFromPoolAsync, _ptsz)
TWIN(2, cuMemFreeAsync, _ptsz)
TWIN(5, cuMemPrefetchAsync, _ptsz)
TWIN(3, cuMemcpy, _ptds)
TWIN(1, cuMemcpy2D, _ptds)
TWIN(2, cuMemcpy2DAsync, _ptsz)
TWIN(1, cuMemcpy2DUnaligned, _ptds)
TWIN(1, cuMemcpy3D, _ptds)
TWIN(2, cuMemcpy3DAsync, _ptsz)
TWIN(1, cuMemcpy3DPeer, _ptds)
TWIN(2, cuMemcpy3DPeerAsync, _ptsz)
TWIN(4, cuMemcpyAsync, _ptsz)
TWIN(5, cuMemcpyAtoA, _ptds)
TWIN(4, cuMemcpyAtoD, _ptds)
TWIN(4, cuMemcpyAtoH, _ptds)
TWIN(5, cuMemcpyAtoHAsync, _ptsz)
TWIN(4, cuMemcpyDtoA, _ptds)
TWIN(3, cuMemcpyDtoD, _ptds)
TWIN(4, cuMemcpyDtoDAsync, _ptsz)
TWIN(3, cuMemcpyDtoH, _ptds)
TWIN(4, cuMemcpyDtoHAsync, _ptsz)
TWIN(4, cuMemcpyHtoA, _ptds)
TWIN(5, cuMemcpyHtoAAsync, _ptsz)
TWIN(3, cuMemcpyHtoD, _ptds)
TWIN(4, cuMemcpyHtoDAsync, _ptsz)
TWIN(5, cuMemcpyPeer, _ptds)
TWIN(6, cuMemcpyPeerAsync, _ptsz)
TWIN(3, cuMemsetD16, _ptds)
TWIN(4, cuMemsetD16Async, _ptsz)
TWIN(5, cuMemsetD2D16, _ptds)
TWIN(6, cuMemsetD2D16Async, _ptsz)
TWIN(5, cuMemsetD2D32, _ptds)
TWIN(6, cuMemsetD2D32Async, _ptsz)
TWIN(5, cuMemsetD2D8, _ptds)
TWIN(6, cuMemsetD2D8Async, _ptsz)
TWIN(3, cuMemsetD32, _ptds)
TWIN(4, cuMemsetD32Async, _ptsz)
TWIN(3, cuMemsetD8, _ptds)
TWIN(4, cuMemsetD8Async, _ptsz)
TWIN(4, cuStreamAddCallback, _ptsz)
TWIN(4, cuStreamAttachMemAsync, _ptsz)
TWIN(2, cuStreamBeginCapture, _ptsz)
TWIN(2, cuStreamCopyAttributes, _ptsz)
TWIN(2, cuStreamEndCapture, _ptsz)
TWIN(3, cuStreamGetAttribute, _ptsz)
TWIN(7, cuStreamGetCaptureInfo, _ptsz)
TWIN(2, cuStreamGetCtx, _ptsz)
TWIN(2, cuStreamGetDevice, _ptsz)
TWIN(2, cuStreamGetFlags, _ptsz)
TWIN(2, cuStreamGetId, _ptsz)
TWIN(2, cuStreamGetPriority, _ptsz)
TWIN(2, cuStreamIsCapturing, _ptsz)
TWIN(1, cuStreamQuery, _ptsz)
TWIN(3, cuStreamSetAttribute, _ptsz)
TWIN(1, cuStreamSynchronize, _ptsz)
TWIN(3, cuStreamWaitEvent, _ptsz)
TWIN(4, cuStreamWriteValue32, _ptsz)
// clang-format on
