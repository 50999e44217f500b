// The runtime API beyond streams, one case per run: runtime_api CASE.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "expect.h"

__device__ int counters[4] = {1, 2, 3, 4};
__constant__ float table[8];
__managed__ int managed_value = 5;
__managed__ int *managed_pointer;

struct Mixed {
    char c;
    double d;
    short s[3];
};

__global__ void arguments(char a, double b, short c, Mixed m, float *out) {
    out[0] = a + float(b) + c + m.c + float(m.d) + m.s[0] + m.s[1] + m.s[2];
}
__global__ void use_symbols(float *out) {
    out[0] = counters[threadIdx.x] + table[threadIdx.x];
    managed_value += 1;
    *managed_pointer += 10;
    counters[3] = 99;
}
__global__ void set(int *p, int i, int value) {
    p[i] = value;
}
__global__ void count(int *p) {
    atomicAdd(p, 1);
}
__global__ void __launch_bounds__(64) small(int *p) {
    *p = blockDim.x;
}
__global__ void uses_shared(int *p) {
    __shared__ int fixed[256];
    extern __shared__ int dynamic[];
    fixed[threadIdx.x] = dynamic[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = fixed[255 - threadIdx.x] + dynamic[threadIdx.x];
}
__global__ void grid_sum(int *p) {
    atomicAdd(&p[0], 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) p[1 + blockIdx.x] = p[0];
}
__global__ void failed_assert() {
    asm("trap;");
}

template <class T>
static T *device(size_t count) {
    T *p;
    OK(cudaMalloc(&p, count * sizeof(T)));
    return p;
}

static void properties() {
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    int count = 0, device = -1, driver = 0, runtime = 0, value = 0;
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDevice(&device));
    CHECK(count == 1 && device == 0);
    FAILS(cudaSetDevice(1), cudaErrorInvalidDevice);
    FAILS(cudaGetDeviceProperties(&p, 1), cudaErrorInvalidDevice);
    OK(cudaDriverGetVersion(&driver));
    OK(cudaRuntimeGetVersion(&runtime));
    CHECK(driver >= 13000 && runtime >= 13000);
    const struct {
        cudaDeviceAttr attribute;
        long long expected;
    } same[] = {{cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
                {cudaDevAttrMaxSharedMemoryPerBlock, (long long)p.sharedMemPerBlock},
                {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)p.sharedMemPerBlockOptin},
                {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (long long)p.sharedMemPerMultiprocessor},
                {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
                {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
                {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
                {cudaDevAttrComputeCapabilityMajor, p.major},
                {cudaDevAttrComputeCapabilityMinor, p.minor},
                {cudaDevAttrL2CacheSize, p.l2CacheSize},
                {cudaDevAttrWarpSize, 32},
                {cudaDevAttrMaxGridDimY, 65535},
                {cudaDevAttrCooperativeLaunch, 1}};
    for (const auto &s : same) {
        OK(cudaDeviceGetAttribute(&value, s.attribute, 0));
        CHECK(value == s.expected);
    }
    FAILS(cudaDeviceGetAttribute(&value, cudaDeviceAttr(100000), 0), cudaErrorInvalidValue);
    std::printf("sm_%d%d %d SMs %zu bytes opt-in\n", p.major, p.minor, p.multiProcessorCount, p.sharedMemPerBlockOptin);
}

static void errors() {
    CHECK(!std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
    CHECK(!std::strcmp(cudaGetErrorString(cudaSuccess), "no error"));
    CHECK(!std::strcmp(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code"));
    FAILS(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaSuccess);
    OK(cudaFree(nullptr));
}

static void kernel_arguments() {
    float *d = device<float>(1), h = 0;
    arguments<<<1, 1>>>(1, 2.5, -3, Mixed{4, 8.25, {16, 32, 64}}, d);
    OK(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
    CHECK(h == 1 + 2.5f - 3 + 4 + 8.25f + 16 + 32 + 64);
}

static void symbols() {
    float values[8] = {0.5f}, *d = device<float>(1), h = 0;
    OK(cudaMemcpyToSymbol(table, values, sizeof values));
    CHECK(managed_value == 5 && !managed_pointer);
    managed_pointer = &managed_value;
    use_symbols<<<1, 1>>>(d);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
    CHECK(h == 1.5f);
    CHECK(managed_value == 16);
    CHECK(managed_pointer == &managed_value);
    int back[4];
    OK(cudaMemcpyFromSymbol(back, counters, sizeof back));
    CHECK(back[0] == 1 && back[3] == 99);
    int two = 0;
    OK(cudaMemcpyFromSymbol(&two, counters, sizeof two, sizeof(int)));
    CHECK(two == 2);
    FAILS(cudaMemcpyFromSymbol(back, counters, sizeof back, sizeof(int)), cudaErrorInvalidValue);
    FAILS(cudaMemcpyToSymbol(back, back, 4), cudaErrorInvalidSymbol);
    void *address = nullptr;
    size_t bytes = 0;
    OK(cudaGetSymbolAddress(&address, counters));
    OK(cudaGetSymbolSize(&bytes, counters));
    CHECK(address && bytes == sizeof counters);
    set<<<1, 1>>>(static_cast<int *>(address), 2, 42);
    OK(cudaMemcpyFromSymbol(back, counters, sizeof back));
    CHECK(back[2] == 42);
    CHECK(cudaGetSymbolSize(&bytes, &bytes) == cudaErrorInvalidSymbol);
}

static void copies_are_bounds_checked() {
    int *d = device<int>(10);
    std::vector<int> h(20);
    OK(cudaMemcpy(d, h.data(), 40, cudaMemcpyHostToDevice));
    FAILS(cudaMemcpy(d, h.data(), 41, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(d + 1, h.data(), 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(h.data(), d - 1, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    FAILS(cudaMemset(d, 0, 41), cudaErrorInvalidValue);
    FAILS(cudaMemset(h.data(), 0, 4), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(h.data(), d, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(d, h.data(), 4, cudaMemcpyKind(77)), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpy(d, nullptr, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    OK(cudaMemcpy(d, nullptr, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(d, h.data(), 40, cudaMemcpyDefault));
    OK(cudaFree(d));
    FAILS(cudaMemcpy(h.data(), d, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    FAILS(cudaFree(d), cudaErrorInvalidValue);
    FAILS(cudaFree(h.data()), cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
}

static void pitched_copies() {
    constexpr int kWidth = 5, kHeight = 3, kDepth = 2;
    char host[kDepth][kHeight][kWidth], back[kDepth][kHeight][kWidth] = {};
    for (size_t i = 0; i < sizeof host; ++i) (&host[0][0][0])[i] = char(i + 1);
    char *d;
    size_t pitch;
    OK(cudaMallocPitch(&d, &pitch, kWidth, kHeight));
    CHECK(pitch >= kWidth && pitch % 32 == 0);
    OK(cudaMemcpy2D(d, pitch, host, kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(d + pitch, pitch, 7, 2, 2));
    OK(cudaMemcpy2D(back, kWidth, d, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
    CHECK(back[0][0][0] == 1 && back[0][1][0] == 7 && back[0][1][1] == 7 && back[0][1][2] == 8 && back[0][2][4] == 15);
    FAILS(cudaMemcpy2D(back, kWidth, d, pitch, kWidth + 1, kHeight, cudaMemcpyDeviceToHost),
          cudaErrorInvalidPitchValue);
    FAILS(cudaMemcpy2D(d, pitch, host, kWidth, kWidth, kHeight + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    cudaPitchedPtr box;
    OK(cudaMalloc3D(&box, make_cudaExtent(kWidth, kHeight, kDepth)));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(host, kWidth, kWidth, kHeight);
    p.dstPtr = box;
    p.extent = make_cudaExtent(kWidth, kHeight, kDepth);
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
    OK(cudaMemset3D(box, 9, make_cudaExtent(1, 1, kDepth)));
    cudaMemcpy3DParms q = {};
    q.srcPtr = box;
    q.srcPos = make_cudaPos(0, 0, 1);
    q.dstPtr = make_cudaPitchedPtr(back, kWidth, kWidth, kHeight);
    q.extent = make_cudaExtent(kWidth, kHeight, 1);
    q.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&q));
    CHECK(back[0][0][0] == 9 && !std::memcmp(&back[0][0][1], &host[1][0][1], kWidth * kHeight - 1));
}

static void pointer_attributes() {
    int *d = device<int>(4), *m, *h, local;
    OK(cudaMallocManaged(&m, 16));
    OK(cudaMallocHost(&h, 16));
    cudaPointerAttributes a;
    OK(cudaPointerGetAttributes(&a, d + 1));
    CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == d + 1 && !a.hostPointer);
    OK(cudaPointerGetAttributes(&a, m));
    CHECK(a.type == cudaMemoryTypeManaged && a.devicePointer == m && a.hostPointer == m);
    OK(cudaPointerGetAttributes(&a, h));
    CHECK(a.type == cudaMemoryTypeHost);
    OK(cudaPointerGetAttributes(&a, &local));
    CHECK(a.type == cudaMemoryTypeUnregistered);
    void *mapped;
    OK(cudaHostGetDevicePointer(&mapped, h, 0));
    set<<<1, 1>>>(static_cast<int *>(mapped), 3, 8);
    OK(cudaDeviceSynchronize());
    CHECK(h[3] == 8);
    FAILS(cudaHostGetDevicePointer(&mapped, &local, 0), cudaErrorInvalidValue);
    OK(cudaFreeHost(h));
    OK(cudaFree(m));
    FAILS(cudaFreeHost(d), cudaErrorInvalidValue);
}

static void memory_runs_out() {
    size_t free = 0, total = 0;
    OK(cudaMemGetInfo(&free, &total));
    CHECK(free <= total);
    char *d = nullptr;
    FAILS(cudaMalloc(&d, free + 1), cudaErrorMemoryAllocation);
    CHECK(d == nullptr);
    FAILS(cudaMalloc(&d, ~size_t{0}), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&d, free));
    FAILS(cudaMalloc(&d, 1), cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    OK(cudaDeviceSynchronize());
    std::printf("%zu\n", total);
}

static void launch_limits() {
    int *d = device<int>(1024);
    set<<<1, 1025>>>(d, 0, 0);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<0, 1>>>(d, 0, 0);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<dim3(1, 65536), 1>>>(d, 0, 0);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<1, dim3(1, 1, 65)>>>(d, 0, 0);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    small<<<1, 65>>>(d);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    small<<<1, 64>>>(d);
    CHECK(cudaGetLastError() == cudaSuccess);
    uses_shared<<<1, 256, 48 * 1024>>>(d);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    uses_shared<<<1, 256, 47 * 1024>>>(d);
    CHECK(cudaGetLastError() == cudaSuccess);
    OK(cudaDeviceSynchronize());
    int h[256];
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int value : h) CHECK(value == 255);
}

static void function_attributes() {
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, uses_shared));
    CHECK(a.sharedSizeBytes == 1024 && a.maxThreadsPerBlock == 1024 && a.ptxVersion == 80);
    CHECK(a.numRegs >= 16 && a.numRegs <= 64);
    CHECK(a.maxDynamicSharedSizeBytes == 47 * 1024);
    OK(cudaFuncGetAttributes(&a, small));
    CHECK(a.maxThreadsPerBlock == 64);
    int optin = 0;
    OK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    FAILS(cudaFuncSetAttribute(uses_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, optin - 1023),
          cudaErrorInvalidValue);
    OK(cudaFuncSetAttribute(uses_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, optin - 1024));
    int *d = device<int>(256);
    uses_shared<<<1, 256, optin - 1024>>>(d);
    OK(cudaDeviceSynchronize());
    int blocks = -1;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, uses_shared, 256, optin - 1024));
    CHECK(blocks == 1);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 64, 0));
    CHECK(blocks >= 16);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 65, 0));
    CHECK(blocks == 0);
    int least = 0, size = 0;
    OK(cudaOccupancyMaxPotentialBlockSize(&least, &size, set));
    CHECK(size > 0 && size <= 1024 && size % 32 == 0 && least > 0);
    const char *name = nullptr;
    OK(cudaFuncGetName(&name, (const void *)small));
    CHECK(!std::strcmp(name, "_Z5smallPi"));
    size_t offset = 0, bytes = 0;
    OK(cudaFuncGetParamInfo((const void *)arguments, 3, &offset, &bytes));
    CHECK(offset == 24 && bytes == sizeof(Mixed));
    FAILS(cudaFuncGetParamInfo((const void *)arguments, 5, &offset, &bytes), cudaErrorInvalidValue);
    FAILS(cudaFuncGetAttributes(&a, &a), cudaErrorInvalidDeviceFunction);
}

static void failed_launches_stick() {
    int *d = device<int>(4), h = 0;
    set<<<1, 1>>>(d, 5, 0);  // out of bounds
    CHECK(cudaGetLastError() == cudaSuccess);
    FAILS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaSuccess);
    FAILS(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    FAILS(cudaMalloc(&d, 4), cudaErrorIllegalAddress);
    set<<<1, 1>>>(d, 0, 0);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    FAILS(cudaFree(d), cudaErrorIllegalAddress);
    OK(cudaDeviceReset());
    d = device<int>(4);
    set<<<1, 1>>>(d, 1, 3);
    OK(cudaMemcpy(&h, d + 1, 4, cudaMemcpyDeviceToHost));
    CHECK(h == 3);
}

static void trap_fails_the_launch() {
    failed_assert<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize() != cudaSuccess);
}

static void misaligned_access() {
    char *d = device<char>(64);
    set<<<1, 1>>>(reinterpret_cast<int *>(d + 1), 0, 0);
    FAILS(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
}

static void reset_starts_anew() {
    int *d = device<int>(4), one = 1, value = 0;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaMemcpyToSymbol(counters, &one, sizeof one, 4));
    OK(cudaDeviceReset());
    FAILS(cudaFree(d), cudaErrorInvalidValue);
    FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    OK(cudaMemcpyFromSymbol(&value, counters, sizeof value, 4));
    CHECK(value == 2);
}

static void cooperative_launch() {
    int *d = device<int>(9), h[9] = {};
    OK(cudaMemset(d, 0, sizeof h));
    void *args[] = {&d};
    OK(cudaLaunchCooperativeKernel((const void *)grid_sum, dim3(8), dim3(64), args, 0, nullptr));
    OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 9; ++i) CHECK(h[i] == 512);
    FAILS(cudaLaunchCooperativeKernel((const void *)grid_sum, dim3(1 << 20), dim3(64), args, 0, nullptr),
          cudaErrorCooperativeLaunchTooLarge);
}

static void launch_with_attributes() {
    int *d = device<int>(4), h = 0, index = 1, value = 6;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    OK(cudaLaunchKernelEx(&config, set, d, index, value));
    OK(cudaMemcpy(&h, d + 1, 4, cudaMemcpyDeviceToHost));
    CHECK(h == 6);
    void *args[] = {&d, &index, &value};
    value = 7;
    OK(cudaLaunchKernel((const void *)set, dim3(1), dim3(1), args, 0, nullptr));
    OK(cudaMemcpy(&h, d + 1, 4, cudaMemcpyDeviceToHost));
    CHECK(h == 7);
    FAILS(cudaLaunchKernel(&h, dim3(1), dim3(1), args, 0, nullptr), cudaErrorInvalidDeviceFunction);
}

static void managed_hints() {
    int *m;
    OK(cudaMallocManaged(&m, 4096));
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemPrefetchAsync(m, 4096, here, 0, nullptr));
    OK(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, here));
    FAILS(cudaMemPrefetchAsync(m, 4097, here, 0, nullptr), cudaErrorInvalidValue);
}

static void limits() {
    size_t value = 0;
    OK(cudaDeviceSetLimit(cudaLimitStackSize, 2000));
    OK(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    CHECK(value >= 2000);
    FAILS(cudaDeviceGetLimit(&value, cudaLimit(77)), cudaErrorUnsupportedLimit);
}

static void what_is_missing() {
    cudaIpcMemHandle_t memory;
    FAILS(cudaIpcGetMemHandle(&memory, device<int>(1)), cudaErrorNotSupported);
    CHECK(cudaGetLastError() == cudaErrorNotSupported);
    void *function = &memory;
    cudaDriverEntryPointQueryResult status;
    OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &status));
    CHECK(!function && status == cudaDriverEntryPointSymbolNotFound);
    function = &memory;
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11080, cudaEnableDefault, &status));
    CHECK(!function && status == cudaDriverEntryPointVersionNotSufficent);
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &status));
    CHECK(function && status == cudaDriverEntryPointSuccess);
    void *look_up = nullptr, *again = nullptr;
    OK(cudaGetDriverEntryPointByVersion("cuGetProcAddress", &look_up, 12000, cudaEnableDefault, &status));
    CUdriverProcAddressQueryResult found;
    const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(look_up);
    CHECK(get("cuTensorMapEncodeTiled", &again, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found) == CUDA_SUCCESS);
    CHECK(again == function && found == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(get("cuNoSuchFunction", &again, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found) == CUDA_SUCCESS);
    CHECK(!again && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(get("cuTensorMapEncodeTiled", &again, 99000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) ==
          CUDA_ERROR_INVALID_VALUE);
}

static void host_dereference() {
    volatile int *d = device<int>(1);
    std::printf("%d\n", *d);
}

struct AtExit {
    int *p = nullptr;
    ~AtExit() { std::printf("freed at exit: %s\n", cudaGetErrorName(cudaFree(p))); }
};

static void freed_by_static_destructor() {
    static AtExit holder;
    holder.p = device<int>(4);
    set<<<1, 1>>>(holder.p, 0, 1);
}

static void uninitialised_memory_is_poison() {
    for (size_t count : {size_t{3}, size_t{10} << 20}) {
        float *d = device<float>(count);
        std::vector<float> h(count);
        OK(cudaMemcpy(h.data(), d, count * sizeof(float), cudaMemcpyDeviceToHost));
        for (float x : h) CHECK(x != x);
        OK(cudaMemset(d, 0, count * sizeof(float)));
        OK(cudaMemcpy(h.data(), d, count * sizeof(float), cudaMemcpyDeviceToHost));
        for (float x : h) CHECK(x == 0);
        OK(cudaFree(d));
    }
}

static void many_allocations() {
    std::vector<int *> pointers;
    int *sum = device<int>(1);
    OK(cudaMemset(sum, 0, 4));
    for (int i = 0; i < 2000; ++i) {
        pointers.push_back(device<int>(i % 7 + 1));
        if (i % 3 == 0) {
            OK(cudaFree(pointers[i / 2]));
            pointers[i / 2] = nullptr;
        }
        if (i % 100 == 0) count<<<2, 32>>>(sum);
    }
    for (int *p : pointers) OK(cudaFree(p));
    int h = 0;
    OK(cudaMemcpy(&h, sum, 4, cudaMemcpyDeviceToHost));
    CHECK(h == 20 * 64);
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(properties),
        CASE(errors),
        CASE(kernel_arguments),
        CASE(symbols),
        CASE(copies_are_bounds_checked),
        CASE(pitched_copies),
        CASE(pointer_attributes),
        CASE(memory_runs_out),
        CASE(launch_limits),
        CASE(function_attributes),
        CASE(failed_launches_stick),
        CASE(trap_fails_the_launch),
        CASE(misaligned_access),
        CASE(reset_starts_anew),
        CASE(cooperative_launch),
        CASE(launch_with_attributes),
        CASE(managed_hints),
        CASE(limits),
        CASE(what_is_missing),
        CASE(host_dereference),
        CASE(freed_by_static_destructor),
        CASE(uninitialised_memory_is_poison),
        CASE(many_allocations),
    };
    for (const auto &c : cases) {
        if (argc == 2 && !std::strcmp(argv[1], c.name)) {
            c.run();
            std::printf("passed\n");
            return 0;
        }
    }
    std::printf("no such case\n");
    return 2;
}
