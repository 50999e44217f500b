#include "device_runtime/device_runtime.h"

#include <algorithm>
#include <cstring>

#include "machine/context.h"
#include "machine/global_hazards.h"
#include "machine/late_stores.h"
#include "memory/global_memory.h"

namespace warpsim {
namespace {

using system_call::argument;
using system_call::for_each_lane;
using system_call::give_back;

// Of cudaError_t.
enum Error {
    kSuccess = 0,
    kInvalidValue = 1,
    kMemoryAllocation = 2,
    kInvalidConfiguration = 9,
    kPendingCountExceeded = 69,
    kInvalidDeviceFunction = 98,
    kInvalidResourceHandle = 400,
};

// Of cudaStream_t. What the program makes is numbered behind a mark of its own.
constexpr uint64_t kTailLaunch = 3, kFireAndForget = 4, kHandles = uint64_t{0x5dc0} << 48;
constexpr uint64_t kMostParameterBytes = 4096;
constexpr int kRuntimeVersion = 13000;

struct Dimensions {
    uint32_t x, y, z;
};

DeviceRuntime &runtime_of(Warp &w) {
    return context_of(w).owner->device_runtime;
}

// Gives the lane this result, which is its latest error if it is one.
void finish(Warp &w, const Op &op, unsigned lane, int code) {
    if (code != kSuccess) runtime_of(w).errors[context_of(w).linear_thread + lane] = code;
    give_back<int32_t>(w, op, lane, code);
}

bool is_stream(uint64_t stream) {
    return stream <= 2 || stream == kTailLaunch || stream == kFireAndForget || (stream & kHandles) == kHandles;
}

// Writes a result through a pointer of the program's.
template <class T>
bool write(Warp &w, const Op &op, unsigned lane, uint64_t address, T value) {
    const uint64_t window = address & kWindowMask, offset = address & ~kWindowMask;
    if (window == kLocalWindow) {
        if (offset > w.local_bytes || sizeof value > w.local_bytes - offset) return false;
        const size_t at = lane * w.local_bytes + offset;
        std::memcpy(w.local + at, &value, sizeof value);
        if (w.undefined_local) w.undefined_local->define(at, sizeof value);
        return true;
    }
    if (window == kSharedWindow) {
        if (offset > w.block->shared_bytes || sizeof value > w.block->shared_bytes - offset) return false;
        uint32_t at[kLanes];
        std::fill_n(at, kLanes, uint32_t(offset));
        if (w.block->shadow) w.block->shadow->access(w, op, Access::write, at, sizeof value, 1u << lane);
        std::memcpy(w.block->shared + offset, &value, sizeof value);
        return true;
    }
    show_stores(w);
    if (w.block->pending) w.block->pending->flush();
    const AllocationView *view = w.block->global->find(address);
    if (!view || !view->contains(address, sizeof value)) return false;
    std::memcpy(view->at(address), &value, sizeof value);
    return true;
}

int check_dimensions(const DeviceWork &work) {
    const uint32_t *g = work.grid, *b = work.block;
    const bool grid = g[0] && g[1] && g[2] && g[0] <= 0x7fffffff && g[1] <= 65535 && g[2] <= 65535;
    const bool block =
        b[0] && b[1] && b[2] && b[0] <= 1024 && b[1] <= 1024 && b[2] <= 64 && uint64_t{b[0]} * b[1] * b[2] <= 1024;
    return grid && block ? kSuccess : kInvalidConfiguration;
}

// Notes what is to be done later.
int enqueue(Warp &w, DeviceWork work, uint64_t stream) {
    if (!is_stream(stream)) return kInvalidResourceHandle;
    BlockContext &block = *context_of(w).owner;
    LaunchShared &launch = *block.worker->launch;
    if (launch.device_launches.fetch_add(1) >= launch.config->pending_launches) return kPendingCountExceeded;
    work.tail = stream == kTailLaunch;
    block.device_runtime.work.push_back(std::move(work));
    return kSuccess;
}

uint64_t allocate(Warp &w, uint64_t bytes) {
    const uint64_t address = w.block->program->module->heap->allocate(bytes);
    if (address) forget_accesses(w, address, bytes);
    return address;
}

DeviceWork launch_of(uint64_t kernel, const Dimensions &grid, const Dimensions &block, uint32_t shared) {
    DeviceWork work;
    work.kernel = kernel;
    work.dynamic_shared = shared;
    const uint32_t g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
    std::copy(g, g + 3, work.grid);
    std::copy(b, b + 3, work.block);
    return work;
}

// void *cudaGetParameterBufferV2(void *kernel, dim3 grid, dim3 block, unsigned shared)
void run_parameter_buffer(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        DeviceWork work = launch_of(argument<uint64_t>(w, op, lane, 0), argument<Dimensions>(w, op, lane, 1),
                                    argument<Dimensions>(w, op, lane, 2), argument<uint32_t>(w, op, lane, 3));
        int code = work.kernel ? check_dimensions(work) : kInvalidDeviceFunction;
        const uint64_t address = code == kSuccess ? allocate(w, kMostParameterBytes) : 0;
        if (code == kSuccess && !address) code = kPendingCountExceeded;  // each launch that is pending has a buffer
        if (address) {
            runtime_of(w).buffers[address] = std::move(work);
        } else {
            runtime_of(w).errors[context_of(w).linear_thread + lane] = code;
        }
        give_back<uint64_t>(w, op, lane, address);
    });
}

std::vector<std::byte> bytes_at(Warp &w, unsigned lane, uint64_t address, uint64_t bytes) {
    std::vector<std::byte> copy(bytes);
    if (!read_generic(w, lane, address, copy.data(), bytes)) copy.clear();
    return copy;
}

// cudaError_t cudaLaunchDeviceV2(void *parameters, cudaStream_t)
void run_launch(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const uint64_t address = argument<uint64_t>(w, op, lane, 0), stream = argument<uint64_t>(w, op, lane, 1);
        DeviceRuntime &runtime = runtime_of(w);
        const auto found = runtime.buffers.find(address);
        if (found == runtime.buffers.end()) return finish(w, op, lane, kInvalidValue);
        DeviceWork work = std::move(found->second);
        runtime.buffers.erase(found);
        work.parameters = bytes_at(w, lane, address, kMostParameterBytes);
        w.block->program->module->heap->release(address);
        finish(w, op, lane, enqueue(w, std::move(work), stream));
    });
}

void run_last_error(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const auto found = runtime_of(w).errors.find(context_of(w).linear_thread + lane);
        const int code = found == runtime_of(w).errors.end() ? int(kSuccess) : found->second;
        if (code) runtime_of(w).errors.erase(found);
        give_back<int32_t>(w, op, lane, code);
    });
}

void run_peek_at_last_error(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const auto found = runtime_of(w).errors.find(context_of(w).linear_thread + lane);
        give_back<int32_t>(w, op, lane, found == runtime_of(w).errors.end() ? int(kSuccess) : found->second);
    });
}

// Where a text is that kernels can read: in the heap of malloc, once for a block. 0: there is no room.
uint64_t address_of(Warp &w, const char *text) {
    uint64_t &address = runtime_of(w).texts[text];
    const size_t bytes = std::strlen(text) + 1;
    if (address) return address;
    address = allocate(w, bytes);
    if (address) std::memcpy(w.block->global->find(address)->at(address), text, bytes);
    return address;
}

// const char *cudaGetErrorName(cudaError_t), and cudaGetErrorString
template <bool kName>
void run_error_text(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const auto &config = *context_of(w).owner->worker->launch->config;
        const int code = argument<int32_t>(w, op, lane, 0);
        give_back<uint64_t>(w, op, lane, address_of(w, kName ? config.error_name(code) : config.error_text(code)));
    });
}

// Streams and events have names alone: all work is done in the order of the calls, which keeps what they order.
void run_create(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        BlockContext &block = *context_of(w).owner;
        const uint64_t handle =
            kHandles | (block.linear_id & 0xffffffff) << 16 | (++block.device_runtime.handles & 0xffff);
        const bool written = write(w, op, lane, argument<uint64_t>(w, op, lane, 0), handle);
        finish(w, op, lane, written ? kSuccess : kInvalidValue);
    });
}

void run_destroy(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const bool made = (argument<uint64_t>(w, op, lane, 0) & kHandles) == kHandles;
        finish(w, op, lane, made ? kSuccess : kInvalidResourceHandle);
    });
}

// cudaStreamWaitEvent(stream, event, flags) and cudaEventRecord(event, stream).
template <unsigned kStream, unsigned kEvent>
void run_order(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const bool made = (argument<uint64_t>(w, op, lane, kEvent) & kHandles) == kHandles;
        const bool good = made && is_stream(argument<uint64_t>(w, op, lane, kStream));
        finish(w, op, lane, good ? kSuccess : kInvalidResourceHandle);
    });
}

template <int kValue>
void run_give_number(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const bool written = write<int32_t>(w, op, lane, argument<uint64_t>(w, op, lane, 0), kValue);
        finish(w, op, lane, written ? kSuccess : kInvalidValue);
    });
}

void run_malloc(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const uint64_t bytes = argument<uint64_t>(w, op, lane, 1), address = allocate(w, bytes);
        if (bytes && !address) return finish(w, op, lane, kMemoryAllocation);
        const bool written = write(w, op, lane, argument<uint64_t>(w, op, lane, 0), address);
        finish(w, op, lane, written ? kSuccess : kInvalidValue);
    });
}

void run_free(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const uint64_t address = argument<uint64_t>(w, op, lane, 0);
        const bool freed = !address || w.block->program->module->heap->release(address);
        finish(w, op, lane, freed ? kSuccess : kInvalidValue);
    });
}

// cudaMemcpyAsync(to, from, bytes, kind, stream)
void run_copy(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        DeviceWork work;
        work.kind = DeviceWork::Kind::copy;
        work.to = argument<uint64_t>(w, op, lane, 0);
        work.from = argument<uint64_t>(w, op, lane, 1);
        work.bytes = argument<uint64_t>(w, op, lane, 2);
        finish(w, op, lane, enqueue(w, std::move(work), argument<uint64_t>(w, op, lane, 4)));
    });
}

// cudaMemsetAsync(to, value, bytes, stream)
void run_fill(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        DeviceWork work;
        work.kind = DeviceWork::Kind::fill;
        work.to = argument<uint64_t>(w, op, lane, 0);
        work.value = uint8_t(argument<uint32_t>(w, op, lane, 1));
        work.bytes = argument<uint64_t>(w, op, lane, 2);
        finish(w, op, lane, enqueue(w, std::move(work), argument<uint64_t>(w, op, lane, 3)));
    });
}

// By the part of the name behind __cudaCDP2, and without the ending of per-thread default streams: a block's stream 0
// is its own in either case.
constexpr SystemCall kCalls[] = {
    {"GetParameterBufferV2", 4, {8, 12, 12, 4}, run_parameter_buffer, true},
    {"LaunchDeviceV2", 2, {8, 8}, run_launch, true},
    {"GetLastError", 0, {}, run_last_error, false},
    {"PeekAtLastError", 0, {}, run_peek_at_last_error, false},
    {"GetErrorName", 1, {4}, run_error_text<true>, true},
    {"GetErrorString", 1, {4}, run_error_text<false>, true},
    {"StreamCreateWithFlags", 2, {8, 4}, run_create, false},
    {"StreamDestroy", 1, {8}, run_destroy, false},
    {"StreamWaitEvent", 3, {8, 8, 4}, run_order<0, 1>, false},
    {"EventCreateWithFlags", 2, {8, 4}, run_create, false},
    {"EventRecord", 2, {8, 8}, run_order<1, 0>, false},
    {"EventRecordWithFlags", 3, {8, 8, 4}, run_order<1, 0>, false},
    {"EventDestroy", 1, {8}, run_destroy, false},
    {"GetDevice", 1, {8}, run_give_number<0>, false},
    {"GetDeviceCount", 1, {8}, run_give_number<1>, false},
    {"RuntimeGetVersion", 1, {8}, run_give_number<kRuntimeVersion>, false},
    {"Malloc", 2, {8, 8}, run_malloc, true},
    {"Free", 1, {8}, run_free, true},
    {"MemcpyAsync", 5, {8, 8, 8, 4, 8}, run_copy, true},
    {"MemsetAsync", 4, {8, 4, 8, 8}, run_fill, true},
};

}  // namespace

const SystemCall *find_device_runtime_call(std::string_view name) {
    constexpr std::string_view kPrefix = "__cudaCDP2", kPerThread = "_ptsz";
    if (!name.starts_with(kPrefix)) return nullptr;
    name.remove_prefix(kPrefix.size());
    if (name.ends_with(kPerThread)) name.remove_suffix(kPerThread.size());
    for (const SystemCall &call : kCalls) {
        if (name == call.name) return &call;
    }
    return nullptr;
}

bool uses_heap(Handler handler) {
    return handler == run_parameter_buffer || handler == run_malloc || handler == run_free ||
           handler == run_error_text<true> || handler == run_error_text<false>;
}

}  // namespace warpsim
