// Mistakes with the order of launches and copies on one device, and the same without them.
//
//     faults NAME 0|1        does what NAME's function does, as it is or mended
//
// `//! NAME kind: words | more words` marks where the fault is reported, `//~ NAME` other lines that may be named.
#include <cuda_runtime.h>

#include <atomic>
#include <cstring>
#include <cuda/atomic>
#include <thread>

#include "../fault_run.h"

constexpr int kCount = 1000;  // ints, of which blocks of 128 threads leave a tail
constexpr int kBlocks = (kCount + 127) / 128;

// Macros, so that each has the line of its kernel.
#define PLACE                                     \
    const int i = blockIdx.x * 128 + threadIdx.x; \
    if (i >= n) return;
#define KERNEL(name) __global__ void name(int *to, const int *from, int n)

struct Work {
    int *a, *b, *c, *pinned;
    cudaStream_t first, second, apart;  // two blocking streams and one that is not
    cudaEvent_t event;
};

static cudaEvent_t recorded(const Work &w, cudaStream_t stream) {
    cudaEventRecord(w.event, stream);
    return w.event;
}

template <class Kernel>
void launch(Kernel kernel, cudaStream_t stream, int *to, const int *from, int n = kCount) {
    kernel<<<kBlocks, 128, 0, stream>>>(to, from, n);
}

// clang-format off

// ---- streams ----

KERNEL(produce) { PLACE to[i] = i; }  //~ two_streams
KERNEL(consume) { PLACE to[i] = from[i] + 1; }  //! two_streams launch_race: read at faults.cu | kernel produce(int*, int const*, int) in stream 1 wrote at faults.cu | in stream 2 | byte 0 of the 4,000 bytes | nothing orders the two launches | cudaStreamWaitEvent
template <bool mended> void two_streams(Work &w) {
    launch(produce, w.first, w.a, w.b);
    if (mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    launch(consume, w.second, w.c, w.a);
}

KERNEL(fill_it) { PLACE to[i] = 7; }  //~ overwritten_while_read
KERNEL(sum_it) { PLACE to[i] = from[i] + from[n - 1 - i]; }  //! overwritten_while_read launch_race: nothing orders the two launches
template <bool mended> void overwritten_while_read(Work &w) {
    launch(sum_it, w.first, w.c, w.a);
    launch(fill_it, mended ? w.first : w.second, w.a, w.b);
}

KERNEL(left) { PLACE to[i] = 1; }  //~ one_int_in_common
KERNEL(right) { PLACE to[i] = 2; }  //! one_int_in_common launch_race: byte 1,996 of the 4,000 bytes or byte 1,980 of the 4,000 bytes
template <bool mended> void one_int_in_common(Work &w) {
    launch(left, w.first, w.a, w.b, 500);
    launch(right, w.second, w.a + (mended ? 500 : 499), w.b, 500);
}

KERNEL(late_writer) { PLACE to[i] = i; }  //~ recorded_before_the_launch
KERNEL(early_reader) { PLACE to[i] = from[i]; }  //! recorded_before_the_launch launch_race: cudaEventRecord behind the first
template <bool mended> void recorded_before_the_launch(Work &w) {
    if (!mended) cudaEventRecord(w.event, w.first);
    launch(late_writer, w.first, w.a, w.b);
    if (mended) cudaEventRecord(w.event, w.first);
    cudaStreamWaitEvent(w.second, w.event);
    launch(early_reader, w.second, w.c, w.a);
}

KERNEL(apart_writer) { PLACE to[i] = i; }  //~ a_stream_that_does_not_block
KERNEL(default_reader) { PLACE to[i] = from[i]; }  //! a_stream_that_does_not_block launch_race: in the default stream | cudaStreamNonBlocking
template <bool mended> void a_stream_that_does_not_block(Work &w) {
    launch(apart_writer, mended ? w.first : w.apart, w.a, w.b);
    launch(default_reader, nullptr, w.c, w.a);
}

// The default stream stands between the two where it comes between them.
KERNEL(before_default) { PLACE to[i] = i; }  //~ the_default_stream_between
KERNEL(between) { PLACE to[i] = 1; }
KERNEL(behind_default) { PLACE to[i] = from[i]; }  //! the_default_stream_between launch_race: nothing orders the two launches
template <bool mended> void the_default_stream_between(Work &w) {
    launch(before_default, w.first, w.a, w.b);
    if (mended) launch(between, nullptr, w.b, w.b);
    launch(behind_default, w.second, w.c, w.a);
}

KERNEL(count_one) { PLACE to[0] += i == 0; }  //~ a_plain_and_an_atomic_update
KERNEL(count_atomically) { PLACE atomicAdd(to, 1); }  //! a_plain_and_an_atomic_update launch_race: atomic update at faults.cu or read at faults.cu or write at faults.cu
template <bool mended> void a_plain_and_an_atomic_update(Work &w) {
    if (mended) launch(count_atomically, w.first, w.a, w.b);
    else launch(count_one, w.first, w.a, w.b, 1);
    launch(count_atomically, w.second, w.a, w.b);
}

KERNEL(into_pinned) { PLACE to[i] = i; }  //~ memory_of_the_host
KERNEL(out_of_pinned) { PLACE to[i] = from[i]; }  //! memory_of_the_host launch_race: nothing orders the two launches
template <bool mended> void memory_of_the_host(Work &w) {
    launch(into_pinned, w.first, w.pinned, w.b);
    if (mended) cudaStreamWaitEvent(w.apart, recorded(w, w.first));
    launch(out_of_pinned, w.apart, w.c, w.pinned);
}

// ---- flags: kernels that run at the same time ----

template <cuda::memory_order order> __global__ void tells(int *to, int *flag) {
    const int i = threadIdx.x;
    to[i] = i;  //~ a_flag_between_streams  //~ a_flag_in_pinned_memory
    __syncthreads();
    if (i == 0) cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, order);
}
template <cuda::memory_order order> __global__ void is_told(int *to, const int *from, int *flag) {
    const int i = threadIdx.x;
    if (i == 0) while (!cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(order)) {}
    __syncthreads();
    to[i] = from[i];  //! a_flag_between_streams launch_race: nothing orders the two launches
}
template <bool mended> void a_flag_between_streams(Work &w) {
    constexpr auto in = mended ? cuda::memory_order_acquire : cuda::memory_order_relaxed;
    constexpr auto out = mended ? cuda::memory_order_release : cuda::memory_order_relaxed;
    is_told<in><<<1, 96, 0, w.first>>>(w.c, w.a, w.b);
    tells<out><<<1, 96, 0, w.second>>>(w.a, w.b);
}

__global__ void is_told_by_the_host(int *to, const int *from, int *flag) {
    const int i = threadIdx.x;
    if (i == 0) while (!*(volatile int *)flag) {}
    __syncthreads();
    to[i] = from[i];  //! a_flag_in_pinned_memory launch_race: nothing orders the two launches
}
template <bool mended> void a_flag_in_pinned_memory(Work &w) {
    *w.pinned = 0;
    is_told_by_the_host<<<1, 96, 0, w.first>>>(w.c, w.a, w.pinned);
    tells<mended ? cuda::memory_order_release : cuda::memory_order_relaxed><<<1, 96, 0, w.second>>>(w.a, w.pinned);
}

// ---- the host waits ----

KERNEL(one_side) { PLACE to[i] = i; }  //~ waits_for_the_wrong_stream
KERNEL(other_side) { PLACE to[i] = from[i]; }  //! waits_for_the_wrong_stream launch_race: nothing orders the two launches
template <bool mended> void waits_for_the_wrong_stream(Work &w) {
    launch(one_side, w.first, w.a, w.b);
    cudaStreamSynchronize(mended ? w.first : w.apart);
    launch(other_side, w.second, w.c, w.a);
}

KERNEL(asked_for) { PLACE to[i] = i; }  //~ asks_once
KERNEL(goes_on) { PLACE to[i] = from[i]; }  //! asks_once launch_race: nothing orders the two launches
template <bool mended> void asks_once(Work &w) {
    launch(asked_for, w.first, w.a, w.b);
    launch(asked_for, w.first, w.b, w.b);
    while (cudaStreamQuery(w.first) == cudaErrorNotReady && mended) {}
    launch(goes_on, w.second, w.c, w.b);
}

KERNEL(recorded_work) { PLACE to[i] = i; }  //~ an_event_that_comes_too_early
KERNEL(next_work) { PLACE to[i] = from[i]; }  //! an_event_that_comes_too_early launch_race: nothing orders the two launches
template <bool mended> void an_event_that_comes_too_early(Work &w) {
    if (!mended) cudaEventRecord(w.event, w.first);
    launch(recorded_work, w.first, w.a, w.b);
    if (mended) cudaEventRecord(w.event, w.first);
    cudaEventSynchronize(w.event);
    launch(next_work, w.second, w.c, w.a);
}

static std::atomic<bool> told;
KERNEL(before_the_function) { PLACE to[i] = i; }  //~ waits_for_a_host_function
KERNEL(behind_the_function) { PLACE to[i] = from[i]; }  //! waits_for_a_host_function launch_race: nothing orders the two launches
template <bool mended> void waits_for_a_host_function(Work &w) {
    launch(before_the_function, w.first, w.a, w.b);
    cudaLaunchHostFunc(w.first, [](void *) { told = true; }, nullptr);
    while (mended && !told) std::this_thread::yield();
    launch(behind_the_function, w.second, w.c, w.a);
}

__global__ void tells_the_host(int *to, volatile int *flag) {
    to[threadIdx.x] = 1;  //~ polls_its_own_memory
    __syncthreads();
    __threadfence_system();
    if (threadIdx.x == 0) *flag = 1;
}
KERNEL(behind_the_flag) { PLACE to[i] = from[i]; }  //! polls_its_own_memory launch_race: nothing orders the two launches
template <bool mended> void polls_its_own_memory(Work &w) {
    volatile int *flag = w.pinned;
    *flag = 0;
    tells_the_host<<<1, 96, 0, w.first>>>(w.a, w.pinned);
    while (mended && !*flag) std::this_thread::yield();
    launch(behind_the_flag, w.second, w.c, w.a);
}

// ---- copies, fills, frees ----

KERNEL(uses_the_copy) { PLACE to[i] = from[i]; }  //! a_copy_in_another_stream launch_race: cudaMemcpyAsync in stream 1 wrote | nothing orders the two.
template <bool mended> void a_copy_in_another_stream(Work &w) {
    cudaMemcpyAsync(w.a, w.pinned, kCount * sizeof(int), cudaMemcpyHostToDevice, w.first);
    launch(uses_the_copy, mended ? w.first : w.second, w.c, w.a);
}

KERNEL(makes_results) { PLACE to[i] = i; }  //! results_copied_too_early launch_race: read by cudaMemcpyAsync in stream 2 | wrote at faults.cu
template <bool mended> void results_copied_too_early(Work &w) {
    launch(makes_results, w.first, w.a, w.b);
    if (mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    cudaMemcpyAsync(w.pinned, w.a, kCount * sizeof(int), cudaMemcpyDeviceToHost, w.second);
}

KERNEL(counts) { PLACE atomicAdd(to, 1); }  //! reset_in_another_stream launch_race: cudaMemsetAsync in stream 1 wrote
template <bool mended> void reset_in_another_stream(Work &w) {
    cudaMemsetAsync(w.a, 0, 4, w.first);
    if (mended) cudaStreamWaitEvent(w.apart, recorded(w, w.first));
    launch(counts, w.apart, w.a, w.b);
}

template <bool mended> void copies_to_one_place(Work &w) {  //! copies_to_one_place launch_race: write by cudaMemcpyAsync in stream 2 of global memory that cudaMemcpyAsync in stream 1 wrote
    cudaMemcpyAsync(w.c, w.a, kCount * sizeof(int), cudaMemcpyDeviceToDevice, w.first);
    cudaMemcpyAsync(w.c, w.b, kCount * sizeof(int), cudaMemcpyDeviceToDevice, mended ? w.first : w.second);
}

KERNEL(uses_the_memory) { PLACE to[i] = from[i]; }  //! freed_in_another_stream launch_race: free by cudaFreeAsync in stream 2 | read at faults.cu | byte 0 of the 4,000 bytes | cudaFreeAsync in the stream that uses
template <bool mended> void freed_in_another_stream(Work &w) {
    int *memory;
    cudaMallocAsync(&memory, kCount * sizeof(int), w.first);
    launch(uses_the_memory, w.first, w.c, memory);
    cudaFreeAsync(memory, mended ? w.first : w.second);
}

KERNEL(fills_the_memory) { PLACE to[i] = i; }  //! used_before_its_allocation launch_race: write at faults.cu | in stream 2 | cudaMallocAsync in stream 1 allocated | byte 0 of the 4,000 bytes | an event behind that
template <bool mended> void used_before_its_allocation(Work &w) {
    int *memory;
    cudaMallocAsync(&memory, kCount * sizeof(int), w.first);
    if (mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    launch(fills_the_memory, w.second, memory, w.a);
    cudaStreamWaitEvent(w.first, recorded(w, w.second));
    cudaFreeAsync(memory, w.first);
}

// ---- graphs ----

KERNEL(branch_writes) { PLACE to[i] = i; }  //~ branches_of_a_graph
KERNEL(branch_reads) { PLACE to[i] = from[i]; }  //! branches_of_a_graph launch_race: branches of a graph
template <bool mended> void branches_of_a_graph(Work &w) {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaGraphNode_t root, one, two;
    int n = kCount;
    const int *from = w.a;
    void *writes[] = {&w.a, &w.b, &n}, *reads[] = {&w.c, &from, &n};
    cudaKernelNodeParams p{};
    p.gridDim = kBlocks;
    p.blockDim = 128;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&root, graph, nullptr, 0);
    p.func = reinterpret_cast<void *>(branch_writes);
    p.kernelParams = writes;
    cudaGraphAddKernelNode(&one, graph, &root, 1, &p);
    p.func = reinterpret_cast<void *>(branch_reads);
    p.kernelParams = reads;
    cudaGraphAddKernelNode(&two, graph, mended ? &one : &root, 1, &p);
    cudaGraphInstantiate(&instance, graph, 0);
    cudaGraphLaunch(instance, w.first);
    cudaGraphLaunch(instance, w.first);
}

KERNEL(captured_writes) { PLACE to[i] = i; }  //~ branches_of_a_capture
KERNEL(captured_reads) { PLACE to[i] = from[i]; }  //! branches_of_a_capture launch_race: branches of a graph
template <bool mended> void branches_of_a_capture(Work &w) {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaEvent_t end;
    cudaEventCreate(&end);
    cudaStreamBeginCapture(w.first, cudaStreamCaptureModeGlobal);
    if (!mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    launch(captured_writes, w.first, w.a, w.b);
    if (mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    launch(captured_reads, w.second, w.c, w.a);
    cudaEventRecord(end, w.second);
    cudaStreamWaitEvent(w.first, end);
    cudaStreamEndCapture(w.first, &graph);
    cudaGraphInstantiate(&instance, graph, 0);
    cudaGraphLaunch(instance, w.apart);
}

KERNEL(graph_writes) { PLACE to[i] = i; }  //~ a_graph_and_a_stream
KERNEL(stream_reads) { PLACE to[i] = from[i]; }  //! a_graph_and_a_stream launch_race: nothing orders the two launches
template <bool mended> void a_graph_and_a_stream(Work &w) {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaStreamBeginCapture(w.first, cudaStreamCaptureModeGlobal);
    launch(graph_writes, w.first, w.a, w.b);
    cudaStreamEndCapture(w.first, &graph);
    cudaGraphInstantiate(&instance, graph, 0);
    cudaGraphLaunch(instance, w.first);
    if (mended) cudaStreamWaitEvent(w.second, recorded(w, w.first));
    launch(stream_reads, w.second, w.c, w.a);
}

// Launches of one instance wait for each other in whatever streams they are, those of two do not.
KERNEL(launched_twice) { PLACE to[i] += from[i]; }  //! two_instances_of_a_graph launch_race: in stream 1 | in stream 2 | nothing orders the two launches
template <bool mended> void two_instances_of_a_graph(Work &w) {
    cudaGraph_t graph;
    cudaGraphExec_t one, other;
    cudaStreamBeginCapture(w.first, cudaStreamCaptureModeGlobal);
    launch(launched_twice, w.first, w.a, w.b);
    cudaStreamEndCapture(w.first, &graph);
    cudaGraphInstantiate(&one, graph, 0);
    cudaGraphInstantiate(&other, graph, 0);
    cudaGraphLaunch(one, w.first);
    cudaGraphLaunch(mended ? one : other, w.second);
    cudaGraphLaunch(one, w.first);
}

// ---- programmatic dependent launches ----

template <class Kernel>
void launch_dependent(Kernel kernel, cudaStream_t stream, int *to, const int *from) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = kBlocks;
    config.blockDim = 128;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, to, from, kCount);
}

KERNEL(primary) { PLACE to[i] = i; cudaTriggerProgrammaticLaunchCompletion(); }  //~ dependent_without_a_wait
template <bool mended> KERNEL(secondary) {
    if (mended) cudaGridDependencySynchronize();
    PLACE to[i] = from[i];  //! dependent_without_a_wait launch_race: read at faults.cu | wrote at faults.cu | cudaGridDependencySynchronize()
}
template <bool mended> void dependent_without_a_wait(Work &w) {
    launch(primary, w.first, w.a, w.b);
    launch_dependent(secondary<mended>, w.first, w.c, w.a);
}

// A launch that lets nobody begin before its end needs no wait behind it: so libraries for older devices are built.
template <bool mended> KERNEL(lets_others_begin) {
    PLACE to[i] = i;  //~ no_wait_behind_a_trigger
    if constexpr (!mended) cudaTriggerProgrammaticLaunchCompletion();
}
KERNEL(waits_for_nothing) { PLACE to[i] = from[i]; }  //! no_wait_behind_a_trigger launch_race: cudaGridDependencySynchronize()
template <bool mended> void no_wait_behind_a_trigger(Work &w) {
    launch(lets_others_begin<mended>, w.first, w.a, w.b);
    launch_dependent(waits_for_nothing, w.first, w.c, w.a);
}

KERNEL(primary_of_a_barrier) { PLACE to[i] = i; cudaTriggerProgrammaticLaunchCompletion(); }  //~ reads_before_the_wait
template <bool mended> KERNEL(one_thread_waits) {
    const int early = mended ? 0 : from[threadIdx.x];  //! reads_before_the_wait launch_race: cudaGridDependencySynchronize()
    if (threadIdx.x == 0) cudaGridDependencySynchronize();
    __syncthreads();
    PLACE to[i] = from[i] + early;
}
template <bool mended> void reads_before_the_wait(Work &w) {
    launch(primary_of_a_barrier, w.first, w.a, w.b);
    launch_dependent(one_thread_waits<mended>, w.first, w.c, w.a);
}

KERNEL(still_reads) { cudaTriggerProgrammaticLaunchCompletion(); PLACE to[i] = from[i]; }  //~ overwrites_before_the_wait
template <bool mended> KERNEL(overwrites) {
    if (mended) cudaGridDependencySynchronize();
    PLACE to[i] = 1;  //! overwrites_before_the_wait launch_race: write at faults.cu | read at faults.cu
}
template <bool mended> void overwrites_before_the_wait(Work &w) {
    launch(still_reads, w.first, w.c, w.a);
    launch_dependent(overwrites<mended>, w.first, w.a, w.b);
}

struct Case {
    const char *name;
    void (*run[2])(Work &);
};
#define CASE(name) {#name, {name<false>, name<true>}}
static const Case cases[] = {
    CASE(two_streams),
    CASE(overwritten_while_read),
    CASE(one_int_in_common),
    CASE(recorded_before_the_launch),
    CASE(a_stream_that_does_not_block),
    CASE(the_default_stream_between),
    CASE(a_plain_and_an_atomic_update),
    CASE(memory_of_the_host),
    CASE(a_flag_between_streams),
    CASE(a_flag_in_pinned_memory),
    CASE(waits_for_the_wrong_stream),
    CASE(asks_once),
    CASE(an_event_that_comes_too_early),
    CASE(waits_for_a_host_function),
    CASE(polls_its_own_memory),
    CASE(a_copy_in_another_stream),
    CASE(results_copied_too_early),
    CASE(reset_in_another_stream),
    CASE(copies_to_one_place),
    CASE(freed_in_another_stream),
    CASE(used_before_its_allocation),
    CASE(branches_of_a_graph),
    CASE(branches_of_a_capture),
    CASE(a_graph_and_a_stream),
    CASE(two_instances_of_a_graph),
    CASE(dependent_without_a_wait),
    CASE(no_wait_behind_a_trigger),
    CASE(reads_before_the_wait),
    CASE(overwrites_before_the_wait),
};

int main(int argc, char **argv) {
    Work w;
    for (int **p : {&w.a, &w.b, &w.c}) cudaMalloc(p, kCount * sizeof(int));
    cudaMallocHost(&w.pinned, kCount * sizeof(int));
    cudaStreamCreate(&w.first);
    cudaStreamCreate(&w.second);
    cudaStreamCreateWithFlags(&w.apart, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&w.event, cudaEventDisableTiming);
    for (const Case &it : cases)
        if (argc >= 3 && !std::strcmp(argv[1], it.name))
            return run_fault(
                argc, argv, w.c, kCount * sizeof(int),
                [&](bool) {
                    for (int *p : {w.a, w.b, w.c}) cudaMemset(p, 0, kCount * sizeof(int));
                    cudaDeviceSynchronize();
                },
                [&](bool mended) { it.run[mended](w); });
    return 2;
}
