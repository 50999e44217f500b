// Addresses: bounds, alignment, state spaces, and what is said when they are wrong.
#include "machine/addresses.h"

#include <algorithm>

#include "core/names.h"
#include "core/program.h"
#include "core/text.h"
#include "machine/completions.h"
#include "machine/global_hazards.h"
#include "machine/late_stores.h"
#include "memory/global_memory.h"

namespace warpsim {

namespace {

const char *window_name(uint64_t address) {
    switch (address & kWindowMask) {
        case kSharedWindow:
            return "shared memory";
        case kLocalWindow:
            return "local memory";
        case kParamWindow:
            return "the kernel's parameters";
        default:
            return nullptr;
    }
}

struct Fault {
    HazardKind kind = HazardKind::out_of_bounds;
    std::string text;  // what follows "ld.global.f32 reads 4 bytes at 0x10"; empty: no fault
};

std::string misaligned_text(uint64_t address, unsigned bytes) {
    return ", which is " + size_text(address % bytes) + " past a multiple of " + std::to_string(bytes) + ": misaligned";
}

Fault global_fault(const Warp &w, MemorySpace space, Intent intent, uint64_t address, unsigned bytes,
                   unsigned alignment) {
    const GlobalMemory &memory = *w.block->global;
    const AllocationView *view = memory.find(address);
    if (view && view->contains(address, bytes)) {
        if (address % alignment) return {HazardKind::misaligned, misaligned_text(address, alignment)};
        const bool constant = view->kind == MemoryKind::module_const;
        if (constant && intent != Intent::read) {
            return {HazardKind::invalid_address, ": constant memory cannot be written"};
        }
        if (!constant && space == MemorySpace::constant) {
            return {HazardKind::invalid_address, ": not in constant memory"};
        }
        return {};
    }
    if (const char *name = window_name(address)) {
        return {HazardKind::invalid_address,
                std::string(": a generic address in ") + name + ", not one of global memory"};
    }
    const std::string why = memory.explain(address, bytes);
    const bool null = address < 4096, foreign = memory.find_foreign(address);
    return {null || foreign ? HazardKind::invalid_address : HazardKind::out_of_bounds, ": " + why};
}

// Where the kernel has dynamic shared memory and the launch has forgotten it: that, for a message's end.
std::string forgotten_shared(const Warp &w) {
    for (const Program::SharedVariable &v : w.block->program->shared_variables) {
        if (!v.bytes && v.begin >= w.block->shared_bytes)
            return " (the launch gives " + v.name + " no bytes: they are the third number in <<<grid, block, bytes>>>)";
    }
    return "";
}

Fault shared_fault_of(const Warp &w, uint64_t address, unsigned bytes) {
    const uint64_t size = w.block->shared_bytes;
    if (address < size && bytes <= size - address) {
        if (address % bytes) return {HazardKind::misaligned, misaligned_text(address, bytes)};
        return {};
    }
    if (w.block->cluster && address >> kRankShift && !(address >> 32) && address >> kRankShift <= 16) {
        return {HazardKind::invalid_address, ": an address in the shared memory of the cluster's block " +
                                                 std::to_string((address >> kRankShift) - 1) +
                                                 ", which this instruction cannot use: it is one of the block's own"};
    }
    if (const char *name = window_name(address)) {
        return {HazardKind::invalid_address, std::string(": a generic address in ") + name +
                                                 ", not an offset in shared memory (see cvta.to.shared)"};
    }
    if (w.block->global->find(address)) {
        return {HazardKind::invalid_address, ": an address of global memory, not of shared memory"};
    }
    const std::string block =
        "the block's " + size_text(size - w.block->program->reserved_shared) + " of shared memory";
    if (address < size) return {HazardKind::out_of_bounds, ": reaches past the end of " + block};
    // What lies before the start wraps around, in 32 or in 64 bits.
    const uint64_t before = address >> 31 == 1 ? (1ull << 32) - address : -address;
    if (before && before <= 1u << 24)
        return {HazardKind::out_of_bounds, ": " + size_text(before) + " before the start of " + block};
    const std::string forgotten = forgotten_shared(w);
    if (size == 0) return {HazardKind::out_of_bounds, ": the block has no shared memory" + forgotten};
    return {HazardKind::out_of_bounds, ": " + size_text(address - size) + " past the end of " + block + forgotten};
}

Fault variable_fault(const Warp &w, const Op &op, uint32_t offset, unsigned bytes) {
    const SharedRoom room = w.block->shared_rooms[op.target];
    const uint32_t end = room.begin + room.bytes;
    if (offset >= room.begin && offset < end && bytes <= end - offset) return {};
    const auto &variables = w.block->program->shared_variables;
    const Program::SharedVariable &v = variables[op.target - 1];
    std::string text;
    if (offset < room.begin) {
        text = ": " + size_text(room.begin - offset) + " before the start of ";
    } else {
        text = offset < end ? ": reaches past the end of " : ": " + size_text(offset - end) + " past the end of ";
    }
    text += "the " + std::to_string(room.bytes) + "-byte shared variable " + v.name;
    for (const Program::SharedVariable &other : variables) {
        const uint32_t size = other.bytes ? other.bytes : ~other.begin;
        if (&other != &v && offset >= other.begin && offset - other.begin < size)
            return {HazardKind::out_of_bounds, text + ", in " + other.name};
    }
    return {HazardKind::out_of_bounds, text + ", where no variable is"};
}

Fault private_fault(const char *what, uint64_t size, uint64_t address, unsigned bytes) {
    if (address < size && bytes <= size - address) {
        if (address % bytes) return {HazardKind::misaligned, misaligned_text(address, bytes)};
        return {};
    }
    return {HazardKind::out_of_bounds, std::string(": outside of ") + what + ", " + size_text(size)};
}

// Looks at every lane of exec; reports the first fault of each kind. Returns the lanes without one.
template <class F>
uint32_t report_faults(Warp &w, const Op &op, Intent intent, const uint64_t *address, unsigned bytes, uint32_t exec,
                       F fault_of) {
    uint32_t good = 0, kinds = 0;
    int first[size_t(HazardKind::count_)];
    std::string text[size_t(HazardKind::count_)];
    unsigned count[size_t(HazardKind::count_)] = {};
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        Fault fault = fault_of(lane);
        if (fault.text.empty()) {
            good |= 1u << lane;
            continue;
        }
        const unsigned kind = unsigned(fault.kind);
        if (count[kind]++ == 0) {
            kinds |= 1u << kind;
            first[kind] = int(lane);
            text[kind] = std::move(fault.text);
        }
    }
    for (; kinds; kinds &= kinds - 1) {
        const unsigned kind = unsigned(std::countr_zero(kinds));
        const uint64_t at = address[first[kind]];
        std::string message = access_text(w, op, intent, at, bytes) + text[kind];
        if (count[kind] > 1) message += " (and " + std::to_string(count[kind] - 1) + " more lanes)";
        report_hazard(w, op, HazardKind(kind), first[kind], at, std::move(message));
    }
    return good;
}

// After faults were reported and the launch goes on.
void forget_faulty(uint64_t *host, uint32_t good) {
    if (good && good != kAllLanes) repeat_active(host, good);
}

void resolve_one_by_one(Warp &w, uint64_t *address, uint32_t lanes) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint64_t &at = address[std::countr_zero(rest)];
        at = reinterpret_cast<uint64_t>(w.block->global->find(at)->at(at));
    }
}

// The block sees its own stores in their order; plain ones join those that wait.
void show_before(Warp &w, const Op &op, Intent intent, const uint64_t *host, unsigned bytes, uint32_t exec) {
    const bool waits = op.cls == OpClass::store_global || op.cls == OpClass::store_generic;
    if (intent == Intent::write && waits && !(op.extra & kStrong)) return;
    for (uint32_t rest = exec; rest; rest &= rest - 1) w.block->late_stores->show(host[std::countr_zero(rest)], bytes);
}

uint32_t resolve_private(Warp &w, const Op &op, Intent intent, const char *what, std::byte *memory, uint64_t step,
                         uint64_t size, uint64_t *address, unsigned bytes, uint32_t exec) {
    uint32_t bad = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        const bool wrong = address[i] >= size || bytes > size - address[i] || (address[i] & (bytes - 1));
        bad |= uint32_t(wrong) << i;
    }
    if (bad & exec) [[unlikely]] {
        exec = report_faults(w, op, intent, address, bytes, exec,
                             [&](unsigned lane) { return private_fault(what, size, address[lane], bytes); });
    }
    for (unsigned i = 0; i < kLanes; ++i) address[i] += reinterpret_cast<uint64_t>(memory) + i * step;
    if (exec != kAllLanes) forget_faulty(address, exec);
    return exec;
}

}  // namespace

std::string access_text(const Warp &w, const Op &op, Intent intent, uint64_t address, unsigned bytes) {
    const char *verb = intent == Intent::read ? " reads " : intent == Intent::write ? " writes " : " updates ";
    return instruction_at(*w.block->program, op.index) + verb + size_text(bytes) + " at " + hex(address);
}

uint32_t shared_fault(Warp &w, const Op &op, Intent intent, const uint64_t *address, unsigned bytes, uint32_t exec) {
    return report_faults(w, op, intent, address, bytes, exec,
                         [&](unsigned lane) { return shared_fault_of(w, address[lane], bytes); });
}

uint32_t check_shared(Warp &w, const Op &op, Intent intent, const uint64_t *address, uint32_t *offset, unsigned bytes,
                      uint32_t exec) {
    const uint64_t size = w.block->shared_bytes;
    uint32_t bad = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        bad |= uint32_t(address[i] >= size || bytes > size - address[i] || (address[i] & (bytes - 1))) << i;
        offset[i] = uint32_t(address[i]);
    }
    if (bad & exec) [[unlikely]]
        exec = shared_fault(w, op, intent, address, bytes, exec);
    if (exec && exec != kAllLanes) repeat_active(offset, exec);
    return exec;
}

uint32_t check_variable(Warp &w, const Op &op, Intent intent, uint32_t *offset, unsigned bytes, uint32_t exec) {
    uint64_t wide[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) wide[i] = offset[i];
    exec = report_faults(w, op, intent, wide, bytes, exec,
                         [&](unsigned lane) { return variable_fault(w, op, offset[lane], bytes); });
    if (exec && exec != kAllLanes) repeat_active(offset, exec);
    return exec;
}

uint32_t resolve_global(Warp &w, const Op &op, MemorySpace space, Intent intent, uint64_t *address, unsigned bytes,
                        uint32_t exec, unsigned alignment) {
    if (!alignment) alignment = bytes;
    if (exec != kAllLanes) repeat_active(address, exec);
    uint64_t low = address[0], high = address[0], bits = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        low = std::min(low, address[i]);
        high = std::max(high, address[i]);
        bits |= address[i];
    }
    if (intent == Intent::read && !w.block->completions->stores.empty()) [[unlikely]]
        check_unfinished_stores(w, op, low, high + bytes - 1);
    if (w.block->pending) [[unlikely]] {
        w.block->pending->meet(low, std::max(high, high + bytes - 1), intent == Intent::atomic);
    }
    GlobalWindow &window = w.block->windows[op.index % kGlobalWindows];
    if (!window.contains(low, high, bytes)) {
        if (const AllocationView *view = w.block->global->find(low)) {
            window = {view->base, view->bytes, view->host, view->kind == MemoryKind::module_const};
        }
    }
    const bool allowed = window.constant ? intent == Intent::read : space != MemorySpace::constant;
    if (window.contains(low, high, bytes) && (bits & (alignment - 1)) == 0 && allowed) [[likely]] {
        const uint64_t delta = reinterpret_cast<uint64_t>(window.host) - window.base;
        for (unsigned i = 0; i < kLanes; ++i) address[i] += delta;
        if (w.block->late_stores) [[unlikely]]
            show_before(w, op, intent, address, bytes, exec);
        return exec;
    }
    exec = report_faults(w, op, intent, address, bytes, exec, [&](unsigned lane) {
        return global_fault(w, space, intent, address[lane], bytes, alignment);
    });
    resolve_one_by_one(w, address, exec);
    forget_faulty(address, exec);
    if (w.block->late_stores) show_before(w, op, intent, address, bytes, exec);
    return exec;
}

uint32_t resolve_local(Warp &w, const Op &op, Intent intent, uint64_t *address, unsigned bytes, uint32_t exec) {
    return resolve_private(w, op, intent, "the thread's local memory", w.local, w.local_bytes, w.local_bytes, address,
                           bytes, exec);
}

uint32_t resolve_param(Warp &w, const Op &op, Intent intent, uint64_t *address, unsigned bytes, uint32_t exec) {
    return resolve_private(w, op, intent, "the kernel's parameters", w.params, 0, w.block->program->parameter_bytes,
                           address, bytes, exec);
}

Windows split_generic(const uint64_t *address, uint32_t exec) {
    uint32_t shared = 0, local = 0, param = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        const uint64_t window = address[i] & kWindowMask;
        shared |= uint32_t(window == kSharedWindow) << i;
        local |= uint32_t(window == kLocalWindow) << i;
        param |= uint32_t(window == kParamWindow) << i;
    }
    return {exec & ~(shared | local | param), exec & shared, exec & local, exec & param};
}

void synchronize_lanes(Warp &w, const Op &op, const uint64_t *address, uint64_t window, bool reads, bool writes,
                       uint32_t exec) {
    SharedShadow *shadow = w.block->shadow;
    if (!shadow) return;
    const bool acquire = reads && (op.extra & kAcquire), release = writes && (op.extra & kRelease);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        shadow->synchronize_at(w, int(lane), address[lane] + window, reads, writes, acquire, release);
        if (!window) order_blocks(w, op, lane, address[lane], reads, writes);
    }
}

}  // namespace warpsim
