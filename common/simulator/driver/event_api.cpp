// Events: cuEvent*.
#include "driver/call.h"
#include "driver/contexts.h"

using namespace warpsim;
using namespace warpsim::driver;

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    return call([&] {
        check(cudaEventCreateWithFlags(event, flags));
        own(Resource::event, *event);
        return CUDA_SUCCESS;
    });
}

CUresult cuEventDestroy(CUevent event) {
    return call([&] {
        check(cudaEventDestroy(event));
        disown(event);
        return CUDA_SUCCESS;
    });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return call([&] { return cudaEventRecord(event, stream); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return call([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}

CUresult cuEventQuery(CUevent event) {
    return call([&] { return cudaEventQuery(event); });
}

CUresult cuEventSynchronize(CUevent event) {
    return call([&] { return cudaEventSynchronize(event); });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    return call([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}
