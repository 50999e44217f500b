// What loads and stores do in every state space: addresses, checks, hazards and counters before data moves; and how
// lanes' elements move between memory and register slots.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/program.h"
#include "counters/accesses.h"
#include "machine/addresses.h"
#include "machine/global_hazards.h"

namespace warpsim {

// How the lanes' addresses lie; always `scattered` where lanes are missing.
enum class Pattern : uint8_t { scattered, uniform, contiguous };

template <class T>
inline T load_as(const std::byte *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline const uint32_t *data_slots(const Warp &w, const Op &op, unsigned count, const uint32_t &single) {
    return count == 1 ? &single : w.block->program->operand_list.data() + op.list;
}

template <class Reg>
inline void write_masked(Reg *to, const Reg *from, uint32_t exec) {
    if (exec == kAllLanes) {
        std::memcpy(to, from, kLanes * sizeof(Reg));
    } else {
        for (unsigned i = 0; i < kLanes; ++i) to[i] = (exec >> i & 1) ? from[i] : to[i];
    }
}

using Words4 = uint32_t __attribute__((vector_size(16)));

// Four vectors of four words become their transposes.
inline void transpose(Words4 &a, Words4 &b, Words4 &c, Words4 &d) {
    const Words4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Words4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// Loads N elements for each lane of exec. at(i): where lane i's bytes are; valid for all lanes. Registers of other
// lanes keep their values. The pattern is a promise about at().
template <class Mem, class Reg, unsigned N, class At>
inline void load_lanes(const Warp &w, const uint32_t *slots, uint32_t exec, Pattern pattern, At at) {
    if (pattern == Pattern::uniform) {
        const std::byte *from = at(0);
        for (unsigned c = 0; c < N; ++c) {
            const Reg value = static_cast<Reg>(load_as<Mem>(from + c * sizeof(Mem)));
            Reg *to = w.lanes<Reg>(slots[c]);
            if (exec == kAllLanes) {
                for (unsigned i = 0; i < kLanes; ++i) to[i] = value;
            } else {
                for (unsigned i = 0; i < kLanes; ++i) to[i] = (exec >> i & 1) ? value : to[i];
            }
        }
        return;
    }
    if (exec == kAllLanes && N == 1 && pattern == Pattern::contiguous) {
        Mem data[kLanes];
        std::memcpy(data, at(0), sizeof data);
        Reg *to = w.lanes<Reg>(slots[0]);
        for (unsigned i = 0; i < kLanes; ++i) to[i] = static_cast<Reg>(data[i]);
        return;
    }
    alignas(64) Reg data[N][kLanes];
    if constexpr (N == 4 && sizeof(Mem) == 4 && sizeof(Reg) == 4) {
        for (unsigned i = 0; i < kLanes; i += 4) {
            Words4 a = load_as<Words4>(at(i)), b = load_as<Words4>(at(i + 1)), c = load_as<Words4>(at(i + 2)),
                   d = load_as<Words4>(at(i + 3));
            transpose(a, b, c, d);
            std::memcpy(&data[0][i], &a, 16);
            std::memcpy(&data[1][i], &b, 16);
            std::memcpy(&data[2][i], &c, 16);
            std::memcpy(&data[3][i], &d, 16);
        }
    } else if constexpr (N == 2 && (sizeof(Mem) == 2 || sizeof(Mem) == 4)) {
        // Both elements in one load: half as many of them, and the rest is vector code.
        using Pair = std::conditional_t<sizeof(Mem) == 2, uint32_t, uint64_t>;
        alignas(64) Pair pair[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) pair[i] = load_as<Pair>(at(i));
        for (unsigned i = 0; i < kLanes; ++i) data[0][i] = static_cast<Reg>(static_cast<Mem>(pair[i]));
        for (unsigned i = 0; i < kLanes; ++i)
            data[1][i] = static_cast<Reg>(static_cast<Mem>(pair[i] >> (8 * sizeof(Mem))));
    } else {
        for (unsigned i = 0; i < kLanes; ++i) {
            const std::byte *from = at(i);
            for (unsigned c = 0; c < N; ++c) data[c][i] = static_cast<Reg>(load_as<Mem>(from + c * sizeof(Mem)));
        }
    }
    for (unsigned c = 0; c < N; ++c) write_masked(w.lanes<Reg>(slots[c]), data[c], exec);
}

// Stores N elements for each lane of exec, in the order of the lanes.
template <class Mem, class Reg, unsigned N, class At>
inline void store_lanes(const Warp &w, const uint32_t *slots, uint32_t exec, Pattern pattern, At at) {
    if (exec == kAllLanes && N == 1 && pattern == Pattern::contiguous) {
        const Reg *from = w.lanes<Reg>(slots[0]);
        Mem data[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) data[i] = static_cast<Mem>(from[i]);
        std::memcpy(at(0), data, sizeof data);
        return;
    }
    if constexpr (N == 4 && sizeof(Mem) == 4 && sizeof(Reg) == 4) {
        if (exec == kAllLanes) {
            for (unsigned i = 0; i < kLanes; i += 4) {
                Words4 part[4];
                for (unsigned c = 0; c < 4; ++c) std::memcpy(&part[c], w.lanes<uint32_t>(slots[c]) + i, 16);
                transpose(part[0], part[1], part[2], part[3]);
                for (unsigned k = 0; k < 4; ++k) std::memcpy(at(i + k), &part[k], 16);
            }
            return;
        }
    }
    const Reg *from[N];
    for (unsigned c = 0; c < N; ++c) from[c] = w.lanes<Reg>(slots[c]);
    for (unsigned i = 0; i < kLanes; ++i) {
        if (!(exec >> i & 1)) continue;
        std::byte *to = at(i);
        for (unsigned c = 0; c < N; ++c) {
            const Mem value = static_cast<Mem>(from[c][i]);
            std::memcpy(to + c * sizeof value, &value, sizeof value);
        }
    }
}

// Picks H<Mem, Reg, N>::run by shape; null where there is no such form.
template <template <class, class, unsigned> class H, class Mem, class Reg>
inline Handler by_count(unsigned count) {
    switch (count) {
        case 1:
            return H<Mem, Reg, 1>::run;
        case 2:
            return H<Mem, Reg, 2>::run;
        case 4:
            return H<Mem, Reg, 4>::run;
        case 8:
            if constexpr (sizeof(Mem) <= 4) return H<Mem, Reg, 8>::run;
            return nullptr;
        default:
            return nullptr;
    }
}

// Signed elements are for wider registers only.
template <template <class, class, unsigned> class H, class Mem>
inline Handler by_register(const AccessShape &shape) {
    constexpr unsigned kLeast = std::is_signed_v<Mem> ? 2 * sizeof(Mem) : sizeof(Mem);
    switch (shape.register_bytes) {
        case 1:
            if constexpr (kLeast <= 1) return by_count<H, Mem, uint8_t>(shape.count);
            return nullptr;
        case 2:
            if constexpr (kLeast <= 2) return by_count<H, Mem, uint16_t>(shape.count);
            return nullptr;
        case 4:
            if constexpr (kLeast <= 4) return by_count<H, Mem, uint32_t>(shape.count);
            return nullptr;
        case 8:
            return by_count<H, Mem, uint64_t>(shape.count);
        default:
            return nullptr;
    }
}

// Signs: whether elements of a signed type differ from others.
template <template <class, class, unsigned> class H, bool Signs = true>
inline Handler by_shape(const AccessShape &shape) {
    if constexpr (Signs) {
        if (shape.sign && shape.register_bytes > shape.bytes) {
            switch (shape.bytes) {
                case 1:
                    return by_register<H, int8_t>(shape);
                case 2:
                    return by_register<H, int16_t>(shape);
                case 4:
                    return by_register<H, int32_t>(shape);
                default:
                    return nullptr;
            }
        }
    }
    switch (shape.bytes) {
        case 1:
            return by_register<H, uint8_t>(shape);
        case 2:
            return by_register<H, uint16_t>(shape);
        case 4:
            return by_register<H, uint32_t>(shape);
        case 8:
            return by_register<H, uint64_t>(shape);
        default:
            return nullptr;
    }
}

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
    const bool loads = kind == Access::read || kind == Access::volatile_read;
    SharedCost cost;
    if (exec != kAllLanes || (!regular && !half_warp_shared_cost(access.offset, bytes, cost))) {
        cost = shared_cost(access.offset, bytes, exec, loads);
    } else if (regular) {
        cost = strided_shared_cost(access.offset, bytes, stride, loads);
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
    const uint32_t exec = access.exec = w.exec;
    const SharedRoom room = w.block->shared_rooms[op.target];
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
            const uint32_t inside = offset[i] - room.begin;
            highest = inside > highest ? inside : highest;
            bits |= offset[i];
        }
        if (highest < room.bytes && bytes <= room.bytes - highest && (bits & (bytes - 1)) == 0) [[likely]]
            return true;
        uint64_t wide[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) wide[i] = offset[i];
        access.exec = shared_fault(w, op, intent, wide, bytes, exec);
        if (access.exec) repeat_active(offset, access.exec);
        if (access.exec && op.target) access.exec = check_variable(w, op, intent, offset, bytes, access.exec);
        return access.exec != 0;
    }
    uint64_t wide[kLanes];
    lane_addresses(w, op, wide);
    access.exec = check_shared(w, op, intent, wide, access.offset, bytes, exec);
    if (access.exec && op.target) access.exec = check_variable(w, op, intent, access.offset, bytes, access.exec);
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
    // Only other launches and copies can conflict with reads of constant memory.
    const bool watched = space != MemorySpace::constant || context_of(w).worker->launch->config->collects;
    GlobalShadow *const shadow = watched ? w.block->global_shadow : nullptr;
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
