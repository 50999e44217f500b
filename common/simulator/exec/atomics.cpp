#include "exec/atomics.h"

#include <atomic>
#include <bit>
#include <cmath>

#include "exec/banks.h"
#include "exec/half.h"
#include "exec/memory.h"
#include "exec/memory_access.h"

namespace warpsim {
namespace {

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

float half_value(uint16_t bits, bool bf16) { return bf16 ? bf16_to_float(bits) : f16_to_float(bits); }
uint16_t half_bits(float x, bool bf16) { return bf16 ? float_to_bf16(x) : float_to_f16(x); }

// What an operation makes of the old value and the operands. `global`: fp32 add flushes subnormals there, as the manual says.
template <class T> struct Add { static T of(T old, T b, T, bool) { return T(old + b); } };
template <class T> struct Min { static T of(T old, T b, T, bool) { return b < old ? b : old; } };
template <class T> struct Max { static T of(T old, T b, T, bool) { return old < b ? b : old; } };
template <class T> struct And { static T of(T old, T b, T, bool) { return old & b; } };
template <class T> struct Or { static T of(T old, T b, T, bool) { return old | b; } };
template <class T> struct Xor { static T of(T old, T b, T, bool) { return old ^ b; } };
template <class T> struct Inc { static T of(T old, T b, T, bool) { return old >= b ? 0 : old + 1; } };
template <class T> struct Dec { static T of(T old, T b, T, bool) { return old == 0 || old > b ? b : old - 1; } };
template <class T> struct Exch { static T of(T, T b, T, bool) { return b; } };
template <class T> struct Cas { static T of(T old, T b, T c, bool) { return old == b ? c : old; } };

struct AddF32 {
    static uint32_t of(uint32_t old, uint32_t b, uint32_t, bool global) {
        float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
        if (global) x = flush(x), y = flush(y);
        const float sum = canonical(x + y);
        return std::bit_cast<uint32_t>(global ? flush(sum) : sum);
    }
};
struct AddF64 {
    static uint64_t of(uint64_t old, uint64_t b, uint64_t, bool) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    }
};
// fp32 sums of two 16-bit values round once more to the same 16 bits as a sum rounded at once.
template <bool bf16> struct AddHalf {
    static uint16_t of(uint16_t old, uint16_t b, uint16_t, bool) {
        return half_bits(half_value(old, bf16) + half_value(b, bf16), bf16);
    }
};
template <bool bf16> struct AddHalf2 {
    static uint32_t of(uint32_t old, uint32_t b, uint32_t, bool) {
        const uint16_t low = AddHalf<bf16>::of(uint16_t(old), uint16_t(b), 0, false);
        const uint16_t high = AddHalf<bf16>::of(uint16_t(old >> 16), uint16_t(b >> 16), 0, false);
        return low | uint32_t(high) << 16;
    }
};

// T: an unsigned type of the element's width. S: what the operation computes in.
template <class T, class F, class S = T> struct Atomic {
    // The operand as the operation sees it.
    static S operand(const Warp &w, uint32_t slot, unsigned lane) {
        return slot == kNoSlot ? S(0) : std::bit_cast<S>(w.lanes<T>(slot)[lane]);
    }

    // One lane's update; returns the old value.
    static T update(const Warp &w, const Op &op, unsigned lane, std::byte *at, bool global) {
        const S b = operand(w, op.b, lane), c = operand(w, op.c, lane);
        T &place = *reinterpret_cast<T *>(at);
        if (!global) {  // one host thread runs the whole block
            const T old = place;
            place = std::bit_cast<T>(F::of(std::bit_cast<S>(old), b, c, false));
            return old;
        }
        std::atomic_ref<T> shared_place(place);
        T old = shared_place.load();
        while (!shared_place.compare_exchange_weak(old, std::bit_cast<T>(F::of(std::bit_cast<S>(old), b, c, true)))) {
        }
        return old;
    }

    // at(lane): the host's address. Lanes go one after the other, so that equal addresses add up.
    template <class At> static void run_lanes(Warp &w, const Op &op, uint32_t exec, bool global, At at) {
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            const T old = update(w, op, lane, at(lane), global);
            if (op.dst != kNoSlot) w.lanes<T>(op.dst)[lane] = old;
        }
    }

    // Locks as people write them have no fences: a successful cas acquires, and one that stores 0 or an exch releases,
    // unless the instruction says what it is.
    static void synchronize(Warp &w, const Op &op, const uint64_t *address, uint64_t window, uint32_t exec) {
        SharedShadow *shadow = w.block->shadow;
        if (!shadow) return;
        constexpr bool exch = std::is_same_v<F, Exch<S>>, cas = std::is_same_v<F, Cas<S>>;
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            bool acquire = op.extra & kAcquire, release = op.extra & kRelease, writes = true;
            if constexpr (cas) {
                writes = op.dst == kNoSlot || w.lanes<T>(op.dst)[lane] == w.lanes<T>(op.b)[lane];
            }
            if (!(op.extra & kOwnOrder)) {
                acquire |= exch || (cas && writes);
                release |= exch || (cas && writes && w.lanes<T>(op.c)[lane] == 0);
            }
            shadow->synchronize_at(w, int(lane), address[lane] + window, op.dst != kNoSlot, writes, acquire, release);
        }
    }

    static void in_shared(Warp &w, const Op &op, const uint64_t *address, uint32_t exec) {
        alignas(64) uint32_t offset[kLanes];
        exec = check_shared(w, op, Intent::atomic, address, offset, sizeof(T), exec);
        if (!exec) return;
        const SharedCost cost = atomic_shared_cost(offset, sizeof(T), exec);
        w.stats[op.index].shared_wavefronts += cost.wavefronts;
        w.stats[op.index].shared_ideal += cost.ideal;
        if (w.block->shadow) w.block->shadow->access(w, op, Access::atomic, offset, sizeof(T), exec);
        run_lanes(w, op, exec, false, [&](unsigned lane) { return w.block->shared + offset[lane]; });
        uint64_t wide[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) wide[i] = offset[i];
        synchronize(w, op, wide, kSharedWindow, exec);
    }

    static void in_global(Warp &w, const Op &op, const uint64_t *address, uint32_t exec, MemorySpace space) {
        alignas(64) uint64_t host[kLanes];
        std::memcpy(host, address, sizeof host);
        count_global(w.stats[op.index], global_cost(address, sizeof(T), exec), sizeof(T), exec);
        exec = resolve_global(w, op, space, Intent::atomic, host, sizeof(T), exec);
        if (!exec) return;
        run_lanes(w, op, exec, true, [&](unsigned lane) { return host_pointer(host[lane]); });
        synchronize(w, op, address, 0, exec);
    }

    static void run(Warp &w, const Op &op) {
        alignas(64) uint64_t address[kLanes];
        lane_addresses(w, op, address);
        const MemorySpace space = space_of(op);
        if (space == MemorySpace::shared) return in_shared(w, op, address, w.exec);
        if (space == MemorySpace::global) return in_global(w, op, address, w.exec, space);
        const Windows lanes = split_generic(address, w.exec);
        if (lanes.shared) {
            uint64_t offset[kLanes];
            remove_window(offset, address, kSharedWindow);
            in_shared(w, op, offset, lanes.shared);
        }
        // Local memory and the parameters are no place for atomics: resolve_global says so.
        const uint32_t others = lanes.global | lanes.local | lanes.param;
        if (others) in_global(w, op, address, others, MemorySpace::generic);
    }
};

template <class T, template <class> class F, class S = T> constexpr Handler form = Atomic<T, F<S>, S>::run;

struct Form {
    std::string_view operation, type;
    Handler handler;
};

constexpr Form kForms[] = {
    {"add", "u32", form<uint32_t, Add>},
    {"add", "s32", form<uint32_t, Add>},
    {"add", "u64", form<uint64_t, Add>},
    {"add", "s64", form<uint64_t, Add>},
    {"add", "f32", Atomic<uint32_t, AddF32>::run},
    {"add", "f64", Atomic<uint64_t, AddF64>::run},
    {"add", "f16", Atomic<uint16_t, AddHalf<false>>::run},
    {"add", "bf16", Atomic<uint16_t, AddHalf<true>>::run},
    {"add", "f16x2", Atomic<uint32_t, AddHalf2<false>>::run},
    {"add", "bf16x2", Atomic<uint32_t, AddHalf2<true>>::run},
    {"min", "u32", form<uint32_t, Min>},
    {"min", "s32", form<uint32_t, Min, int32_t>},
    {"min", "u64", form<uint64_t, Min>},
    {"min", "s64", form<uint64_t, Min, int64_t>},
    {"max", "u32", form<uint32_t, Max>},
    {"max", "s32", form<uint32_t, Max, int32_t>},
    {"max", "u64", form<uint64_t, Max>},
    {"max", "s64", form<uint64_t, Max, int64_t>},
    {"and", "b32", form<uint32_t, And>},
    {"and", "b64", form<uint64_t, And>},
    {"or", "b32", form<uint32_t, Or>},
    {"or", "b64", form<uint64_t, Or>},
    {"xor", "b32", form<uint32_t, Xor>},
    {"xor", "b64", form<uint64_t, Xor>},
    {"inc", "u32", form<uint32_t, Inc>},
    {"dec", "u32", form<uint32_t, Dec>},
    {"exch", "b32", form<uint32_t, Exch>},
    {"exch", "b64", form<uint64_t, Exch>},
    {"cas", "b16", form<uint16_t, Cas>},
    {"cas", "b32", form<uint32_t, Cas>},
    {"cas", "b64", form<uint64_t, Cas>},
};

}  // namespace

Handler atomic_handler(std::string_view operation, std::string_view type) {
    for (const Form &one : kForms)
        if (one.operation == operation && one.type == type) return one.handler;
    return nullptr;
}

}  // namespace warpsim
