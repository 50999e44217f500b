// Both APIs in one process: the runtime's kernels, streams, events, memory and context are the driver's, and the other
// way round.
//
//     mixed FOLDER
#include <cuda_runtime.h>

#include <thread>

#include "driver.h"

#define RUNTIME(call)                                                                       \
    do {                                                                                    \
        const cudaError_t result_ = (call);                                                 \
        if (result_ != cudaSuccess) {                                                       \
            std::printf("line %d: %s is %s\n", __LINE__, #call, cudaGetErrorName(result_)); \
            std::exit(1);                                                                   \
        }                                                                                   \
    } while (0)

__global__ void scale(float *values, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= factor;
}

namespace {

// Before the runtime is used there is neither.
void the_runtime_makes_the_primary_context() {
    CUcontext context = nullptr, primary = nullptr;
    EXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    RUNTIME(cudaFree(nullptr));
    OK(cuCtxGetCurrent(&context));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK(context && context == primary);
    unsigned flags;
    int active = 0;
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active);  // the runtime still uses it
    OK(cuCtxSynchronize());
    // A thread that has not used the runtime has none yet.
    std::thread([&] {
        CUcontext mine = nullptr;
        OK(cuCtxGetCurrent(&mine));
        CHECK(!mine);
        RUNTIME(cudaSetDevice(0));
        OK(cuCtxGetCurrent(&mine));
        CHECK(mine == primary);
    }).join();
}

void kernels_of_either_in_streams_of_either() {
    constexpr int kCount = 500;
    const std::vector<float> ones(kCount, 1.0f);
    float *from_runtime = nullptr;
    RUNTIME(cudaMalloc(&from_runtime, kCount * sizeof(float)));
    RUNTIME(cudaMemcpy(from_runtime, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
    CUdeviceptr from_driver = upload(ones), sum = reinterpret_cast<CUdeviceptr>(from_runtime);
    cudaStream_t runtime_stream;
    CUstream driver_stream;
    cudaEvent_t event;
    RUNTIME(cudaStreamCreateWithFlags(&runtime_stream, cudaStreamNonBlocking));
    OK(cuStreamCreate(&driver_stream, CU_STREAM_NON_BLOCKING));
    RUNTIME(cudaEventCreate(&event));
    CUfunction add = function_of(load_ptx(), "add");
    int n = kCount;
    void *parameters[] = {&sum, &from_driver, &sum, &n};
    // 1 + 1, times 3 in the driver's stream, which waits for the runtime's event.
    OK(cuLaunchKernel(add, 4, 1, 1, 128, 1, 1, 0, runtime_stream, parameters, nullptr));
    RUNTIME(cudaEventRecord(event, runtime_stream));
    OK(cuStreamWaitEvent(driver_stream, event, 0));
    scale<<<4, 128, 0, driver_stream>>>(from_runtime, 3.0f, n);
    OK(cuStreamSynchronize(driver_stream));
    CHECK(download<float>(sum, kCount) == std::vector<float>(kCount, 6.0f));
    // The runtime's kernel through the driver, and the driver's through the runtime.
    cudaFunction_t function;
    RUNTIME(cudaGetFuncBySymbol(&function, reinterpret_cast<const void *>(&scale)));
    float factor = 0.5f;
    void *of_scale[] = {&from_runtime, &factor, &n};
    OK(cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, nullptr, of_scale, nullptr));
    RUNTIME(cudaLaunchKernel(reinterpret_cast<const void *>(add), dim3(4), dim3(128), parameters, 0, nullptr));
    std::vector<float> back(kCount);
    RUNTIME(cudaMemcpy(back.data(), from_runtime, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(back == std::vector<float>(kCount, 4.0f));
    EXPECT(cuLaunchKernel(reinterpret_cast<CUfunction>(reinterpret_cast<void *>(&scale)), 1, 1, 1, 1, 1, 1, 0, nullptr,
                          of_scale, nullptr),
           CUDA_ERROR_INVALID_HANDLE);  // a host function is no handle
    OK(cuMemFree(sum));
    RUNTIME(cudaFree(reinterpret_cast<void *>(from_driver)));
}

void errors_are_kept_apart() {
    CUdeviceptr address;
    EXPECT(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK(cudaGetLastError() == cudaSuccess);
    void *p = nullptr;
    CHECK(cudaMalloc(&p, size_t{1} << 50) == cudaErrorMemoryAllocation);
    OK(cuMemAlloc(&address, 16));
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    OK(cuMemFree(address));
}

void functions_through_the_runtime() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult status;
    RUNTIME(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status));
    CHECK(status == cudaDriverEntryPointSuccess && function == reinterpret_cast<void *>(&cuMemAlloc));
}

}  // namespace

int main(int, char **argv) {
    folder() = argv[1];
    the_runtime_makes_the_primary_context();
    kernels_of_either_in_streams_of_either();
    errors_are_kept_apart();
    functions_through_the_runtime();
    std::printf("passed\n");
    return 0;
}
