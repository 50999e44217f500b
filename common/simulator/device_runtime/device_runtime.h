// Functions that the CUDA driver provides to kernels: vprintf, malloc, free, __assertfail, and the device runtime
// (dynamic parallelism): what the functions of libcudadevrt do when a kernel calls them. Launches, copies and fills are
// noted, and done when the grid has ended: no kernel may wait for what it asks for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.h"
#include "core/warp.h"
#include "machine/context.h"
#include "machine/launch.h"
#include "machine/tracking.h"

namespace warpsim {

struct SystemCall {
    const char *name;
    unsigned arguments;
    std::array<unsigned, 6> argument_bytes;
    // Arguments and results lie in local memory at the places in the op's operand list (offset, bytes; results behind
    // the arguments), relative to frame base b (kNoSlot: 0).
    Handler run;
    bool ordered;  // what it does depends on what other blocks did
};

const SystemCall *find_system_call(std::string_view name);  // nullptr: no such function

// Gives a module whose kernels call malloc its heap, once. False: out of memory.
bool prepare_heap(Program &, GlobalMemory &);

const SystemCall *find_device_runtime_call(std::string_view name);  // nullptr: no such function
// The function takes memory from the heap of malloc.
bool uses_heap(Handler);

struct WarpContext;

// Reads from any address as lane `lane` sees it. False: out of bounds.
bool read_generic(Warp &, unsigned lane, uint64_t address, void *to, size_t bytes);

// Appends to `out` what printf makes of the format at device address `format` and the packed arguments at `values`,
// each aligned to its own size. Returns the number of arguments, -1 for a null format, -2 where memory is not there.
using ReadMemory = std::function<bool(uint64_t address, void *to, size_t bytes)>;
int format_device_text(uint64_t format, uint64_t values, const ReadMemory &, std::string &out);

// Adds text to the block's output, which appears in block order when the launch ends.
void print(WarpContext &, const std::string &text);

class DeviceHeap {
  public:
    static constexpr uint64_t kBytes = 8 << 20;  // cudaLimitMallocHeapSize
    explicit DeviceHeap(uint64_t base) : base_(base) { free_[base] = kBytes; }
    uint64_t base() const { return base_; }

    // 16-byte aligned; 0 when nothing large enough is free. First fit.
    uint64_t allocate(uint64_t bytes) {
        if (bytes == 0 || bytes > kBytes) return 0;
        bytes = (bytes + 15) / 16 * 16;
        for (auto it = free_.begin(); it != free_.end(); ++it) {
            if (it->second < bytes) continue;
            const auto [address, available] = *it;
            free_.erase(it);
            if (available > bytes) free_[address + bytes] = available - bytes;
            used_[address] = bytes;
            return address;
        }
        return 0;
    }

    // The piece's bytes; 0: not the address of a live one.
    uint64_t release(uint64_t address) {
        const auto found = used_.find(address);
        if (found == used_.end()) return 0;
        const uint64_t released = found->second;
        uint64_t bytes = released;
        used_.erase(found);
        auto next = free_.lower_bound(address);
        if (next != free_.end() && next->first == address + bytes) {
            bytes += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            const auto previous = std::prev(next);
            if (previous->first + previous->second == address) {
                previous->second += bytes;
                return released;
            }
        }
        free_[address] = bytes;
        return released;
    }

  private:
    uint64_t base_;
    std::map<uint64_t, uint64_t> free_, used_;  // address -> bytes
};

namespace system_call {

// Where a lane's argument or (index behind the arguments) result lies.
inline std::byte *place(Warp &w, const Op &op, unsigned lane, unsigned index) {
    const uint32_t base = op.b == kNoSlot ? 0 : w.lanes<uint32_t>(op.b)[lane];
    return w.local + lane * w.local_bytes + base + w.block->program->operand_list[op.list + 2 * index];
}

// What a call reads must be defined.
inline void check_input(Warp &w, const Op &op, unsigned lane, uint64_t address, size_t bytes) {
    uint32_t origin = Definedness::kNoOrigin;
    if (w.block->definedness && undefined_generic(w, lane, address, bytes, origin))
        w.block->definedness->matters(w, op, lane, origin, Use::call);
}

template <class T>
T argument(Warp &w, const Op &op, unsigned lane, unsigned index) {
    T value;
    const std::byte *from = place(w, op, lane, index);
    std::memcpy(&value, from, sizeof value);
    check_input(w, op, lane, kLocalWindow + uint64_t(from - w.local) - lane * w.local_bytes, sizeof value);
    return value;
}

template <class T>
void give_back(Warp &w, const Op &op, unsigned lane, T value) {
    if (!op.extra) return;
    std::byte *const to = place(w, op, lane, op.list_count);
    std::memcpy(to, &value, sizeof value);
    if (w.undefined_local) w.undefined_local->define(size_t(to - w.local), sizeof value);
}

template <class F>
void for_each_lane(Warp &w, F f) {
    for (uint32_t left = w.exec; left; left &= left - 1) f(unsigned(__builtin_ctz(left)));
}

}  // namespace system_call

}  // namespace warpsim
