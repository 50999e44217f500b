// Mistakes with several devices, and the same without them.
//
//     faults NAME 0|1 [DEVICES]     does what NAME's function does, as it is or mended, on so many devices (2)
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` other lines that may be named.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <cuda/atomic>
#include <thread>

#include "../fault_run.h"

constexpr int kCount = 1000, kMost = 8;
constexpr int kBlocks = (kCount + 127) / 128;

// Macros, so that each has the line of its kernel.
#define PLACE                                     \
    const int i = blockIdx.x * 128 + threadIdx.x; \
    if (i >= kCount) return;
#define VOLATILE(p) (*(volatile unsigned *)(p))

static int devices = 2;

// Of each device.
struct Device {
    int *a, *b, *c;
    unsigned *flags;
    cudaStream_t stream, copies;
    cudaEvent_t computed[2], copied[2];
};
static Device on[kMost];
static unsigned *one;  // pinned

static void use(int device) {
    cudaSetDevice(device);
}

static void connect() {
    for (int device = 0; device < devices; ++device) {
        use(device);
        for (int peer = 0; peer < devices; ++peer)
            if (peer != device) cudaDeviceEnablePeerAccess(peer, 0);
    }
}

// The host waits for all devices; the first error.
static cudaError_t finish() {
    cudaError_t error = cudaGetLastError();
    for (int device = 0; device < devices; ++device) {
        use(device);
        const cudaError_t more = cudaDeviceSynchronize();
        if (error == cudaSuccess) error = more;
    }
    return error;
}

// clang-format off

// ---- what a device reaches ----

__global__ void reads_a_peer(int *to, const int *from) { PLACE to[i] = from[i]; }  //! no_peer_access invalid_address: of device 1, which device 0 cannot reach | cudaDeviceEnablePeerAccess(1, 0)
template <bool mended> void no_peer_access() {
    use(0);
    if (mended) cudaDeviceEnablePeerAccess(1, 0);
    reads_a_peer<<<kBlocks, 128>>>(on[0].a, on[1].a);
}

__global__ void writes_a_peer(int *to) { PLACE to[i] = i; }  //! access_the_other_way_round invalid_address: of device 1, which device 0 cannot reach
template <bool mended> void access_the_other_way_round() {
    use(mended ? 0 : 1);
    cudaDeviceEnablePeerAccess(mended ? 1 : 0, 0);
    use(0);
    writes_a_peer<<<kBlocks, 128>>>(on[1].a);
}

__global__ void adds_at_a_peer(int *to) { PLACE atomicAdd_system(to, 1); }  //! disabled_too_early invalid_address: cudaDeviceEnablePeerAccess(1, 0)
template <bool mended> void disabled_too_early() {
    use(0);
    cudaDeviceEnablePeerAccess(1, 0);
    adds_at_a_peer<<<kBlocks, 128>>>(on[1].a);
    if (mended) cudaDeviceSynchronize();
    cudaDeviceDisablePeerAccess(1);
}

__global__ void reads_a_pool(int *to, const int *from) { PLACE to[i] = from[i]; }  //! a_pool_without_access invalid_address: cudaMemPoolSetAccess
template <bool mended> void a_pool_without_access() {
    int *memory;
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 1);
    use(0);
    cudaDeviceEnablePeerAccess(1, 0);  // of no use for pools
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, 0};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    if (mended) cudaMemPoolSetAccess(pool, &access, 1);
    cudaMallocAsync(&memory, kCount * sizeof(int), on[1].stream);
    cudaMemsetAsync(memory, 0, kCount * sizeof(int), on[1].stream);
    cudaStreamSynchronize(on[1].stream);
    reads_a_pool<<<kBlocks, 128>>>(on[0].a, memory);
}

// ---- streams of two devices ----

__global__ void makes_it(int *to) { PLACE to[i] = i; }  //~ copied_too_early
template <bool mended> void copied_too_early() {  //! copied_too_early launch_race: read by cudaMemcpyPeerAsync in stream | of device 1 of global memory that kernel makes_it(int*) | of device 0 wrote
    use(0);
    makes_it<<<kBlocks, 128, 0, on[0].stream>>>(on[0].a);
    cudaEventRecord(on[0].computed[0], on[0].stream);
    if (mended) cudaStreamWaitEvent(on[1].stream, on[0].computed[0]);
    cudaMemcpyPeerAsync(on[1].a, 1, on[0].a, 0, kCount * sizeof(int), on[1].stream);
}

__global__ void default_of_one(int *to) { PLACE to[i] = i; }  //~ default_streams_are_two
__global__ void default_of_the_other(int *to, const int *from) { PLACE to[i] = from[i]; }  //! default_streams_are_two launch_race: in the default stream of device 1 | in the default stream of device 0
template <bool mended> void default_streams_are_two() {
    connect();
    use(0);
    default_of_one<<<kBlocks, 128>>>(on[0].a);
    if (mended) cudaDeviceSynchronize();
    use(1);
    default_of_the_other<<<kBlocks, 128>>>(on[1].a, on[0].a);
}

// Tiles go round, as the keys and values of ring attention do: each device adds up the tile that it has while it sends
// it on. There are two places for tiles; one is overwritten once it has been both added and sent.
__global__ void add_tile(int *sum, const int *tile) { PLACE sum[i] += tile[i]; }  //~ ring_that_overwrites  //! ring launch_race: nothing orders the two
template <bool waits_for_the_tile, bool waits_before_it_overwrites> void ring_steps() {
    for (int step = 0; step < devices; ++step) {
        const int now = step % 2, next = 1 - now;
        for (int device = 0; device < devices; ++device) {
            Device &d = on[device];
            int *const tiles[] = {d.a, d.b};
            use(device);
            if (step && waits_for_the_tile) cudaStreamWaitEvent(d.stream, on[(device + devices - 1) % devices].copied[now]);
            add_tile<<<kBlocks, 128, 0, d.stream>>>(d.c, tiles[now]);
            cudaEventRecord(d.computed[now], d.stream);
        }
        if (step + 1 == devices) break;
        for (int device = 0; device < devices; ++device) {
            const int peer = (device + 1) % devices;
            Device &d = on[device], &p = on[peer];
            int *const from[] = {d.a, d.b}, *const to[] = {p.a, p.b};
            use(device);
            // The tile to send has come; the place for it was added up, and sent on, a step ago.
            if (step) cudaStreamWaitEvent(d.copies, on[(device + devices - 1) % devices].copied[now]);
            if (step && waits_before_it_overwrites) {
                cudaStreamWaitEvent(d.copies, p.computed[next]);
                cudaStreamWaitEvent(d.copies, p.copied[now]);
            }
            cudaMemcpyPeerAsync(to[next], peer, from[now], device, kCount * sizeof(int), d.copies);  //! ring_that_overwrites launch_race: cudaMemcpyPeerAsync in stream | nothing orders the two
            cudaEventRecord(d.copied[next], d.copies);
        }
    }
}
template <bool mended> void ring() {
    ring_steps<mended, true>();
}
template <bool mended> void ring_that_overwrites() {
    devices = devices < 3 ? 3 : devices;
    ring_steps<true, mended>();
}

// ---- flags and atomics ----

__global__ void counts_here(int *counter) { atomicAdd_system(counter, 1); }  //~ counters_of_two_devices
template <bool mended> __global__ void counts_there(int *counter) {
    if (mended) atomicAdd_system(counter, 1);
    else atomicAdd(counter, 1);  //! counters_of_two_devices launch_race: in the scope of their own device
}
template <bool mended> void counters_of_two_devices() {
    connect();
    use(0);
    counts_here<<<4, 32, 0, on[0].stream>>>(on[0].a);
    use(1);
    counts_there<mended><<<4, 32, 0, on[1].stream>>>(on[0].a);
}

template <cuda::thread_scope scope> __device__ void signal(unsigned *flag, unsigned value) {
    cuda::atomic_ref<unsigned, scope>(*flag).store(value, cuda::memory_order_release);
}
template <cuda::thread_scope scope> __device__ void await(unsigned *flag, unsigned value) {
    while (cuda::atomic_ref<unsigned, scope>(*flag).load(cuda::memory_order_acquire) < value) {}
}

// The consumer comes first: it runs until it waits, and its peer runs then.
template <cuda::thread_scope scope> __global__ void sends(int *data, unsigned *flags) {
    const int i = threadIdx.x;
    data[i] = i;  //~ handshake
    __syncthreads();
    if (i == 0) signal<scope>(flags, 1);
    if (i == 0) await<scope>(flags + 1, 1);
    __syncthreads();
    data[i] = data[i] + 1;  //~ handshake
}
template <cuda::thread_scope scope> __global__ void receives(int *to, const int *data, unsigned *flags) {
    const int i = threadIdx.x;
    if (i == 0) await<scope>(flags, 1);
    __syncthreads();
    to[i] = data[i];  //! handshake launch_race: nothing orders the two launches or in the scope of their own device
    __syncthreads();
    if (i == 0) signal<scope>(flags + 1, 1);
}
template <bool mended> void handshake() {
    constexpr auto scope = mended ? cuda::thread_scope_system : cuda::thread_scope_device;
    connect();
    use(1);
    receives<scope><<<1, 64, 0, on[1].stream>>>(on[1].c, on[1].a, on[1].flags);
    use(0);
    sends<scope><<<1, 64, 0, on[0].stream>>>(on[1].a, on[1].flags);
}

// The same by fences and volatile accesses.
template <bool mended> __device__ void fence() {
    if (mended) __threadfence_system();
    else __threadfence();
}
template <bool mended> __global__ void sends_by_fences(int *data, unsigned *flags) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i;  //~ fences
    fence<mended>();
    __syncthreads();
    if (threadIdx.x == 0) VOLATILE(flags + blockIdx.x) = 1;
}
template <bool mended> __global__ void receives_by_fences(int *to, const int *data, unsigned *flags) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) while (!VOLATILE(flags + blockIdx.x)) {}
    __syncthreads();
    fence<mended>();
    to[i] = data[i];  //! fences launch_race: __threadfence_system()
}
template <bool mended> void fences() {
    connect();
    use(1);
    receives_by_fences<mended><<<4, 64, 0, on[1].stream>>>(on[1].c, on[1].a, on[1].flags);
    use(0);
    sends_by_fences<mended><<<4, 64, 0, on[0].stream>>>(on[1].a, on[1].flags);
}

// One launch on each device for all steps; each writes its tile into the next one's memory and tells it by a flag.
template <bool mended> __global__ void persistent(int *sum, int *own, int *next, unsigned *full, unsigned *next_full, unsigned *free, unsigned *previous_free, int steps) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    int value = own[i];
    for (int step = 0; step < steps; ++step) {
        sum[i] += value;
        if (step + 1 == steps) break;
        if (threadIdx.x == 0 && step) await<cuda::thread_scope_system>(free + blockIdx.x, unsigned(step));
        __syncthreads();
        next[i + 1024] = value;  //~ persistent_ring
        __syncthreads();
        if (threadIdx.x == 0) {
            signal<cuda::thread_scope_system>(next_full + blockIdx.x, unsigned(step + 1));
            if (mended) await<cuda::thread_scope_system>(full + blockIdx.x, unsigned(step + 1));
            else while (VOLATILE(full + blockIdx.x) < unsigned(step + 1)) {}
        }
        if (mended) __syncthreads();
        else __syncwarp();
        value = own[i + 1024];  //! persistent_ring launch_race: nothing orders the two launches
        __syncthreads();
        if (threadIdx.x == 0) signal<cuda::thread_scope_system>(previous_free + blockIdx.x, unsigned(step + 1));
    }
}
template <bool mended> void persistent_ring() {
    connect();
    for (int device = 0; device < devices; ++device) {
        use(device);
        const Device &d = on[device], &next = on[(device + 1) % devices], &previous = on[(device + devices - 1) % devices];
        persistent<mended><<<2, 128, 0, d.stream>>>(d.c, d.a, next.a, d.flags, next.flags, d.flags + 8, previous.flags + 8, devices);
    }
}

__global__ void waits_for_ever(unsigned *flag) { await<cuda::thread_scope_system>(flag, 1); }  //! nobody_signals deadlock: finds 0 again and again or reads 0 again and again
__global__ void signals_another(unsigned *flag) { signal<cuda::thread_scope_system>(flag, 1); }
template <bool mended> void nobody_signals() {
    connect();
    use(0);
    waits_for_ever<<<1, 1, 0, on[0].stream>>>(on[0].flags);
    use(1);
    signals_another<<<1, 1, 0, on[1].stream>>>(on[0].flags + (mended ? 0 : 1));
}

__global__ void waits_for_the_other(unsigned *mine, unsigned *other) {
    await<cuda::thread_scope_system>(mine, 1);  //! each_waits_for_the_other deadlock: reads 0 again and again
    signal<cuda::thread_scope_system>(other, 1);
}
__global__ void signals_first(unsigned *mine, unsigned *other) {
    signal<cuda::thread_scope_system>(other, 1);
    await<cuda::thread_scope_system>(mine, 1);
}
template <bool mended> void each_waits_for_the_other() {
    connect();
    use(0);
    waits_for_the_other<<<1, 1, 0, on[0].stream>>>(on[0].flags, on[1].flags);
    use(1);
    (mended ? signals_first : waits_for_the_other)<<<1, 1, 0, on[1].stream>>>(on[1].flags, on[0].flags);
}

// A kernel that is under way waits for a tile that the copy engine brings from a peer, and a copy of four bytes says
// that it is there.
__global__ void waits_for_a_copy(int *sum, const int *own, const int *pulled, unsigned *flag) {
    PLACE
    sum[i] += own[i];
    if (threadIdx.x == 0) await<cuda::thread_scope_system>(flag, 1);
    __syncthreads();
    sum[i] += pulled[i];  //! flag_before_its_copy launch_race: nothing orders
}
template <bool mended> void flag_before_its_copy() {
    connect();
    for (int device = 0; device < devices; ++device) {
        use(device);
        const Device &d = on[device], &next = on[(device + 1) % devices];
        waits_for_a_copy<<<kBlocks, 128, 0, d.stream>>>(d.c, d.a, d.b, d.flags);
        const auto set = [&] { cudaMemcpyAsync(d.flags, one, sizeof *one, cudaMemcpyHostToDevice, d.copies); };
        if (!mended) set();
        cudaMemcpyPeerAsync(d.b, device, next.a, (device + 1) % devices, kCount * sizeof(int), d.copies);  //~ flag_before_its_copy
        if (mended) set();
    }
}

// The same with a value that the stream writes.
template <cuda::thread_scope scope> __global__ void waits_for_a_value(int *sum, const int *pulled, unsigned *flag) {
    PLACE
    if (threadIdx.x == 0) await<scope>(flag, 7);  //~ flag_at_device_scope
    __syncthreads();
    sum[i] += pulled[i];  //! flag_at_device_scope launch_race: ld.acquire.sys
}
template <bool mended> void flag_at_device_scope() {
    constexpr auto scope = mended ? cuda::thread_scope_system : cuda::thread_scope_device;
    connect();
    use(0);
    const Device &d = on[0];
    waits_for_a_value<scope><<<kBlocks, 128, 0, d.stream>>>(d.c, d.b, d.flags);
    void *write = nullptr;
    cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &write, 12000, cudaEnableDefault, nullptr);
    cudaMemcpyPeerAsync(d.b, 0, on[1].a, 1, kCount * sizeof(int), d.copies);  //~ flag_at_device_scope
    using Write = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    reinterpret_cast<Write>(write)(d.copies, reinterpret_cast<CUdeviceptr>(d.flags), 7, CU_STREAM_WRITE_VALUE_DEFAULT);
}

// A host thread for each device, and nobody tells one of the other's launch.
__global__ void meets(unsigned *mine, unsigned *other, bool tells) {
    if (tells) signal<cuda::thread_scope_system>(other, 1);
    await<cuda::thread_scope_system>(mine, 1);  //! threads_of_the_host deadlock: reads 0 again and again
}
template <bool mended> void threads_of_the_host() {
    connect();
    std::vector<std::thread> threads;
    for (int device = 0; device < 2; ++device) {
        threads.emplace_back([=] {
            use(device);
            meets<<<1, 1, 0, on[device].stream>>>(on[device].flags, on[1 - device].flags, mended || device);
            cudaStreamSynchronize(on[device].stream);
        });
    }
    for (std::thread &thread : threads) thread.join();
}

struct Case {
    const char *name;
    void (*run[2])();
};
#define CASE(name) {#name, {name<false>, name<true>}}
static const Case cases[] = {
    CASE(no_peer_access),
    CASE(access_the_other_way_round),
    CASE(disabled_too_early),
    CASE(a_pool_without_access),
    CASE(copied_too_early),
    CASE(default_streams_are_two),
    CASE(ring),
    CASE(ring_that_overwrites),
    CASE(counters_of_two_devices),
    CASE(handshake),
    CASE(fences),
    CASE(persistent_ring),
    CASE(nobody_signals),
    CASE(each_waits_for_the_other),
    CASE(flag_before_its_copy),
    CASE(flag_at_device_scope),
    CASE(threads_of_the_host),
};

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (argc > 3) devices = std::atoi(argv[3]);
    cudaMallocHost(&one, sizeof *one);
    *one = 1;
    for (int device = 0; device < (devices < 3 ? 3 : devices); ++device) {  // one case wants three
        Device &d = on[device];
        use(device);
        for (int **p : {&d.a, &d.b, &d.c}) {
            cudaMalloc(p, 4096 * sizeof(int));
            cudaMemset(*p, 0, 4096 * sizeof(int));
        }
        const std::vector<int> tile(4096, device + 1);
        cudaMemcpy(d.a, tile.data(), 4096 * sizeof(int), cudaMemcpyHostToDevice);
        cudaMalloc(&d.flags, 64);
        cudaMemset(d.flags, 0, 64);
        cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&d.copies, cudaStreamNonBlocking);
        for (cudaEvent_t *event : {d.computed, d.computed + 1, d.copied, d.copied + 1})
            cudaEventCreateWithFlags(event, cudaEventDisableTiming);
        cudaDeviceSynchronize();
    }
    for (const Case &it : cases) {
        if (std::strcmp(argv[1], it.name)) continue;
        it.run[argv[2][0] == '1']();
        const cudaError_t error = finish();
        std::printf("%s\n", cudaGetErrorName(error));
        if (error != cudaSuccess) return 3;
        if (std::strstr(argv[1], "ring")) {
            for (int device = 0; device < devices; ++device) {
                int sum = 0;
                cudaMemcpy(&sum, on[device].c, sizeof sum, cudaMemcpyDefault);
                if (sum != devices * (devices + 1) / 2) return 4;
            }
        }
        return 0;
    }
    return 2;
}
