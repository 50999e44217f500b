// ld and ldu.
#include <atomic>

#include "exec/memory_access.h"
#include "exec/tracking_memory.h"

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

}  // namespace warpsim
