#include "runtime/device_work.h"

#include "core/text.h"
#include "lower/module.h"
#include "runtime/copy.h"
#include "runtime/launch.h"

namespace warpsim::rt {
namespace {

constexpr unsigned kMostDepth = 24;  // of launches within launches, as on a GPU

unsigned depth = 0;  // under the runtime's lock

// One launch deeper, on the parent's device, whatever device the thread has chosen that waits.
class Deeper {
  public:
    explicit Deeper(unsigned device) : before_(this_thread().device) {
        ++depth;
        this_thread().device = device;
    }
    ~Deeper() {
        --depth;
        this_thread().device = before_;
    }
    Deeper(const Deeper &) = delete;
    Deeper &operator=(const Deeper &) = delete;

  private:
    const unsigned before_;
};

[[noreturn]] void fail(const Kernel &parent, cudaError_t code, const std::string &why) {
    say("kernel " + parent.display_name + " asked for " + why);
    throw Failure{code};
}

Kernel &kernel_at(Runtime &runtime, const Kernel &parent, uint64_t address) {
    const std::string name = kernel_name(*parent.library->module, address);
    if (name.empty())
        fail(parent, cudaErrorInvalidDeviceFunction, "a launch of " + hex(address) + ", which is no kernel");
    Library *const library = parent.first ? parent.first->library : parent.library;
    return *runtime.modules.find_kernel(runtime.modules.kernel_of(library, name));
}

void run_launch(Runtime &runtime, const Kernel &parent, const DeviceWork &work) {
    Kernel &kernel = kernel_at(runtime, parent, work.kernel);
    if (depth > kMostDepth)
        fail(parent, cudaErrorLaunchMaxDepthExceeded,
             "a launch of " + kernel.display_name + " that is " + std::to_string(depth) + " launches deep, and " +
                 std::to_string(kMostDepth) + " are possible");
    const Program &program = runtime.modules.program(kernel);
    if (program.parameter_bytes > work.parameters.size())
        fail(parent, cudaErrorNotSupported,
             "a launch of " + kernel.display_name + ", whose parameters take more than " +
                 std::to_string(work.parameters.size()) + " bytes");
    std::vector<void *> arguments;
    for (const Program::Parameter &parameter : program.parameters)
        arguments.push_back(const_cast<std::byte *>(work.parameters.data()) + parameter.offset);
    const LaunchRequest request{.grid = {work.grid[0], work.grid[1], work.grid[2]},
                                .block = {work.block[0], work.block[1], work.block[2]},
                                .shared = work.dynamic_shared};
    make_launch(runtime, request, &kernel, arguments.data()).run();
}

// Local and shared memory of a thread that has ended is no place for a copy, and neither is the host's.
void check_memory(const Runtime &runtime, const Kernel &parent, const char *what, uint64_t address, uint64_t bytes) {
    const GlobalMemory &memory = runtime.devices->memory(parent.library->device);
    const AllocationView *view = memory.find(address);
    if (!view || !view->contains(address, bytes))
        fail(parent, cudaErrorInvalidValue,
             std::string(what) + std::to_string(bytes) + " bytes at " + hex(address) + ", which are " +
                 memory.explain(address, bytes));
}

// What it touches may meet what other streams do, as of any operation.
void perform(Runtime &runtime, const Operation &operation) {
    operation.run();
    if (runtime.scheduler.running().collects && !operation.regions.empty())
        runtime.order.add_regions(runtime, runtime.scheduler.touched(operation.call), operation.regions);
}

void run_one(Runtime &runtime, const Kernel &parent, const DeviceWork &work) {
    if (work.kind == DeviceWork::Kind::launch) return run_launch(runtime, parent, work);
    if (!work.bytes) return;
    check_memory(runtime, parent, work.kind == DeviceWork::Kind::copy ? "a copy to " : "a fill of ", work.to,
                 work.bytes);
    if (work.kind == DeviceWork::Kind::fill)
        return perform(runtime, make_fill(runtime, "cudaMemsetAsync", {work.to}, {work.bytes}, work.value, 1));
    check_memory(runtime, parent, "a copy from ", work.from, work.bytes);
    perform(runtime, make_copy(runtime, "cudaMemcpyAsync", {work.to}, {work.from}, {work.bytes}, cudaMemcpyDefault));
}

}  // namespace

bool in_device_work() {
    return depth > 0;
}

void run_device_work(Runtime &runtime, const Kernel &parent, std::vector<DeviceWork> all) {
    const Deeper deeper(parent.library->device);
    for (const bool tail : {false, true}) {
        for (const DeviceWork &work : all) {
            if (work.tail != tail) continue;
            if (runtime.sticky != cudaSuccess) return;
            try {
                run_one(runtime, parent, work);
            } catch (const Failure &failure) {
                runtime.fail(failure.code);
            }
        }
    }
}

}  // namespace warpsim::rt
