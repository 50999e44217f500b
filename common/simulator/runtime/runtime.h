// The state behind the CUDA runtime API: one simulated device, its memory, streams, loaded code and errors.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "machine/launch.h"
#include "memory/global_memory.h"
#include "report/report_file.h"
#include "runtime/arrays.h"
#include "runtime/cuda_api.h"
#include "runtime/devices.h"
#include "runtime/events.h"
#include "runtime/graphs.h"
#include "runtime/idle.h"
#include "runtime/launch_order.h"
#include "runtime/modules.h"
#include "runtime/profile.h"
#include "runtime/scheduler.h"

namespace warpsim::rt {

// Ends an API call with this error. Whoever throws it has printed what a person needs to know.
struct Failure {
    cudaError_t code;
};

// Prints "warpsim: <text>\n" to stderr in one piece.
void say(const std::string &text);

class Runtime {
  public:
    // The process's runtime, made on first use; nullptr where WARPSIM_* settings are wrong (said once). It is never
    // destroyed: a program's own static destructors may still call the API.
    static Runtime *get();

    std::mutex mutex;  // held by every API call, and while kernels run; let go while host functions run
    const Options options;
    const Profile profile;
    std::unique_ptr<GlobalMemory> memory;  // of all devices, as the host sees it
    std::unique_ptr<Devices> devices;
    LaunchOrder order;
    Modules modules;
    Scheduler scheduler;
    Events events;
    Graphs graphs;
    Arrays arrays;
    uint64_t captures = 0;
    ReportFile reports, traces;
    IdleProgress idle{*this};
    // Set by a launch that failed. From then on every call returns it, as on a GPU, until cudaDeviceReset.
    cudaError_t sticky = cudaSuccess;
    size_t stack_limit = 1024, printf_limit = 1 << 20, heap_limit = 8 << 20;
    size_t pending_launch_limit = 2048;  // of kernels
    unsigned device_flags = 0;
    uint32_t primaries_used = 0;  // a bit for each device whose primary context a call of the runtime API has made

    // The devices are as new: no memory, no streams, no error; code is loaded again when it is needed.
    void reset();
    // The same of one of several devices, where there is no error.
    void reset(unsigned device);
    // What a call allocates from that names no device.
    GlobalMemory &current_memory() { return devices->memory(current_device()); }
    // Records a failed launch and forgets all that was queued behind it.
    void fail(cudaError_t code);

    const int process;  // that made this: a fork's child has no device, as with CUDA

  private:
    explicit Runtime(const Options &);
    static Runtime *create();
};

// What each host thread has for itself.
struct ThreadState {
    ThreadState();
    ~ThreadState();
    unsigned device = 0;  // that cudaSetDevice has chosen
    cudaError_t last_error = cudaSuccess;
    bool in_host_function = false;
    bool per_thread_stream = false;                               // stream 0 is its own (runtime/per_thread.h)
    std::map<unsigned, std::shared_ptr<Stream>> default_streams;  // by device, for --default-stream per-thread
    cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
    bool in_driver_call = false;   // the driver's functions call the runtime's
    bool has_primary = false;      // a call of the runtime API has made the primary context this thread's
    bool undone = false;           // by note_undone(): nothing has asked since
    std::string *heard = nullptr;  // say() adds its lines here, too
};
ThreadState &this_thread();
// How many host threads there are that have made a call.
unsigned host_threads();

// A call of the runtime API makes the primary context of the thread's device, and makes it the thread's.
inline void use_primary(Runtime &runtime) {
    ThreadState &thread = this_thread();
    if (thread.in_driver_call) return;
    thread.has_primary = true;
    runtime.primaries_used |= 1u << thread.device;
}

// Notes an error for cudaGetLastError and returns it.
cudaError_t record(cudaError_t code);
// Inside a catch block: the error code of the exception, and a message where it is not a Failure.
cudaError_t code_of_exception();

// A host function must not ask for work or for memory, nor wait: throws Failure within one, and says so once.
void refuse_in_host_function();

// Work that this thread has asked for is not done, and why. The report names it if the program ends and the thread has
// not asked for the error (cudaGetLastError). The runtime's lock is held.
void note_undone(const std::string &why);
void say_undone(const std::string &why);  // and says so

// Says that `bytes` are more than the device has left.
void say_out_of_memory(const Runtime &, uint64_t bytes);

// Runs an API call's body under the lock. Wants a device that works unless `always` is set.
template <class F>
cudaError_t api(F body, bool always = false) {
    Runtime *runtime = Runtime::get();
    if (!runtime) return record(cudaErrorInitializationError);
    const std::lock_guard guard(runtime->mutex);
    if (!always) use_primary(*runtime);
    if (runtime->sticky != cudaSuccess && !always) return record(runtime->sticky);
    cudaError_t code;
    try {
        code = body(*runtime);
        runtime->scheduler.run_ahead();
    } catch (...) {
        code = code_of_exception();
    }
    if (runtime->sticky != cudaSuccess && !always) code = runtime->sticky;
    return record(code);
}

// The same for a call that answers from tables only: it must work where a launch has failed, too.
template <class F>
cudaError_t answer(F body) {
    return api(body, true);
}

// As api, for a call about one stream.
template <class F>
cudaError_t with_stream(cudaStream_t handle, F body) {
    return api([&](Runtime &runtime) { return body(runtime, runtime.scheduler.resolve(handle)); });
}

// As api, for a call that waits, which host functions must not make.
template <class F>
cudaError_t api_waiting(F body) {
    return api([&](Runtime &runtime) {
        refuse_in_host_function();
        const cudaError_t code = body(runtime);
        runtime.reports.synchronized();
        runtime.traces.synchronized();
        return code;
    });
}

}  // namespace warpsim::rt
