// ld, ldu and st; loads of which only some bytes are used, as `.pragma "used_bytes_mask n"` says.
#include "instructions/memory/loads_stores.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "machine/lane_access.h"
#include "machine/late_stores.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

// There are hundreds of forms: what is not inlined is compiled once, for all forms of one size or for the handlers of
// several state spaces.
template <unsigned kBytes>
[[gnu::noinline]] void account_shared(Warp &w, const Op &op, Access kind, SharedAccess &access,
                                      const StoredValues *values) {
    account_shared(w, op, kind, access, kBytes, values);
}
template <unsigned kBytes>
[[gnu::noinline]] bool find_shared(Warp &w, const Op &op, Intent intent, SharedAccess &access) {
    return find_shared(w, op, intent, access, kBytes);
}
template <unsigned kBytes>
[[gnu::noinline]] bool find_global(Warp &w, const Op &op, MemorySpace space, Intent intent, uint64_t *address,
                                   uint32_t &exec, Pattern &pattern, const StoredValues *values = nullptr) {
    return find_global(w, op, space, intent, address, kBytes, exec, pattern, values);
}

struct Addresses {
    alignas(64) uint64_t of[kLanes];
    [[gnu::noinline]] Addresses(const Warp &w, const Op &op) { lane_addresses(w, op, of); }
};

// What moves the lanes' data of one form, by state space. space: global, where the op names it, or generic.
struct Movers {
    void (*shared)(Warp &, const Op &, SharedAccess &);
    void (*global)(Warp &, const Op &, MemorySpace space, uint64_t *address, uint32_t exec);
    void (*local)(Warp &, const Op &, uint64_t *address, uint32_t exec);
    void (*param)(Warp &, const Op &, uint64_t *address, uint32_t exec);  // null: not to be accessed
};

// Each lane by where its generic address leads.
void move_generic(Warp &w, const Op &op, Intent intent, unsigned bytes, const Movers &move) {
    Addresses address(w, op);
    Windows lanes = split_generic(address.of, w.exec);
    if (!move.param) lanes.global |= lanes.param;  // no global address either
    uint64_t part[kLanes];
    if (lanes.shared) {
        SharedAccess access;
        remove_window(part, address.of, kSharedWindow);
        access.exec = check_shared(w, op, intent, part, access.offset, bytes, lanes.shared);
        if (access.exec) move.shared(w, op, access);
    }
    if (lanes.local) {
        remove_window(part, address.of, kLocalWindow);
        move.local(w, op, part, lanes.local);
    }
    if (move.param && lanes.param) {
        remove_window(part, address.of, kParamWindow);
        move.param(w, op, part, lanes.param);
    }
    if (lanes.global) move.global(w, op, MemorySpace::generic, address.of, lanes.global);
}

template <class Mem, class Reg, unsigned N>
struct Load {
    static constexpr unsigned kBytes = sizeof(Mem) * N;
    static constexpr AccessShape kShape{sizeof(Mem), sizeof(Reg), N, std::is_signed_v<Mem>};

    static const uint32_t *slots(const Warp &w, const Op &op) { return data_slots(w, op, N, op.dst); }

    [[gnu::noinline]] static void from_shared(Warp &w, const Op &op, SharedAccess &access) {
        account_shared<kBytes>(w, op, op.extra & kStrong ? Access::volatile_read : Access::read, access, nullptr);
        const std::byte *memory = w.block->shared;
        if constexpr (N > 1 && sizeof(Mem) < sizeof(Reg)) {  // rare
            uint64_t host[kLanes];
            for (unsigned i = 0; i < kLanes; ++i) host[i] = reinterpret_cast<uint64_t>(memory + access.offset[i]);
            from_host(w, op, host, access.exec, access.pattern);
        } else {
            load_lanes<Mem, Reg, N>(w, slots(w, op), access.exec, access.pattern,
                                    [&](unsigned i) { return memory + access.offset[i]; });
        }
        if (tracks_shared(w)) [[unlikely]]
            note_shared_load(w, op, slots(w, op), kShape, access.offset, access.exec);
    }

    [[gnu::noinline]] static void from_global(Warp &w, const Op &op, MemorySpace space, uint64_t *address,
                                              uint32_t exec) {
        Pattern pattern;
        if (!find_global<kBytes>(w, op, space, Intent::read, address, exec, pattern)) return;
        if (op.extra & kStrong) [[unlikely]]
            return strong_load(w, op, address, exec);
        from_host(w, op, address, exec, pattern);
    }

    [[gnu::noinline]] static void from_host(const Warp &w, const Op &op, const uint64_t *host, uint32_t exec,
                                            Pattern pattern) {
        load_lanes<Mem, Reg, N>(w, slots(w, op), exec, pattern, [&](unsigned i) { return host_pointer(host[i]); });
    }

    // Other host threads may write there at the same time.
    [[gnu::noinline]] static void strong_load(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
        const uint32_t *slot = slots(w, op);
        const auto order = op.extra & kAcquire ? std::memory_order_acquire : std::memory_order_relaxed;
        for (unsigned c = 0; c < N; ++c) {
            Reg *to = w.lanes<Reg>(slot[c]);
            for (uint32_t rest = exec; rest; rest &= rest - 1) {
                const unsigned lane = unsigned(std::countr_zero(rest));
                Mem *from = reinterpret_cast<Mem *>(address[lane]) + c;
                to[lane] = static_cast<Reg>(std::atomic_ref<Mem>(*from).load(order));
            }
        }
    }

    [[gnu::noinline]] static void from_local(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        exec = resolve_local(w, op, Intent::read, address, kBytes, exec);
        if (exec) from_host(w, op, address, exec, Pattern::scattered);
        if (tracks_local(w)) note_local_load(w, op, slots(w, op), kShape, address, exec);
    }
    [[gnu::noinline]] static void from_param(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        exec = resolve_param(w, op, Intent::read, address, kBytes, exec);
        if (exec) from_host(w, op, address, exec, Pattern::scattered);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadShared {
    static void run(Warp &w, const Op &op) {
        SharedAccess access;
        if (find_shared<sizeof(Mem) * N>(w, op, Intent::read, access)) Load<Mem, Reg, N>::from_shared(w, op, access);
        end_of_load(w);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadGlobal {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Load<Mem, Reg, N>::from_global(w, op, MemorySpace::global, address.of, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadConstant {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Load<Mem, Reg, N>::from_global(w, op, MemorySpace::constant, address.of, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadLocal {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Load<Mem, Reg, N>::from_local(w, op, address.of, w.exec);
        end_of_load(w);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadParam {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Load<Mem, Reg, N>::from_param(w, op, address.of, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadGeneric {
    static void run(Warp &w, const Op &op) {
        using L = Load<Mem, Reg, N>;
        move_generic(w, op, Intent::read, L::kBytes, {L::from_shared, L::from_global, L::from_local, L::from_param});
        end_of_load(w);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadKnownParam {
    static void run(Warp &w, const Op &op) {
        const std::byte *from = w.params + op.imm;
        load_lanes<Mem, Reg, N>(w, data_slots(w, op, N, op.dst), w.exec, Pattern::uniform,
                                [=](unsigned) { return from; });
    }
};

template <class Mem, class Reg>
void widen(Warp &w, const Op &op) {
    const Mem *from = w.lanes<Mem>(op.a);
    write_lanes<Reg>(w, op.dst, [=](unsigned i) { return static_cast<Reg>(from[i]); });
}
template <class Mem, class Reg, unsigned>
struct Widen {
    static constexpr Handler run = widen<Mem, Reg>;
};

}  // namespace

Handler load_handler(MemorySpace space, const AccessShape &shape) {
    switch (space) {
        case MemorySpace::global:
            return by_shape<LoadGlobal>(shape);
        case MemorySpace::shared:
            return by_shape<LoadShared>(shape);
        case MemorySpace::local:
            return by_shape<LoadLocal>(shape);
        case MemorySpace::constant:
            return by_shape<LoadConstant>(shape);
        case MemorySpace::param:
            return by_shape<LoadParam>(shape);
        case MemorySpace::generic:
            return by_shape<LoadGeneric>(shape);
    }
    return nullptr;
}

Handler load_known_param_handler(const AccessShape &shape) {
    return by_shape<LoadKnownParam>(shape);
}

Handler widen_handler(const AccessShape &shape) {
    return by_shape<Widen>(shape);
}

namespace {

constexpr uint32_t kBytesShift = 16, kRegisterShift = 20, kCountShift = 24, kSignShift = 28;

AccessShape shape_of(const Op &op) {
    return {1u << (op.extra >> kBytesShift & 0xf), 1u << (op.extra >> kRegisterShift & 0xf),
            1u << (op.extra >> kCountShift & 0xf), (op.extra >> kSignShift & 1) != 0};
}

// Calls visit(first, count) for aligned pieces of the used bytes of what a lane reads, each a power of two of granules.
template <class Visit>
void each_piece(const Op &op, unsigned bytes, unsigned granule, Visit visit) {
    const auto used = [&](unsigned first, unsigned count) {
        for (unsigned g = first; g < first + count; g += granule)
            if (!(op.c >> g & ((1u << granule) - 1))) return false;
        return true;
    };
    for (unsigned first = 0; first < bytes;) {
        if (!used(first, granule)) {
            first += granule;
            continue;
        }
        unsigned count = granule;
        while (first % (2 * count) == 0 && first + 2 * count <= bytes && used(first, 2 * count)) count *= 2;
        visit(first, count);
        first += count;
    }
}

}  // namespace

uint32_t packed_shape(MemorySpace space, const AccessShape &shape) {
    const auto log = [](unsigned n) { return static_cast<uint32_t>(std::countr_zero(n)); };
    return static_cast<uint32_t>(space) << kSpaceShift | log(shape.bytes) << kBytesShift |
           log(shape.register_bytes) << kRegisterShift | log(shape.count) << kCountShift |
           static_cast<uint32_t>(shape.sign) << kSignShift;
}

void exec_load_of_used_bytes(Warp &w, const Op &op) {
    const MemorySpace space = space_of(op);
    const AccessShape shape = shape_of(op);
    const unsigned bytes = shape.bytes * shape.count;
    // The load itself looks at addresses and counts; a bad address is its to report.
    SharedShadow *const shadow = w.block->shadow;
    GlobalShadow *const global_shadow = w.block->global_shadow;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    if (shadow && space != MemorySpace::global) {
        uint32_t offset[kLanes] = {}, exec = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            uint64_t at = address[lane];
            if (space == MemorySpace::generic) {
                if ((at & kWindowMask) != kSharedWindow) continue;
                at &= ~kWindowMask;
            } else if (op.a == kNoSlot || (op.extra & kBase32)) {
                at = static_cast<uint32_t>(at);
            }
            const uint32_t size = w.block->shared_bytes;
            if (at % bytes || at >= size || size - at < bytes) continue;
            offset[lane] = static_cast<uint32_t>(at);
            exec |= w.exec & 1u << lane;
        }
        each_piece(op, bytes, w.block->program->shadow_granule, [&](unsigned first, unsigned count) {
            if (!exec) return;
            uint32_t piece[kLanes];
            for (unsigned lane = 0; lane < kLanes; ++lane) piece[lane] = offset[lane] + first;
            repeat_active(piece, exec);
            shadow->access(w, op, Access::read, piece, count, exec);
        });
        if (tracks_shared(w)) [[unlikely]]
            note_shared_load(w, op, data_slots(w, op, shape.count, op.dst), shape, offset, exec, op.c);
    }
    struct Restore {  // also where a hazard ends the launch
        Block &block;
        SharedShadow *shadow;
        GlobalShadow *global_shadow;
        ~Restore() {
            block.shadow = shadow;
            block.global_shadow = global_shadow;
        }
    };
    {
        const Restore restore{*w.block, shadow, global_shadow};
        w.block->shadow = nullptr;
        w.block->global_shadow = nullptr;
        load_handler(space, shape)(w, op);
    }
    const uint32_t global = !global_shadow                  ? 0
                            : space == MemorySpace::global  ? w.exec
                            : space == MemorySpace::generic ? split_generic(address, w.exec).global
                                                            : 0;
    each_piece(op, bytes, w.block->program->global_granule, [&](unsigned first, unsigned count) {
        if (!global) return;
        uint64_t piece[kLanes];
        for (unsigned lane = 0; lane < kLanes; ++lane) piece[lane] = address[lane] + first;
        repeat_active(piece, global);
        global_shadow->access(w, op, global_flags(op, false), piece, count, global);
    });
    end_of_load(w);
}

namespace {

template <class Mem, class Reg, unsigned N>
struct Store {
    static constexpr unsigned kBytes = sizeof(Mem) * N;
    static constexpr AccessShape kShape{sizeof(Mem), sizeof(Reg), N};

    static const uint32_t *slots(const Warp &w, const Op &op) { return data_slots(w, op, N, op.b); }

    // Where N is more, nobody looks at them.
    static StoredValues values_in(const Warp &w, const uint32_t *slot) {
        StoredValues values;
        if constexpr (N <= 4) {
            for (unsigned c = 0; c < N; ++c) values.slot[c] = w.regs + slot[c];
            values.components = N;
            values.bytes = sizeof(Mem);
            values.stride = sizeof(Reg);
        }
        return values;
    }

    [[gnu::noinline]] static void to_shared(Warp &w, const Op &op, SharedAccess &access) {
        const uint32_t *slot = slots(w, op);
        const StoredValues values = values_in(w, slot);
        account_shared<kBytes>(w, op, op.extra & kStrong ? Access::volatile_write : Access::write, access,
                               N <= 4 ? &values : nullptr);
        std::byte *memory = w.block->shared;
        store_lanes<Mem, Reg, N>(w, slot, access.exec, access.pattern,
                                 [&](unsigned i) { return memory + access.offset[i]; });
        if (tracks_shared(w)) [[unlikely]]
            note_shared_store(w, op, slot, kShape, access.offset, access.exec);
    }

    [[gnu::noinline]] static void to_global(Warp &w, const Op &op, MemorySpace space, uint64_t *address,
                                            uint32_t exec) {
        Pattern pattern;
        const StoredValues values = values_in(w, slots(w, op));
        const bool plain = N <= 4 && !(op.extra & kStrong);
        if (!find_global<kBytes>(w, op, space, Intent::write, address, exec, pattern, plain ? &values : nullptr))
            return;
        if (op.extra & kStrong) [[unlikely]] {
            if (op.extra & kRelease && !(op.extra & kTeamScope)) show_stores(w);
            return strong_store(w, op, address, exec);
        }
        if (w.block->late_stores) [[unlikely]]
            return store_late(w, op, address, exec);
        to_host(w, op, address, exec, pattern);
        if (plain && w.block->global_shadow) w.block->global_shadow->stored(address);
    }

    [[gnu::noinline]] static void to_host(const Warp &w, const Op &op, const uint64_t *host, uint32_t exec,
                                          Pattern pattern) {
        store_lanes<Mem, Reg, N>(w, slots(w, op), exec, pattern, [&](unsigned i) { return host_pointer(host[i]); });
    }

    [[gnu::noinline]] static void store_late(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
        const uint32_t *slot = slots(w, op);
        Mem value[kLanes][N];
        uint64_t at[kLanes];  // where the values of each lane are meanwhile
        for (unsigned lane = 0; lane < kLanes; ++lane) at[lane] = reinterpret_cast<uint64_t>(value[lane]);
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            for (unsigned c = 0; c < N; ++c) value[lane][c] = static_cast<Mem>(w.lanes<Reg>(slot[c])[lane]);
            w.block->late_stores->store(host_pointer(address[lane]), host_pointer(at[lane]), kBytes);
        }
        if (N <= 4 && w.block->global_shadow) w.block->global_shadow->stored(at);
    }

    // Other host threads may read or write there at the same time.
    [[gnu::noinline]] static void strong_store(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
        const uint32_t *slot = slots(w, op);
        const auto order = op.extra & kRelease ? std::memory_order_release : std::memory_order_relaxed;
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            for (unsigned c = 0; c < N; ++c) {
                Mem *to = reinterpret_cast<Mem *>(address[lane]) + c;
                std::atomic_ref<Mem>(*to).store(static_cast<Mem>(w.lanes<Reg>(slot[c])[lane]), order);
            }
        }
    }

    [[gnu::noinline]] static void to_local(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        exec = resolve_local(w, op, Intent::write, address, kBytes, exec);
        to_host(w, op, address, exec, Pattern::scattered);
        if (tracks_local(w)) note_local_store(w, op, slots(w, op), kShape, address, exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreShared {
    static void run(Warp &w, const Op &op) {
        SharedAccess access;
        if (find_shared<sizeof(Mem) * N>(w, op, Intent::write, access)) Store<Mem, Reg, N>::to_shared(w, op, access);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreGlobal {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Store<Mem, Reg, N>::to_global(w, op, MemorySpace::global, address.of, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreLocal {
    static void run(Warp &w, const Op &op) {
        Addresses address(w, op);
        Store<Mem, Reg, N>::to_local(w, op, address.of, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreGeneric {
    static void run(Warp &w, const Op &op) {
        using S = Store<Mem, Reg, N>;
        move_generic(w, op, Intent::write, S::kBytes, {S::to_shared, S::to_global, S::to_local, nullptr});
    }
};

}  // namespace

Handler store_handler(MemorySpace space, const AccessShape &shape) {
    switch (space) {
        case MemorySpace::global:
            return by_shape<StoreGlobal, false>(shape);
        case MemorySpace::shared:
            return by_shape<StoreShared, false>(shape);
        case MemorySpace::local:
            return by_shape<StoreLocal, false>(shape);
        case MemorySpace::generic:
            return by_shape<StoreGeneric, false>(shape);
        default:
            return nullptr;
    }
}

}  // namespace warpsim
