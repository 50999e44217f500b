// st.
#include <atomic>

#include "exec/late_stores.h"
#include "exec/memory_access.h"
#include "exec/tracking_memory.h"

namespace warpsim {

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
