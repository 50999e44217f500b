#include "device_runtime/device_runtime.h"

#include <algorithm>

#include "machine/context.h"
#include "machine/global_hazards.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

using system_call::argument;
using system_call::check_input;
using system_call::for_each_lane;
using system_call::give_back;

constexpr size_t kMostText = 4096;

void run_vprintf(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const uint64_t format = argument<uint64_t>(w, op, lane, 0), values = argument<uint64_t>(w, op, lane, 1);
        const auto read = [&](uint64_t address, void *to, size_t bytes) {
            const bool there = read_generic(w, lane, address, to, bytes);
            if (there) check_input(w, op, lane, address, bytes);
            return there;
        };
        std::string text;
        const int count = format_device_text(format, values, read, text);
        if (count < -1) {
            report_hazard(w, op, HazardKind::out_of_bounds, int(lane), format, "printf reads memory that is not there");
        }
        print(context_of(w), text);
        give_back<int32_t>(w, op, lane, count);
    });
}

std::string text_at(Warp &w, unsigned lane, uint64_t address) {
    std::string text;
    for (char c; text.size() < kMostText && read_generic(w, lane, address + text.size(), &c, 1) && c;) text += c;
    return text;
}

void run_assertfail(Warp &w, const Op &op) {
    const unsigned lane = unsigned(__builtin_ctz(w.exec));
    const BlockContext &block = *context_of(w).owner;
    const uint32_t thread = context_of(w).linear_thread + lane;
    const auto triple = [](uint32_t x, uint32_t y, uint32_t z) {
        return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
    };
    report_hazard(w, op, HazardKind::assertion, int(lane), 0,
                  text_at(w, lane, argument<uint64_t>(w, op, lane, 1)) + ":" +
                      std::to_string(argument<uint32_t>(w, op, lane, 2)) + ": " +
                      text_at(w, lane, argument<uint64_t>(w, op, lane, 3)) +
                      ": block: " + triple(block.ctaid[0], block.ctaid[1], block.ctaid[2]) + ", thread: " +
                      triple(thread % block.ntid[0], thread / block.ntid[0] % block.ntid[1],
                             thread / block.ntid[0] / block.ntid[1]) +
                      " Assertion `" + text_at(w, lane, argument<uint64_t>(w, op, lane, 0)) + "` failed.");
}

void run_malloc(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        DeviceHeap &heap = *w.block->program->module->heap;
        const uint64_t bytes = argument<uint64_t>(w, op, lane, 0), address = heap.allocate(bytes);
        forget_accesses(w, address, bytes);
        give_back<uint64_t>(w, op, lane, address);
    });
}

void run_free(Warp &w, const Op &op) {
    for_each_lane(w, [&](unsigned lane) {
        const uint64_t address = argument<uint64_t>(w, op, lane, 0);
        if (!address) return;
        const uint64_t bytes = w.block->program->module->heap->release(address);
        if (!bytes)
            return report_hazard(w, op, HazardKind::invalid_address, int(lane), address,
                                 "free of an address that malloc did not return, or that was freed already");
        // Nobody may use it any more, as if all of it were written.
        if (w.block->global_shadow) w.block->global_shadow->access_range(w, op, kGlobalWrites, lane, address, bytes);
    });
}

constexpr SystemCall kCalls[] = {
    {"vprintf", 2, {8, 8}, run_vprintf, false},
    {"__assertfail", 5, {8, 8, 4, 8, 8}, run_assertfail, false},
    {"malloc", 1, {8}, run_malloc, true},
    {"free", 1, {8}, run_free, true},
};

}  // namespace

const SystemCall *find_system_call(std::string_view name) {
    for (const SystemCall &call : kCalls) {
        if (name == call.name) return &call;
    }
    return find_device_runtime_call(name);
}

bool prepare_heap(Program &program, GlobalMemory &memory) {
    ModuleState &module = *program.module;
    const auto calls_heap = [](const Op &op) { return op.fn == run_malloc || op.fn == run_free || uses_heap(op.fn); };
    if (module.heap || std::none_of(program.ops.begin(), program.ops.end(), calls_heap)) return true;
    const uint64_t base = memory.allocate(DeviceHeap::kBytes, MemoryKind::module_global);
    if (base) module.heap = std::make_shared<DeviceHeap>(base);
    return base != 0;
}

}  // namespace warpsim
