// Several devices in one process, one case per run: api CASE, with WARPSIM_DEVICES=3.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../runtime/expect.h"

constexpr int kDevices = 3, kCount = 1000;

__device__ int variable = 5;
__constant__ int constant = 7;
__managed__ int managed = 9;

__global__ void set(int *p, int value) {
    *p = value;
}
__global__ void copy(int *to, const int *from) {
    *to = *from;
}
__global__ void count(int *to) {
    to[threadIdx.x] = int(threadIdx.x);
}
__global__ void read_variables(int *to) {
    to[0] = variable;
    to[1] = constant;
    to[2] = managed;
}
__global__ void use_shared(int *to) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = int(threadIdx.x);
    __syncthreads();
    to[threadIdx.x] = tile[threadIdx.x];
}

static int current() {
    int device = -1;
    OK(cudaGetDevice(&device));
    return device;
}

template <class T>
static T *allocate(int device, int n = 1) {
    T *p;
    OK(cudaSetDevice(device));
    OK(cudaMalloc(&p, n * sizeof(T)));
    return p;
}

static int *int_on(int device, int value) {
    int *p = allocate<int>(device);
    OK(cudaMemcpy(p, &value, sizeof value, cudaMemcpyHostToDevice));
    return p;
}

static int read(const int *p) {
    int value;
    OK(cudaMemcpy(&value, p, sizeof value, cudaMemcpyDefault));
    return value;
}

static cudaStream_t stream_on(int device) {
    cudaStream_t stream;
    OK(cudaSetDevice(device));
    OK(cudaStreamCreate(&stream));
    return stream;
}

static void count_and_current() {
    int devices = 0;
    OK(cudaGetDeviceCount(&devices));
    CHECK(devices == kDevices && current() == 0);
    for (int device = 0; device < devices; ++device) {
        OK(cudaSetDevice(device));
        CHECK(current() == device);
    }
    CHECK(cudaSetDevice(kDevices) == cudaErrorInvalidDevice && cudaSetDevice(-1) == cudaErrorInvalidDevice);
    CHECK(current() == kDevices - 1);
    OK(cudaInitDevice(1, 0, 0));
    CHECK(cudaInitDevice(kDevices, 0, 0) == cudaErrorInvalidDevice);
}

static void each_thread_has_its_own_device() {
    OK(cudaSetDevice(2));
    std::thread([] {
        CHECK(current() == 0);
        OK(cudaSetDevice(1));
        CHECK(current() == 1);
    }).join();
    CHECK(current() == 2);
}

static void properties() {
    cudaDeviceProp first, last;
    OK(cudaGetDeviceProperties(&first, 0));
    OK(cudaGetDeviceProperties(&last, kDevices - 1));
    CHECK(!std::strcmp(first.name, last.name) && first.multiProcessorCount == last.multiProcessorCount);
    CHECK(std::memcmp(&first.uuid, &last.uuid, sizeof first.uuid) != 0 && first.pciBusID != last.pciBusID);
    CHECK(cudaGetDeviceProperties(&last, kDevices) == cudaErrorInvalidDevice);
    char text[32];
    int none;
    for (int device = 0; device < kDevices; ++device) {
        int found = -1, bus = -1;
        OK(cudaDeviceGetPCIBusId(text, sizeof text, device));
        OK(cudaDeviceGetByPCIBusId(&found, text));
        OK(cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, device));
        CHECK(found == device && bus == device);
    }
    CHECK(cudaDeviceGetByPCIBusId(&none, "0000:7f:00.0") == cudaErrorInvalidDevice);
}

static void memory_is_counted_by_device() {
    size_t before[kDevices], now, total;
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaMemGetInfo(&before[device], &total));
    }
    char *p = allocate<char>(1, 1 << 20);
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaMemGetInfo(&now, &total));
        CHECK(before[device] - now == (device == 1 ? 1u << 20 : 0u));
    }
    OK(cudaFree(p));  // whatever device is current
    OK(cudaSetDevice(1));
    OK(cudaMemGetInfo(&now, &total));
    CHECK(now == before[1]);
}

static void pointers_know_their_device() {
    for (int device = 0; device < kDevices; ++device) {
        cudaPointerAttributes attributes;
        OK(cudaPointerGetAttributes(&attributes, allocate<char>(device, 100) + 99));
        CHECK(attributes.device == device && attributes.type == cudaMemoryTypeDevice);
    }
}

static void streams_know_their_device() {
    for (int device = kDevices - 1; device >= 0; --device) {
        const cudaStream_t stream = stream_on(device);
        int owner = -1;
        OK(cudaSetDevice(0));
        OK(cudaStreamGetDevice(stream, &owner));
        CHECK(owner == device);
    }
}

static void a_launch_in_a_foreign_stream_is_refused() {
    int *p = int_on(0, 1);
    const cudaStream_t stream = stream_on(1);
    OK(cudaSetDevice(0));
    set<<<1, 1, 0, stream>>>(p, 2);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    OK(cudaDeviceSynchronize());
    CHECK(read(p) == 1);
    OK(cudaMemcpyAsync(p, int_on(1, 3), sizeof(int), cudaMemcpyDefault, stream));  // copies are not refused
    OK(cudaStreamSynchronize(stream));
    CHECK(read(p) == 3);
}

static void events_across_devices() {
    int *first = int_on(0, 1), *second = int_on(1, 2);
    const cudaStream_t a = stream_on(0), b = stream_on(1);
    cudaEvent_t event;
    OK(cudaSetDevice(0));
    OK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, b) == cudaErrorInvalidResourceHandle);
    set<<<1, 1, 0, a>>>(first, 40);
    OK(cudaEventRecord(event, a));
    OK(cudaStreamWaitEvent(b, event));
    OK(cudaMemcpyPeerAsync(second, 1, first, 0, sizeof(int), b));
    OK(cudaSetDevice(1));
    OK(cudaStreamSynchronize(b));
    CHECK(read(second) == 40);
    OK(cudaEventSynchronize(event));
}

static void copies_between_devices() {
    std::vector<int> values(kCount), out(kCount);
    for (int i = 0; i < kCount; ++i) values[i] = i;
    int *a = allocate<int>(0, kCount), *b = allocate<int>(1, kCount), *c = allocate<int>(2, kCount);
    OK(cudaSetDevice(2));  // no part in the first two
    OK(cudaMemcpy(a, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(b, a, kCount * sizeof(int), cudaMemcpyDeviceToDevice));
    OK(cudaMemcpyPeer(c, 2, b, 1, kCount * sizeof(int)));
    OK(cudaMemcpy(out.data(), c, kCount * sizeof(int), cudaMemcpyDefault));
    CHECK(out == values);
    CHECK(cudaMemcpyPeer(c, 2, b, 0, 4) == cudaErrorInvalidValue);  // b is no memory of device 0
    CHECK(cudaMemcpyPeer(c, kDevices, b, 1, 4) == cudaErrorInvalidDevice);
    CHECK(cudaMemcpyPeer(c, 2, b, 1, (kCount + 1) * sizeof(int)) == cudaErrorInvalidValue);
}

// A copy between devices that is not Async comes between all that both do before and after it.
static void a_blocking_copy_orders_both_devices() {
    int *a = int_on(0, 0), *b = int_on(1, 0), *later = int_on(1, 0);
    const cudaStream_t first = stream_on(0), second = stream_on(1);
    OK(cudaSetDevice(0));
    set<<<1, 1, 0, first>>>(a, 6);
    OK(cudaSetDevice(2));
    OK(cudaMemcpyPeer(b, 1, a, 0, sizeof(int)));
    OK(cudaSetDevice(1));
    copy<<<1, 1, 0, second>>>(later, b);
    OK(cudaStreamSynchronize(second));
    CHECK(read(later) == 6);
}

static void the_device_waits_for_itself_alone() {
    int *a = int_on(0, 0), *b = int_on(1, 0);
    const cudaStream_t first = stream_on(0), second = stream_on(1);
    OK(cudaSetDevice(0));
    set<<<1, 1, 0, first>>>(a, 1);
    OK(cudaSetDevice(1));
    set<<<1, 1, 0, second>>>(b, 1);
    OK(cudaDeviceSynchronize());
    CHECK(cudaStreamQuery(second) == cudaSuccess && cudaStreamQuery(first) == cudaErrorNotReady);
    OK(cudaSetDevice(0));
    OK(cudaDeviceSynchronize());
    CHECK(cudaStreamQuery(first) == cudaSuccess);
}

static void peer_access() {
    int can = -1, value = -1;
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    OK(cudaDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0);
    CHECK(cudaDeviceCanAccessPeer(&can, 0, kDevices) == cudaErrorInvalidDevice);
    OK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 2));
    CHECK(value == 1);
    OK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 0, 2));
    CHECK(value == 1);
    CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1) == cudaErrorInvalidDevice);
    OK(cudaSetDevice(0));
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceEnablePeerAccess(1, 1) == cudaErrorInvalidValue);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    int *own = int_on(0, 3), *peers = int_on(1, 4);
    OK(cudaSetDevice(0));
    copy<<<1, 1>>>(own, peers);
    set<<<1, 1>>>(peers, 12);
    OK(cudaDeviceSynchronize());
    CHECK(read(own) == 4 && read(peers) == 12);
    OK(cudaDeviceDisablePeerAccess(1));
}

static void memory_of_the_host_is_everybodys() {
    int *pinned, *shared;
    OK(cudaMallocHost(&pinned, sizeof(int)));
    OK(cudaMallocManaged(&shared, sizeof(int)));
    *pinned = 11;
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        copy<<<1, 1>>>(shared, pinned);
        OK(cudaDeviceSynchronize());
        CHECK(*shared == 11 + device);
        ++*pinned;
    }
}

// The host may write there, too, so that nothing shows how long a look at it will be in vain.
__global__ void take_turns(int *turn, int rank, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        while (atomicAdd_system(turn, 0) != i * kDevices + rank) {
        }
        atomicAdd_system(turn, 1);
    }
}

static void devices_meet_in_memory_of_the_host() {
    int *turn;
    OK(cudaMallocHost(&turn, sizeof(int)));
    *turn = 0;
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        take_turns<<<1, 1>>>(turn, device, 5);
    }
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaDeviceSynchronize());
    }
    CHECK(*turn == 5 * kDevices);
}

static void variables_are_there_once_for_each_device() {
    for (int device = 0; device < kDevices; ++device) {
        OK(cudaSetDevice(device));
        const int mine = 50 + device;
        OK(cudaMemcpyToSymbol(variable, &mine, sizeof mine));
        managed = 70 + device;
        OK(cudaDeviceSynchronize());
    }
    for (int device = 0; device < kDevices; ++device) {
        int *to = allocate<int>(device, 3), found[3], *address;
        read_variables<<<1, 1>>>(to);
        OK(cudaMemcpy(found, to, sizeof found, cudaMemcpyDefault));
        CHECK(found[0] == 50 + device && found[1] == 7 && found[2] == 70 + kDevices - 1);
        OK(cudaGetSymbolAddress(reinterpret_cast<void **>(&address), variable));
        cudaPointerAttributes attributes;
        OK(cudaPointerGetAttributes(&attributes, address));
        CHECK(attributes.device == device && read(address) == 50 + device);
    }
}

static void attributes_of_kernels_are_the_devices_own() {
    constexpr int kBytes = 64 << 10;
    OK(cudaSetDevice(0));
    OK(cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    int *a = allocate<int>(0, 32), *b = allocate<int>(1, 32);
    OK(cudaSetDevice(0));
    use_shared<<<1, 32, kBytes>>>(a);
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(1));
    use_shared<<<1, 32, kBytes>>>(b);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);  // forgotten for this device
    OK(cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    use_shared<<<1, 32, kBytes>>>(b);
    OK(cudaDeviceSynchronize());
}

static void pools() {
    cudaMemPool_t of[kDevices];
    for (int device = 0; device < kDevices; ++device) OK(cudaDeviceGetDefaultMemPool(&of[device], device));
    CHECK(of[0] != of[1] && of[1] != of[2]);
    CHECK(cudaDeviceGetDefaultMemPool(&of[0], kDevices) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceSetMemPool(0, of[1]) == cudaErrorInvalidValue);
    const cudaStream_t stream = stream_on(1);
    OK(cudaSetDevice(0));
    int *p, *own = int_on(0, 0);
    OK(cudaMallocAsync(&p, sizeof(int), stream));  // of the stream's device
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, p));
    CHECK(attributes.device == 1);
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, 0};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    cudaMemAccessFlags flags;
    OK(cudaMemPoolGetAccess(&flags, of[1], &access.location));
    CHECK(flags == cudaMemAccessFlagsProtNone);
    OK(cudaMemPoolSetAccess(of[1], &access, 1));
    OK(cudaMemPoolGetAccess(&flags, of[1], &access.location));
    CHECK(flags == cudaMemAccessFlagsProtReadWrite);
    OK(cudaMemsetAsync(p, 1, sizeof(int), stream));
    OK(cudaStreamSynchronize(stream));
    copy<<<1, 1>>>(own, p);  // without cudaDeviceEnablePeerAccess
    OK(cudaDeviceSynchronize());
    CHECK(read(own) == 0x01010101);
    OK(cudaFreeAsync(p, stream));
    OK(cudaStreamSynchronize(stream));
}

static void nothing_is_shared_with_other_processes() {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t handle;
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaIpcGetMemHandle(&memory, int_on(0, 1)) == cudaErrorNotSupported);
    CHECK(cudaIpcGetEventHandle(&handle, event) == cudaErrorNotSupported);
    CHECK(cudaGetLastError() == cudaErrorNotSupported && cudaGetLastError() == cudaSuccess);
}

static void a_reset_is_of_one_device() {
    int *a = int_on(0, 1), *b = int_on(1, 2);
    const cudaStream_t stream = stream_on(1);
    OK(cudaSetDevice(0));
    OK(cudaDeviceEnablePeerAccess(1, 0));
    OK(cudaSetDevice(1));
    OK(cudaDeviceReset());
    CHECK(read(a) == 1);
    int value;
    CHECK(cudaMemcpy(&value, b, sizeof value, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
    int *again = int_on(1, 8);
    set<<<1, 1>>>(again, 9);
    OK(cudaDeviceSynchronize());
    CHECK(read(again) == 9);
    OK(cudaSetDevice(0));
    OK(cudaDeviceEnablePeerAccess(1, 0));  // the reset has ended what was enabled
}

static void graphs_keep_their_device() {
    int *p = int_on(1, 0);
    const cudaStream_t stream = stream_on(1);
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    set<<<1, 1, 0, stream>>>(p, 21);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&instance, graph, 0));
    OK(cudaSetDevice(0));
    OK(cudaGraphLaunch(instance, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(read(p) == 21);
}

struct Case {
    const char *name;
    void (*run)();
};
#define CASE(name) {#name, name}
static const Case kCases[] = {
    CASE(count_and_current),
    CASE(each_thread_has_its_own_device),
    CASE(properties),
    CASE(memory_is_counted_by_device),
    CASE(pointers_know_their_device),
    CASE(streams_know_their_device),
    CASE(a_launch_in_a_foreign_stream_is_refused),
    CASE(events_across_devices),
    CASE(copies_between_devices),
    CASE(a_blocking_copy_orders_both_devices),
    CASE(the_device_waits_for_itself_alone),
    CASE(peer_access),
    CASE(memory_of_the_host_is_everybodys),
    CASE(devices_meet_in_memory_of_the_host),
    CASE(variables_are_there_once_for_each_device),
    CASE(attributes_of_kernels_are_the_devices_own),
    CASE(pools),
    CASE(nothing_is_shared_with_other_processes),
    CASE(a_reset_is_of_one_device),
    CASE(graphs_keep_their_device),
};

int main(int argc, char **argv) {
    for (const Case &it : kCases) {
        if (argc < 2 || std::strcmp(argv[1], it.name)) continue;
        it.run();
        std::puts("passed");
        return 0;
    }
    return 2;
}
