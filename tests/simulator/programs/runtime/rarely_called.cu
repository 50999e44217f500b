// Calls of the runtime API that few programs make, one case per run: rarely_called CASE.
#include <cstring>
#include <fstream>
#include <string>

#include "expect.h"

__device__ int counters[4] = {1, 2, 3, 4};

__global__ void set(int *p, int value) {
    extern __shared__ int dynamic[];
    dynamic[0] = value;
    p[0] = dynamic[0];
}

static void pools() {
    cudaMemPool_t first, pool, now;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    OK(cudaDeviceGetDefaultMemPool(&first, 0));
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaDeviceGetMemPool(&now, 0));
    CHECK(now == first && pool != first);
    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&now, 0));
    CHECK(now == pool);

    uint64_t threshold = 1 << 20, read = 0;
    int reuse = 0, other = 0;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &other));
    reuse = 5;
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
    CHECK(read == threshold && reuse == 0 && other == 1);
    OK(cudaMemPoolGetAttribute(first, cudaMemPoolAttrReleaseThreshold, &read));
    CHECK(read == 0);
    FAILS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttr(77), &read), cudaErrorInvalidValue);

    void *p;
    OK(cudaMallocFromPoolAsync(&p, 64, pool, nullptr));
    OK(cudaMemsetAsync(p, 0, 64, nullptr));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &read));
    CHECK(read >= 64);
    OK(cudaFreeAsync(p, nullptr));
    OK(cudaMemPoolTrimTo(pool, 0));
    FAILS(cudaMemPoolDestroy(first), cudaErrorInvalidValue);
    OK(cudaMemPoolDestroy(pool));
    FAILS(cudaMemPoolTrimTo(pool, 0), cudaErrorInvalidValue);
    FAILS(cudaDeviceSetMemPool(0, pool), cudaErrorInvalidValue);
    OK(cudaDeviceGetMemPool(&now, 0));
    CHECK(now == first);
}

static void streams() {
    cudaStream_t plain, urgent, gone;
    int least, greatest, priority = 1, device = -1;
    unsigned flags = 7;
    unsigned long long ids[2] = {};
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    OK(cudaStreamCreate(&plain));
    OK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest - 1));
    OK(cudaStreamGetFlags(plain, &flags));
    OK(cudaStreamGetPriority(plain, &priority));
    CHECK(flags == cudaStreamDefault && priority == 0 && greatest < least);
    OK(cudaStreamGetFlags(urgent, &flags));
    OK(cudaStreamGetPriority(urgent, &priority));
    CHECK(flags == cudaStreamNonBlocking && priority == greatest);
    OK(cudaStreamGetId(plain, &ids[0]));
    OK(cudaStreamGetId(urgent, &ids[1]));
    OK(cudaStreamGetDevice(urgent, &device));
    CHECK(ids[0] != ids[1] && device == 0);
    FAILS(cudaStreamGetFlags(plain, nullptr), cudaErrorInvalidValue);

    cudaStreamAttrValue value;
    std::memset(&value, 1, sizeof value);
    OK(cudaStreamGetAttribute(plain, cudaStreamAttributeAccessPolicyWindow, &value));
    CHECK(value.accessPolicyWindow.num_bytes == 0);
    OK(cudaStreamSetAttribute(plain, cudaStreamAttributeAccessPolicyWindow, &value));
    OK(cudaStreamCopyAttributes(urgent, plain));
    OK(cudaStreamCreate(&gone));
    OK(cudaStreamDestroy(gone));
    FAILS(cudaStreamCopyAttributes(plain, gone), cudaErrorInvalidResourceHandle);
    FAILS(cudaStreamSetAttribute(gone, cudaStreamAttributeAccessPolicyWindow, &value), cudaErrorInvalidResourceHandle);

    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaEventRecordWithFlags(event, plain, 0));
    OK(cudaEventSynchronize(event));
    FAILS(cudaEventRecordWithFlags(event, plain, 8), cudaErrorInvalidValue);
}

static void captures() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    unsigned long long id = 7, captured = 0;
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == cudaStreamCaptureModeRelaxed);
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamGetCaptureInfo(stream, &status, &id));
    CHECK(status == cudaStreamCaptureStatusNone && id == 0);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaStreamGetCaptureInfo(stream, &status, &captured));
    CHECK(status == cudaStreamCaptureStatusActive && captured != 0);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaStreamGetCaptureInfo(stream, &status, &id));
    CHECK(status == cudaStreamCaptureStatusNone && id == 0);
}

static void copies() {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    const int numbers[2] = {30, 40};
    int read[4] = {};
    OK(cudaMemcpyToSymbolAsync(counters, numbers, sizeof numbers, 2 * sizeof(int), cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyFromSymbolAsync(read, counters, 3 * sizeof(int), sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(read[0] == 2 && read[1] == 30 && read[2] == 40 && read[3] == 0);

    char *flat, bytes[64];
    OK(cudaMalloc(&flat, 64));
    OK(cudaMemset(flat, 1, 64));
    OK(cudaMemset2DAsync(flat + 1, 8, 2, 3, 2, stream));
    cudaExtent extent = {2, 2, 2};
    OK(cudaMemset3DAsync(cudaPitchedPtr{flat + 32, 4, 4, 4}, 3, extent, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(bytes, flat, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) {
        const int place = i - 32, wanted2 = i < 16 && i % 8 >= 1 && i % 8 < 4 ? 2 : 1;
        const bool in3 = place >= 0 && place % 4 < 2 && place / 4 % 4 < 2 && place / 16 < 2;
        CHECK(bytes[i] == (in3 ? 3 : wanted2));
    }

    cudaArray_t from, to;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    OK(cudaMallocArray(&from, &format, 4, 2));
    OK(cudaMallocArray(&to, &format, 4, 2));
    const int rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int box[8] = {};
    OK(cudaMemcpy2DToArrayAsync(from, 0, 0, rows, 16, 16, 2, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpy2DToArrayAsync(to, 0, 0, rows, 16, 16, 2, cudaMemcpyHostToDevice, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy2DArrayToArray(to, 4, 0, from, 8, 1, 8, 1));
    OK(cudaMemcpy2DFromArrayAsync(box, 16, to, 0, 0, 16, 2, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    const int wanted[8] = {0, 6, 7, 3, 4, 5, 6, 7};
    CHECK(!std::memcmp(box, wanted, sizeof wanted));
}

static void kernels() {
    cudaKernel_t kernel;
    int *p, h = 0, blocks = 0, same = -1, value = 9;
    OK(cudaMalloc(&p, 4));
    OK(cudaGetKernel(&kernel, (const void *)set));
    void *arguments[] = {&p, &value};
    OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), arguments, 4, nullptr));
    OK(cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost));
    CHECK(h == 9);
    OK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000, 0));
    FAILS(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000, 9),
          cudaErrorInvalidDevice);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, (const void *)set));
    CHECK(attributes.maxDynamicSharedSizeBytes == 60000);
    OK(cudaFuncSetCacheConfig((const void *)set, cudaFuncCachePreferShared));
    FAILS(cudaFuncSetCacheConfig(&h, cudaFuncCachePreferShared), cudaErrorInvalidDeviceFunction);

    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set, 64, 40000));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, set, 64, 40000, 1));
    CHECK(blocks > 1 && same == blocks);
    FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, set, 64, 40000, 2), cudaErrorInvalidValue);
    size_t bytes = 0, of_one = 0;
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&of_one, set, 1, 64));
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, set, blocks, 64));
    CHECK(bytes >= 40000 && bytes < of_one);
    FAILS(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, set, 0, 64), cudaErrorInvalidValue);
}

static void libraries() {
    std::ofstream("two.ptx") << ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 number[3];\n"
                                ".visible .entry first() { ret; }\n.visible .entry second() { ret; }\n";
    std::ofstream("text.txt") << "no kernels\n";
    cudaLibrary_t library;
    const auto load = [&](const char *path) {
        return cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0);
    };
    FAILS(load("nothing.ptx"), cudaErrorFileNotFound);
    FAILS(load("text.txt"), cudaErrorNoKernelImageForDevice);
    OK(load("two.ptx"));
    cudaKernel_t found[3] = {}, first, second;
    OK(cudaLibraryGetKernel(&first, library, "first"));
    OK(cudaLibraryGetKernel(&second, library, "second"));
    OK(cudaLibraryEnumerateKernels(found, 3, library));
    CHECK(found[0] && found[1] && found[0] != found[1] && !found[2]);
    CHECK((found[0] == first || found[0] == second) && (found[1] == first || found[1] == second));
    found[1] = nullptr;
    OK(cudaLibraryEnumerateKernels(found, 1, library));
    CHECK(found[0] && !found[1]);
    void *address = nullptr;
    size_t bytes = 0;
    OK(cudaLibraryGetGlobal(&address, &bytes, library, "number"));
    CHECK(address && bytes == 12);
    FAILS(cudaLibraryGetGlobal(&address, &bytes, library, "letter"), cudaErrorSymbolNotFound);
    FAILS(cudaLibraryGetManaged(&address, &bytes, library, "number"), cudaErrorSymbolNotFound);
    OK(cudaLibraryUnload(library));
}

static void devices() {
    int devices[2] = {0, 9}, chosen = -1;
    unsigned flags = 0;
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaChooseDevice(&chosen, &properties));
    CHECK(chosen == 0);
    OK(cudaSetValidDevices(devices, 1));
    FAILS(cudaSetValidDevices(devices, 2), cudaErrorInvalidDevice);
    OK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    OK(cudaGetDeviceFlags(&flags));
    CHECK(flags == (cudaDeviceScheduleSpin | cudaDeviceMapHost));
    FAILS(cudaSetDeviceFlags(cudaDeviceMask + 1), cudaErrorInvalidValue);
    cudaFuncCache config = cudaFuncCachePreferL1;
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
    OK(cudaDeviceGetCacheConfig(&config));
    CHECK(config == cudaFuncCachePreferNone);
    OK(cudaCtxResetPersistingL2Cache());
    int *pinned, *plain;
    OK(cudaMallocHost(&pinned, 4));
    OK(cudaHostGetFlags(&flags, pinned));
    CHECK(flags & cudaHostAllocMapped);
    OK(cudaMalloc(&plain, 4));
    FAILS(cudaHostGetFlags(&flags, plain), cudaErrorInvalidValue);
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(pools), CASE(streams), CASE(captures), CASE(copies), CASE(kernels), CASE(libraries), CASE(devices),
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
