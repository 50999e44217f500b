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

template <class Mem, class Reg, unsigned N>
struct Load {
    static constexpr unsigned kBytes = sizeof(Mem) * N;
    static constexpr AccessShape kShape{sizeof(Mem), sizeof(Reg), N, std::is_signed_v<Mem>};

    static const uint32_t *slots(const Warp &w, const Op &op) { return data_slots(w, op, N, op.dst); }

    static void from_shared(Warp &w, const Op &op, SharedAccess &access) {
        account_shared(w, op, op.extra & kStrong ? Access::volatile_read : Access::read, access, kBytes, nullptr);
        const std::byte *memory = w.block->shared;
        load_lanes<Mem, Reg, N>(w, slots(w, op), access.exec, access.pattern,
                                [&](unsigned i) { return memory + access.offset[i]; });
        if (tracks_shared(w)) [[unlikely]]
            note_shared_load(w, op, slots(w, op), kShape, access.offset, access.exec);
    }

    static void from_global(Warp &w, const Op &op, MemorySpace space, uint64_t *address, uint32_t exec) {
        Pattern pattern;
        if (!find_global(w, op, space, Intent::read, address, kBytes, exec, pattern)) return;
        if (op.extra & kStrong) [[unlikely]]
            return strong_load(w, op, address, exec);
        load_lanes<Mem, Reg, N>(w, slots(w, op), exec, pattern, [&](unsigned i) { return host_pointer(address[i]); });
    }

    // Other host threads may write there at the same time.
    static void strong_load(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
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

    static void from_private(const Warp &w, const Op &op, const uint64_t *host, uint32_t exec) {
        if (!exec) return;
        load_lanes<Mem, Reg, N>(w, slots(w, op), exec, Pattern::scattered,
                                [&](unsigned i) { return host_pointer(host[i]); });
    }

    static void from_local(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        exec = resolve_local(w, op, Intent::read, address, kBytes, exec);
        from_private(w, op, address, exec);
        if (tracks_local(w)) note_local_load(w, op, slots(w, op), kShape, address, exec);
    }
    static void from_param(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        from_private(w, op, address, resolve_param(w, op, Intent::read, address, kBytes, exec));
    }

    static void from_generic(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        const Windows lanes = split_generic(address, exec);
        uint64_t part[kLanes];
        if (lanes.shared) {
            SharedAccess access;
            remove_window(part, address, kSharedWindow);
            access.exec = check_shared(w, op, Intent::read, part, access.offset, kBytes, lanes.shared);
            if (access.exec) from_shared(w, op, access);
        }
        if (lanes.local) {
            remove_window(part, address, kLocalWindow);
            from_local(w, op, part, lanes.local);
        }
        if (lanes.param) {
            remove_window(part, address, kParamWindow);
            from_param(w, op, part, lanes.param);
        }
        if (lanes.global) from_global(w, op, MemorySpace::generic, address, lanes.global);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadShared {
    static void run(Warp &w, const Op &op) {
        SharedAccess access;
        if (find_shared(w, op, Intent::read, access, sizeof(Mem) * N)) Load<Mem, Reg, N>::from_shared(w, op, access);
        end_of_load(w);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadGlobal {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Load<Mem, Reg, N>::from_global(w, op, MemorySpace::global, address, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadConstant {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Load<Mem, Reg, N>::from_global(w, op, MemorySpace::constant, address, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadLocal {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Load<Mem, Reg, N>::from_local(w, op, address, w.exec);
        end_of_load(w);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadParam {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Load<Mem, Reg, N>::from_param(w, op, address, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct LoadGeneric {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Load<Mem, Reg, N>::from_generic(w, op, address, w.exec);
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

template <class Mem, class Reg, unsigned N>
struct Widen {
    static void run(Warp &w, const Op &op) {
        const Mem *from = w.lanes<Mem>(op.a);
        write_lanes<Reg>(w, op.dst, [=](unsigned i) { return static_cast<Reg>(from[i]); });
    }
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

    static void to_shared(Warp &w, const Op &op, SharedAccess &access) {
        const uint32_t *slot = slots(w, op);
        const StoredValues values = values_in(w, slot);
        account_shared(w, op, op.extra & kStrong ? Access::volatile_write : Access::write, access, kBytes,
                       N <= 4 ? &values : nullptr);
        std::byte *memory = w.block->shared;
        store_lanes<Mem, Reg, N>(w, slot, access.exec, access.pattern,
                                 [&](unsigned i) { return memory + access.offset[i]; });
        if (tracks_shared(w)) [[unlikely]]
            note_shared_store(w, op, slot, kShape, access.offset, access.exec);
    }

    static void to_global(Warp &w, const Op &op, MemorySpace space, uint64_t *address, uint32_t exec) {
        Pattern pattern;
        const StoredValues values = values_in(w, slots(w, op));
        const bool plain = N <= 4 && !(op.extra & kStrong);
        if (!find_global(w, op, space, Intent::write, address, kBytes, exec, pattern, plain ? &values : nullptr))
            return;
        if (op.extra & kStrong) [[unlikely]] {
            if (op.extra & kRelease && !(op.extra & kTeamScope)) show_stores(w);
            return strong_store(w, op, address, exec);
        }
        if (w.block->late_stores) [[unlikely]]
            return store_late(w, op, address, exec);
        store_lanes<Mem, Reg, N>(w, slots(w, op), exec, pattern, [&](unsigned i) { return host_pointer(address[i]); });
        if (plain && w.block->global_shadow) w.block->global_shadow->stored(address);
    }

    static void store_late(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
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
    static void strong_store(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
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

    static void to_local(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        exec = resolve_local(w, op, Intent::write, address, kBytes, exec);
        store_lanes<Mem, Reg, N>(w, slots(w, op), exec, Pattern::scattered,
                                 [&](unsigned i) { return host_pointer(address[i]); });
        if (tracks_local(w)) note_local_store(w, op, slots(w, op), kShape, address, exec);
    }

    static void to_generic(Warp &w, const Op &op, uint64_t *address, uint32_t exec) {
        const Windows lanes = split_generic(address, exec);
        uint64_t part[kLanes];
        if (lanes.shared) {
            SharedAccess access;
            remove_window(part, address, kSharedWindow);
            access.exec = check_shared(w, op, Intent::write, part, access.offset, kBytes, lanes.shared);
            if (access.exec) to_shared(w, op, access);
        }
        if (lanes.local) {
            remove_window(part, address, kLocalWindow);
            to_local(w, op, part, lanes.local);
        }
        // The kernel's parameters are not to be written: no global address either.
        if (lanes.global | lanes.param) to_global(w, op, MemorySpace::generic, address, lanes.global | lanes.param);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreShared {
    static void run(Warp &w, const Op &op) {
        SharedAccess access;
        if (find_shared(w, op, Intent::write, access, sizeof(Mem) * N)) Store<Mem, Reg, N>::to_shared(w, op, access);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreGlobal {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Store<Mem, Reg, N>::to_global(w, op, MemorySpace::global, address, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreLocal {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Store<Mem, Reg, N>::to_local(w, op, address, w.exec);
    }
};

template <class Mem, class Reg, unsigned N>
struct StoreGeneric {
    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        Store<Mem, Reg, N>::to_generic(w, op, address, w.exec);
    }
};

}  // namespace

Handler store_handler(MemorySpace space, const AccessShape &shape) {
    switch (space) {
        case MemorySpace::global:
            return by_shape<StoreGlobal>(shape);
        case MemorySpace::shared:
            return by_shape<StoreShared>(shape);
        case MemorySpace::local:
            return by_shape<StoreLocal>(shape);
        case MemorySpace::generic:
            return by_shape<StoreGeneric>(shape);
        default:
            return nullptr;
    }
}

}  // namespace warpsim
