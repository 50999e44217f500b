// The runtime's functions for per-thread default streams. One row for each: how many parameters it has, its name, and
// what its symbol ends in.
#include "runtime/per_thread.h"

// Programs still call what the header calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define TWIN(n, function, suffix)                         \
    WARPSIM_TWIN(function, function##suffix);             \
    cudaError_t function##suffix(FORWARD_##n(function)) { \
        const warpsim::rt::PerThreadStream scope;         \
        return function(PASS_##n);                        \
    }

// clang-format off
TWIN(2, cudaEventRecord, _ptsz)
TWIN(3, cudaEventRecordWithFlags, _ptsz)
TWIN(2, cudaFreeAsync, _ptsz)
TWIN(2, cudaGraphLaunch, _ptsz)
TWIN(2, cudaGraphUpload, _ptsz)
TWIN(6, cudaLaunchCooperativeKernel, _ptsz)
TWIN(3, cudaLaunchHostFunc, _ptsz)
TWIN(6, cudaLaunchKernel, _ptsz)
TWIN(3, cudaLaunchKernelExC, _ptsz)
TWIN(3, cudaMallocAsync, _ptsz)
TWIN(4, cudaMallocFromPoolAsync, _ptsz)
TWIN(5, cudaMemPrefetchAsync, _ptsz)
TWIN(4, cudaMemcpy, _ptds)
TWIN(7, cudaMemcpy2D, _ptds)
TWIN(9, cudaMemcpy2DArrayToArray, _ptds)
TWIN(8, cudaMemcpy2DAsync, _ptsz)
TWIN(8, cudaMemcpy2DFromArray, _ptds)
TWIN(9, cudaMemcpy2DFromArrayAsync, _ptsz)
TWIN(8, cudaMemcpy2DToArray, _ptds)
TWIN(9, cudaMemcpy2DToArrayAsync, _ptsz)
TWIN(1, cudaMemcpy3D, _ptds)
TWIN(2, cudaMemcpy3DAsync, _ptsz)
TWIN(1, cudaMemcpy3DPeer, _ptds)
TWIN(2, cudaMemcpy3DPeerAsync, _ptsz)
TWIN(8, cudaMemcpyArrayToArray, _ptds)
TWIN(5, cudaMemcpyAsync, _ptsz)
TWIN(6, cudaMemcpyFromArray, _ptds)
TWIN(7, cudaMemcpyFromArrayAsync, _ptsz)
TWIN(5, cudaMemcpyFromSymbol, _ptds)
TWIN(6, cudaMemcpyFromSymbolAsync, _ptsz)
TWIN(6, cudaMemcpyToArray, _ptds)
TWIN(7, cudaMemcpyToArrayAsync, _ptsz)
TWIN(5, cudaMemcpyToSymbol, _ptds)
TWIN(6, cudaMemcpyToSymbolAsync, _ptsz)
TWIN(3, cudaMemset, _ptds)
TWIN(5, cudaMemset2D, _ptds)
TWIN(6, cudaMemset2DAsync, _ptsz)
TWIN(3, cudaMemset3D, _ptds)
TWIN(4, cudaMemset3DAsync, _ptsz)
TWIN(4, cudaMemsetAsync, _ptsz)
TWIN(4, cudaStreamAddCallback, _ptsz)
TWIN(4, cudaStreamAttachMemAsync, _ptsz)
TWIN(2, cudaStreamBeginCapture, _ptsz)
TWIN(2, cudaStreamCopyAttributes, _ptsz)
TWIN(2, cudaStreamEndCapture, _ptsz)
TWIN(3, cudaStreamGetAttribute, _ptsz)
TWIN(7, cudaStreamGetCaptureInfo, _ptsz)
TWIN(2, cudaStreamGetDevice, _ptsz)
TWIN(2, cudaStreamGetFlags, _ptsz)
TWIN(2, cudaStreamGetId, _ptsz)
TWIN(2, cudaStreamGetPriority, _ptsz)
TWIN(2, cudaStreamIsCapturing, _ptsz)
TWIN(1, cudaStreamQuery, _ptsz)
TWIN(3, cudaStreamSetAttribute, _ptsz)
TWIN(1, cudaStreamSynchronize, _ptsz)
TWIN(3, cudaStreamWaitEvent, _ptsz)
// clang-format on
