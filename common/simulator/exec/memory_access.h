// What loads and stores do before data moves, in every state space: addresses, checks, hazards, counters.
#pragma once

#include "core/program.h"
#include "exec/access_log.h"
#include "exec/banks.h"
#include "exec/global_hazards.h"
#include "exec/lane_moves.h"

namespace warpsim {

// Lanes whose shared offsets have been checked, and how these lie.
struct SharedAccess {
    alignas(64) uint32_t offset[kLanes];
    uint32_t exec;
    Pattern pattern;
};

// How 32 addresses lie. Missing lanes' entries must repeat an active one's.
template <class T>
inline Pattern pattern_of(const T *address, unsigned bytes, uint32_t exec, T &stride, bool &regular) {
    stride = address[1] - address[0];
    T odd = 0;
    for (unsigned i = 0; i < kLanes; ++i) odd |= address[i] ^ (address[0] + T(i) * stride);
    regular = odd == 0;
    if (!regular) return Pattern::scattered;
    if (stride == 0) return Pattern::uniform;
    return stride == bytes && exec == kAllLanes ? Pattern::contiguous : Pattern::scattered;
}

// Everything about a shared access but the data itself. `offset` of the lanes in exec is in bounds and aligned.
inline void account_shared(Warp &w, const Op &op, Access kind, SharedAccess &access, unsigned bytes,
                           const StoredValues *values) {
    uint32_t stride;
    bool regular;
    const uint32_t exec = access.exec;
    access.pattern = pattern_of(access.offset, bytes, exec, stride, regular);
    SharedCost cost;
    if (exec != kAllLanes || (!regular && !half_warp_shared_cost(access.offset, bytes, cost))) {
        cost = shared_cost(access.offset, bytes, exec);
    } else if (regular) {
        cost = strided_shared_cost(access.offset, bytes, stride);
    }
    OpStats &stats = w.stats[op.index];
    stats.shared_wavefronts += cost.wavefronts;
    stats.shared_ideal += cost.ideal;
    if (w.accesses) [[unlikely]]
        w.accesses->shared(op, access.offset, bytes, exec, cost);
    if (SharedShadow *shadow = w.block->shadow) {
        shadow->access(w, op, kind, access.offset, bytes, exec, values);
        if (op.extra & kStrong) [[unlikely]] {
            uint64_t generic[kLanes];
            for (unsigned i = 0; i < kLanes; ++i) generic[i] = access.offset[i];
            synchronize_lanes(w, op, generic, kSharedWindow, kind == Access::volatile_read,
                              kind == Access::volatile_write, exec);
        }
    }
}

// Addresses of an op that names shared memory. False: no lane is left after faults.
inline bool find_shared(Warp &w, const Op &op, Intent intent, SharedAccess &access, unsigned bytes) {
    const uint32_t exec = access.exec = w.exec, size = w.block->shared_bytes;
    if (op.a == kNoSlot || (op.extra & kBase32)) {
        uint32_t *offset = access.offset;
        const uint32_t add = uint32_t(op.imm);
        if (op.a == kNoSlot) {
            for (unsigned i = 0; i < kLanes; ++i) offset[i] = add;
        } else {
            const uint32_t *base = w.lanes<uint32_t>(op.a);
            for (unsigned i = 0; i < kLanes; ++i) offset[i] = base[i] + add;
        }
        if (exec != kAllLanes) repeat_active(offset, exec);
        uint32_t highest = 0, bits = 0;
        for (unsigned i = 0; i < kLanes; ++i) {
            highest = offset[i] > highest ? offset[i] : highest;
            bits |= offset[i];
        }
        if (highest < size && bytes <= size - highest && (bits & (bytes - 1)) == 0) [[likely]]
            return true;
        uint64_t wide[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) wide[i] = offset[i];
        access.exec = shared_fault(w, op, intent, wide, bytes, exec);
        if (access.exec) repeat_active(offset, access.exec);
        return access.exec != 0;
    }
    uint64_t wide[kLanes];
    lane_addresses(w, op, wide);
    access.exec = check_shared(w, op, intent, wide, access.offset, bytes, exec);
    return access.exec != 0;
}

// Checks and counts a global access; `address` becomes host addresses. values: of a plain store, null where they are
// not at hand.
inline bool find_global(Warp &w, const Op &op, MemorySpace space, Intent intent, uint64_t *address, unsigned bytes,
                        uint32_t &exec, Pattern &pattern, const StoredValues *values = nullptr) {
    if (exec != kAllLanes) repeat_active(address, exec);
    uint64_t stride;
    bool regular;
    pattern = pattern_of(address, bytes, exec, stride, regular);
    if (space != MemorySpace::constant) {
        GlobalCost cost{1, 1};  // of a uniform address
        if (pattern == Pattern::contiguous) {
            const uint64_t last = address[kLanes - 1] + bytes - 1;
            cost = {unsigned(last / kSectorBytes - address[0] / kSectorBytes) + 1, bytes};
        } else if (pattern != Pattern::uniform) {
            cost = global_cost(address, bytes, exec);
        }
        count_global(w.stats[op.index], cost, bytes, exec);
        if (w.accesses) [[unlikely]]
            w.accesses->global(op, address, bytes, exec, cost);
    }
    uint64_t generic[kLanes];
    GlobalShadow *const shadow = space != MemorySpace::constant ? w.block->global_shadow : nullptr;
    if (shadow) std::memcpy(generic, address, sizeof generic);
    const uint32_t good = resolve_global(w, op, space, intent, address, bytes, exec);
    if (good != exec) {
        exec = good;
        if (pattern != Pattern::uniform) pattern = Pattern::scattered;
    }
    if (shadow && exec) {
        shadow->access(w, op, global_flags(op, intent != Intent::read), generic, bytes, exec, values);
        if (op.extra & kStrong) [[unlikely]]
            synchronize_lanes(w, op, generic, 0, intent == Intent::read, intent != Intent::read, exec);
    }
    return exec != 0;
}

inline std::byte *host_pointer(uint64_t address) {
    return reinterpret_cast<std::byte *>(address);
}

}  // namespace warpsim
