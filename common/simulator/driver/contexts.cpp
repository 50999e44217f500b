#include "driver/contexts.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/call.h"

namespace warpsim::driver {
namespace {

struct State {
    std::mutex mutex;  // never held while the runtime is called
    std::map<const Context *, std::unique_ptr<Context>> contexts;
    std::map<int, Context *> primary;
    std::map<const void *, std::pair<Resource, Context *>> resources;
    unsigned long long next_id = 1;
    std::atomic<bool> initialized = false;
};

// Never destroyed: a program's own static destructors may still call the driver.
State &state() {
    static State *made = new State;
    return *made;
}

thread_local std::vector<Context *> stack;

// A bit for each device.
uint32_t primaries_of_runtime() {
    rt::Runtime *runtime = rt::Runtime::get();
    if (!runtime) return 0;
    const std::lock_guard guard(runtime->mutex);
    return runtime->primaries_used;
}

bool runtime_has_primary(int device) {
    return primaries_of_runtime() >> device & 1;
}

Context *add(int device, unsigned flags, bool primary) {
    State &s = state();
    auto made = std::make_unique<Context>(
        Context{.device = device, .primary = primary, .flags = flags, .retained = 0, .id = s.next_id++});
    Context *context = made.get();
    s.contexts[context] = std::move(made);
    return context;
}

int runtime_device() {
    int device = 0;
    check(cudaGetDevice(&device));
    return device;
}

// The runtime's current device follows the current context.
void follow(const Context &context) {
    if (runtime_device() != context.device) check(cudaSetDevice(context.device));
}

bool exists(const Context *context) {
    State &s = state();
    const std::lock_guard guard(s.mutex);
    return s.contexts.contains(context);
}

void free_one(Resource kind, const void *handle) {
    void *const p = const_cast<void *>(handle);
    switch (kind) {
        case Resource::memory:
            cudaFree(p);
            break;
        case Resource::host_memory:
            cudaFreeHost(p);
            break;
        case Resource::module:
            cudaLibraryUnload(static_cast<cudaLibrary_t>(p));
            break;
        case Resource::stream:
            cudaStreamDestroy(static_cast<cudaStream_t>(p));
            break;
        case Resource::event:
            cudaEventDestroy(static_cast<cudaEvent_t>(p));
            break;
    }
}

void free_resources(const Context &context) {
    std::vector<std::pair<Resource, const void *>> owned;
    {
        State &s = state();
        const std::lock_guard guard(s.mutex);
        for (auto it = s.resources.begin(); it != s.resources.end();) {
            if (it->second.second != &context) {
                ++it;
                continue;
            }
            owned.emplace_back(it->second.first, it->first);
            it = s.resources.erase(it);
        }
    }
    for (const auto &[kind, handle] : owned) free_one(kind, handle);
}

}  // namespace

void initialize() {
    state().initialized = true;
}

bool is_initialized() {
    return state().initialized || primaries_of_runtime();
}

Context *current_context() {
    if (stack.empty()) {
        if (!rt::this_thread().has_primary || !runtime_has_primary(runtime_device())) return nullptr;
        stack.push_back(&primary_context(runtime_device()));
    }
    Context *context = stack.back();
    want(exists(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    // cudaSetDevice makes the other device's primary context current.
    if (rt::this_thread().has_primary && runtime_device() != context->device)
        context = stack.back() = &primary_context(runtime_device());
    want(!context->primary || is_active(*context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return context;
}

Context &find_context(CUcontext handle) {
    auto *context = reinterpret_cast<Context *>(handle);
    want(exists(context), CUDA_ERROR_INVALID_CONTEXT);
    return *context;
}

void set_current(Context *context) {
    if (!context) {
        if (!stack.empty()) stack.pop_back();
        if (stack.empty()) rt::this_thread().has_primary = false;
        return;
    }
    follow(*context);
    if (stack.empty()) stack.push_back(context);
    stack.back() = context;
}

void push_current(Context &context) {
    current_context();  // what the runtime made current is below it
    follow(context);
    stack.push_back(&context);
}

Context &pop_current() {
    Context *context = current_context();
    want(context, CUDA_ERROR_INVALID_CONTEXT);
    stack.pop_back();
    if (stack.empty()) {
        rt::this_thread().has_primary = false;
    } else if (exists(stack.back())) {
        follow(*stack.back());
    }
    return *context;
}

Context &create_context(int device, unsigned flags) {
    Context *context;
    {
        State &s = state();
        const std::lock_guard guard(s.mutex);
        context = add(device, flags, false);
    }
    push_current(*context);
    return *context;
}

void destroy_context(Context &context) {
    want(!context.primary, CUDA_ERROR_INVALID_CONTEXT);
    {
        const OnDevice scope(context.device);
        cudaDeviceSynchronize();  // an error of its work is no reason to keep it
        free_resources(context);
    }
    if (!stack.empty() && stack.back() == &context) pop_current();
    State &s = state();
    const std::lock_guard guard(s.mutex);
    s.contexts.erase(&context);
}

Context &primary_context(int device) {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    want(device >= 0 && device < count, CUDA_ERROR_INVALID_DEVICE);
    State &s = state();
    const std::lock_guard guard(s.mutex);
    Context *&context = s.primary[device];
    if (!context) context = add(device, 0, true);
    return *context;
}

bool is_active(const Context &primary) {
    State &s = state();
    {
        const std::lock_guard guard(s.mutex);
        if (primary.retained) return true;
    }
    return runtime_has_primary(primary.device);
}

void retain_primary(Context &primary) {
    State &s = state();
    const std::lock_guard guard(s.mutex);
    ++primary.retained;
}

void release_primary(Context &primary) {
    bool last;
    {
        State &s = state();
        const std::lock_guard guard(s.mutex);
        want(primary.retained, CUDA_ERROR_INVALID_CONTEXT);
        last = --primary.retained == 0;
    }
    if (!last || runtime_has_primary(primary.device)) return;
    const OnDevice scope(primary.device);
    cudaDeviceSynchronize();
    free_resources(primary);
}

OnDevice::OnDevice(int device) : before_(rt::this_thread().device) {
    rt::this_thread().device = static_cast<unsigned>(device);
}

OnDevice::~OnDevice() {
    rt::this_thread().device = before_;
}

void own(Resource kind, const void *handle) {
    Context *context = current_context();
    State &s = state();
    const std::lock_guard guard(s.mutex);
    s.resources[handle] = {kind, context};
}

void disown(const void *handle) {
    State &s = state();
    const std::lock_guard guard(s.mutex);
    s.resources.erase(handle);
}

Context *owner_of(const void *handle) {
    {
        State &s = state();
        const std::lock_guard guard(s.mutex);
        const auto found = s.resources.find(handle);
        if (found != s.resources.end()) return found->second.second;
    }
    return current_context();
}

}  // namespace warpsim::driver
