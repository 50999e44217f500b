// Contexts: one primary context for each device, which the runtime uses, and those that programs create. All contexts
// of a device share its memory and its streams; what was made in one goes when it is destroyed.
#pragma once

#include "driver/cuda_driver.h"

namespace warpsim::driver {

struct Context {
    int device = 0;
    bool primary = false;
    unsigned flags = 0;
    unsigned retained = 0;  // of a primary context
    unsigned long long id = 0;
};

void initialize();
// By cuInit, or by a call of the runtime.
bool is_initialized();

// The thread's current context, or null. Throws Refusal{CUDA_ERROR_CONTEXT_IS_DESTROYED}.
Context *current_context();
inline CUcontext handle_of(Context *context) {
    return reinterpret_cast<CUcontext>(context);
}
// Throws Refusal{CUDA_ERROR_INVALID_CONTEXT}.
Context &find_context(CUcontext);

// null: the thread has none.
void set_current(Context *);
void push_current(Context &);
// Throws Refusal{CUDA_ERROR_INVALID_CONTEXT} where there is none.
Context &pop_current();

Context &create_context(int device, unsigned flags);
// Waits for the device, and frees what was made in the context.
void destroy_context(Context &);

// Throws Refusal{CUDA_ERROR_INVALID_DEVICE}.
Context &primary_context(int device);
bool is_active(const Context &primary);
void retain_primary(Context &);
// Frees what was made in it once nobody uses it. Throws Refusal{CUDA_ERROR_INVALID_CONTEXT} where nobody does.
void release_primary(Context &);

// Handles and addresses that were made while a context was current, which end with it.
enum class Resource { memory, host_memory, module, stream, event };
void own(Resource, const void *);
void disown(const void *);
// While it lives, the thread's device is another one, without its context being current.
class OnDevice {
  public:
    explicit OnDevice(int device);
    ~OnDevice();
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

  private:
    const unsigned before_;
};

// The context that owns it, or the current one.
Context *owner_of(const void *);

}  // namespace warpsim::driver
