#include "runtime/runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include "report/report.h"
#include "runtime/graph_memory.h"
#include "runtime/not_supported.h"

namespace warpsim::rt {
namespace {

uint64_t memory_limit(const Options &options, const Profile &profile) {
    if (options.max_memory) return std::min(options.max_memory, profile.memory_bytes);
    // No more than this machine has: a program that takes what is free must not bring it down.
    const uint64_t host = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return std::min(profile.memory_bytes, host / options.devices);
}

std::string folder_of(const std::string &path) {
    return path.substr(0, path.find_last_of('/') + 1);
}

// The simulator's own libcuda.so.1 lies beside this library.
bool is_ours(const std::string &path) {
    Dl_info info{};
    return dladdr(reinterpret_cast<const void *>(&is_ours), &info) && info.dli_fname &&
           folder_of(path) == folder_of(info.dli_fname);
}

// Libraries of machine code. Their calls cannot work here, so name them; and a driver that is not this one.
int warn_of_library(dl_phdr_info *info, size_t, void *) {
    static constexpr const char *kLibraries[] = {"libcublas.so",   "libcublasLt.so", "libcudnn.so",
                                                 "libcufft.so",    "libcurand.so",   "libcusolver.so",
                                                 "libcusparse.so", "libnccl.so",     "libcuda.so"};
    const std::string path = info->dlpi_name ? info->dlpi_name : "";
    const std::string name = path.substr(path.find_last_of('/') + 1);
    for (const char *library : kLibraries) {
        if (name.rfind(library, 0) != 0 || is_ours(path)) continue;
        say("this program uses " + name +
            ", which has no PTX and bypasses the CUDA runtime: its calls will fail on the "
            "simulator");
    }
    return 0;
}

// The device's profile, with as many multiprocessors as are asked for.
Profile simulated(const Options &options) {
    Profile profile = find_profile(options.device);
    if (options.multiprocessors) profile.multiprocessors = options.multiprocessors;
    return profile;
}

void at_exit() {
    Runtime *runtime = Runtime::get();
    if (runtime->process != getpid()) return;
    runtime->idle.stop();
    // Another thread may be in a call that never ends; what it holds is not needed to say goodbye.
    const std::unique_lock guard(runtime->mutex, std::try_to_lock);
    if (!guard) return;
    const uint64_t pending = runtime->scheduler.pending_launches();
    if (pending) {
        say(std::to_string(pending) + (pending == 1 ? " kernel launch was" : " kernel launches were") +
            " still queued when the program ended: nothing waited for " + (pending == 1 ? "it" : "them") +
            " (cudaDeviceSynchronize is missing)");
    }
    if (const uint64_t unasked = runtime->reports.host.unasked()) {
        say(std::to_string(unasked) + (unasked == 1 ? " call named above was" : " calls named above were") +
            " refused, and the program has ended without a cudaGetLastError() behind " +
            (unasked == 1 ? "it" : "them"));
    }
    runtime->reports.finish();
    runtime->traces.finish();
}

}  // namespace

void say(const std::string &text) {
    const std::string line = "warpsim: " + text + "\n";
    std::fflush(stdout);
    std::fwrite(line.data(), 1, line.size(), stderr);
    if (this_thread().heard) *this_thread().heard += text + "\n";
}

Runtime::Runtime(const Options &given)
    : options(given),
      profile(simulated(options)),
      memory(std::make_unique<GlobalMemory>(memory_limit(options, profile), options.devices)),
      devices(std::make_unique<Devices>(*memory, options.devices)),
      order(options),
      modules(profile),
      scheduler(mutex, options.schedule_seed, options.last_stream, options.devices),
      reports("WARPSIM_REPORT", options.report_path, launch_json, true),
      traces("WARPSIM_TRACE", options.trace_path, trace_json, false),
      process(getpid()) {}

Runtime *Runtime::create() {
    try {
        static Runtime *made = new Runtime(Options::from_environment());
        return made;
    } catch (const std::exception &error) {
        say(error.what());
        return nullptr;
    }
}

Runtime *Runtime::get() {
    static Runtime *runtime = [] {
        Runtime *made = create();
        if (made) {
            std::atexit(at_exit);
            dl_iterate_phdr(warn_of_library, nullptr);
        }
        return made;
    }();
    return runtime;
}

void Runtime::reset() {
    scheduler.abandon();
    scheduler.reset();
    events.clear();
    modules.unload_all();
    order.clear();
    memory = std::make_unique<GlobalMemory>(memory->limit(), options.devices);
    devices = std::make_unique<Devices>(*memory, options.devices);
    forget_graph_memory();
    arrays = {};
    sticky = cudaSuccess;
    primaries_used = 0;
}

void Runtime::reset(unsigned device) {
    scheduler.reset_device(device);
    events.clear(device);
    modules.unload(device);
    devices->forget(device);
    memory->release_all(device);
    primaries_used &= ~(1u << device);
}

void Runtime::fail(cudaError_t code) {
    if (sticky == cudaSuccess) sticky = code;
    scheduler.abandon();
    order.clear();
}

namespace {
std::atomic<unsigned> living_threads{0};
}

ThreadState::ThreadState() {
    ++living_threads;
}

ThreadState::~ThreadState() {
    --living_threads;
}

unsigned host_threads() {
    return living_threads;
}

ThreadState &this_thread() {
    thread_local ThreadState state;
    return state;
}

void say_out_of_memory(const Runtime &runtime, uint64_t bytes) {
    const GlobalMemory &memory = runtime.devices->memory(current_device());
    const uint64_t used = memory.used(), limit = memory.limit();
    say("out of device memory: " + std::to_string(bytes) + " bytes wanted, " + std::to_string(limit - used) + " of " +
        std::to_string(limit) + " free (WARPSIM_MAX_MEMORY sets the limit)");
}

void refuse_in_host_function() {
    if (!this_thread().in_host_function) return;
    static std::once_flag said;
    std::call_once(said, [] {
        say("a host function has made a CUDA call: none is allowed there, and it fails (cudaErrorNotPermitted)");
    });
    throw Failure{cudaErrorNotPermitted};
}

void note_undone(const std::string &why) {
    ThreadState &thread = this_thread();
    if (thread.in_driver_call) return;  // the driver's functions return their errors, and keep none
    if (thread.in_host_function) return Runtime::get()->reports.host.undone({}, why);  // nobody can ask
    thread.undone = true;
    Runtime::get()->reports.host.undone(std::this_thread::get_id(), why);
}

void say_undone(const std::string &why) {
    say(why);
    note_undone(why);
}

cudaError_t record(cudaError_t code) {
    if (code != cudaSuccess) this_thread().last_error = code;
    return code;
}

int not_supported(const char *name) {
    say(std::string(name) + " is not supported");
    return record(cudaErrorNotSupported);
}

cudaError_t code_of_exception() {
    try {
        throw;
    } catch (const Failure &failure) {
        return failure.code;
    } catch (const std::bad_alloc &) {
        say("out of host memory");
        return cudaErrorMemoryAllocation;
    } catch (const std::exception &error) {
        say(error.what());
        return cudaErrorUnknown;
    }
}

}  // namespace warpsim::rt
