// atom and red: read-modify-write of one element a lane, lanes in order.
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "core/op_formats.h"
#include "core/warp.h"
#include "counters/accesses.h"
#include "instructions/arithmetic/numbers.h"
#include "instructions/convert/convert.h"
#include "instructions/rows.h"
#include "machine/addresses.h"
#include "machine/global_hazards.h"
#include "machine/lane_access.h"
#include "machine/late_stores.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

// What an operation makes of the old value and the operands; of floats: instructions/arithmetic/numbers.h.
template <class T>
struct Add {
    static T of(T old, T b, T, bool) { return T(old + b); }
};
template <class T>
struct Min {
    static T of(T old, T b, T, bool) { return b < old ? b : old; }
};
template <class T>
struct Max {
    static T of(T old, T b, T, bool) { return old < b ? b : old; }
};
template <class T>
struct And {
    static T of(T old, T b, T, bool) { return old & b; }
};
template <class T>
struct Or {
    static T of(T old, T b, T, bool) { return old | b; }
};
template <class T>
struct Xor {
    static T of(T old, T b, T, bool) { return old ^ b; }
};
template <class T>
struct Inc {
    static T of(T old, T b, T, bool) { return old >= b ? 0 : old + 1; }
};
template <class T>
struct Dec {
    static T of(T old, T b, T, bool) { return old == 0 || old > b ? b : old - 1; }
};
template <class T>
struct Exch {
    static T of(T, T b, T, bool) { return b; }
};
template <class T>
struct Cas {
    static T of(T old, T b, T c, bool) { return old == b ? c : old; }
};

template <class Half>
struct Both {
    static uint32_t of(uint32_t old, uint32_t b, uint32_t, bool) {
        const uint16_t low = Half::of(uint16_t(old), uint16_t(b), 0, false);
        const uint16_t high = Half::of(uint16_t(old >> 16), uint16_t(b >> 16), 0, false);
        return low | uint32_t(high) << 16;
    }
};

using Wide = unsigned __int128;
std::mutex wide_mutex;  // 16-byte atomics in global memory: among one another they are atomic

// A lane's element in a slot; those of 16 bytes lie there as two arrays of halves.
template <class T>
T get(const Warp &w, uint32_t slot, unsigned lane) {
    if constexpr (sizeof(T) == 16) {
        const uint64_t *halves = w.lanes<uint64_t>(slot);
        return Wide(halves[kLanes + lane]) << 64 | halves[lane];
    } else {
        return w.lanes<T>(slot)[lane];
    }
}
template <class T>
void set(const Warp &w, uint32_t slot, unsigned lane, T value) {
    if constexpr (sizeof(T) == 16) {
        uint64_t *halves = w.lanes<uint64_t>(slot);
        halves[lane] = uint64_t(value);
        halves[kLanes + lane] = uint64_t(value >> 64);
    } else {
        w.lanes<T>(slot)[lane] = value;
    }
}

// What synchronize() must know of lanes that registers no longer tell, since the old value may replace an operand.
struct Outcome {
    uint32_t stored = 0;  // all but a cas that failed
    uint32_t zero = 0;    // a cas that would store 0
};

// What differs between forms: there are many, and the rest is compiled once. host: where the lanes' elements are.
struct Update {
    unsigned bytes;
    Exchange exchange;
    // Lanes go one after the other, so that equal addresses add up.
    Outcome (*now)(Warp &, const Op &, uint32_t exec, bool global, const uint64_t *host);
    // When all that the lanes' operands come to is known. Nothing uses the old values.
    Outcome (*later)(const Warp &, const Op &, uint32_t exec, const uint64_t *host);
};

// Locks as people write them have no fences: a successful cas acquires, and one that stores 0 or an exch releases,
// unless the instruction says what it is.
void synchronize(Warp &w, const Op &op, Exchange exchange, const uint64_t *address, uint64_t window, uint32_t exec,
                 Outcome outcome) {
    SharedShadow *shadow = w.block->shadow;
    if (!shadow && !w.block->late_stores) return;
    const bool exch = exchange == Exchange::always, cas = exchange == Exchange::compared;
    const bool guess = !(op.extra & kOwnOrder);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const bool stored = outcome.stored >> lane & 1, zero = outcome.zero >> lane & 1;
        const bool acquire = (op.extra & kAcquire) || (guess && (exch || (cas && stored)));
        const bool release = (op.extra & kRelease) || (guess && (exch || (cas && stored && zero)));
        // It is still the block's turn: nobody has seen the atomic yet.
        if (!window && release && stored && !(op.extra & kTeamScope)) show_stores(w);
        if (!shadow) continue;
        shadow->synchronize_at(w, int(lane), address[lane] + window, op.dst != kNoSlot, stored, acquire,
                               release && stored);
        if (!window) order_blocks(w, op, lane, address[lane], op.dst != kNoSlot, stored);
    }
}

void in_shared(Warp &w, const Op &op, const Update &update, const uint64_t *address, uint32_t exec) {
    alignas(64) uint32_t offset[kLanes];
    exec = check_shared(w, op, Intent::atomic, address, offset, update.bytes, exec);
    if (exec && op.target) exec = check_variable(w, op, Intent::atomic, offset, update.bytes, exec);
    if (!exec) return;
    const SharedCost cost = atomic_shared_cost(offset, update.bytes, exec);
    w.stats[op.index].shared_wavefronts += cost.wavefronts;
    w.stats[op.index].shared_ideal += cost.ideal;
    if (w.accesses) [[unlikely]]
        w.accesses->shared(op, offset, update.bytes, exec, cost);
    if (w.block->shadow) w.block->shadow->access(w, op, Access::atomic, offset, update.bytes, exec);
    const auto memory = reinterpret_cast<uint64_t>(w.block->shared);
    alignas(64) uint64_t host[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) host[i] = memory + offset[i];
    const Outcome outcome = update.now(w, op, exec, false, host);
    if (tracks_shared(w)) [[unlikely]]
        note_shared_atomic(w, op, update.bytes, offset, exec, update.exchange, outcome.stored);
    uint64_t wide[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) wide[i] = offset[i];
    synchronize(w, op, update.exchange, wide, kSharedWindow, exec, outcome);
}

void in_global(Warp &w, const Op &op, const Update &update, const uint64_t *address, uint32_t exec, MemorySpace space) {
    alignas(64) uint64_t host[kLanes];
    std::memcpy(host, address, sizeof host);
    // A vector's first element is aligned as the whole vector, and its op is counted for all of it.
    const unsigned alignment = 1u << (op.extra >> kAlignmentShift & 0xf);
    const GlobalCost cost = global_cost(address, alignment, exec);
    count_global(w.stats[op.index], cost, alignment, exec);
    if (w.accesses) [[unlikely]]
        w.accesses->global(op, address, alignment, exec, cost);
    exec = resolve_global(w, op, space, Intent::atomic, host, update.bytes, exec, alignment);
    if (!exec) return;
    if (GlobalShadow *shadow = w.block->global_shadow)
        shadow->access(w, op, global_flags(op, true) | kGlobalUpdate, address, update.bytes, exec);
    const Outcome outcome = w.block->pending ? update.later(w, op, exec, host) : update.now(w, op, exec, true, host);
    synchronize(w, op, update.exchange, address, 0, exec, outcome);
}

void run_atomic(Warp &w, const Op &op, const Update &update) {
    alignas(64) uint64_t address[kLanes];
    lane_addresses(w, op, address);
    const MemorySpace space = space_of(op);
    if (space == MemorySpace::shared) return in_shared(w, op, update, address, w.exec);
    if (space == MemorySpace::global) return in_global(w, op, update, address, w.exec, space);
    const Windows lanes = split_generic(address, w.exec);
    if (lanes.shared) {
        uint64_t offset[kLanes];
        remove_window(offset, address, kSharedWindow);
        in_shared(w, op, update, offset, lanes.shared);
    }
    // Local memory and the parameters are no place for atomics: resolve_global says so.
    const uint32_t others = lanes.global | lanes.local | lanes.param;
    if (others) in_global(w, op, update, address, others, MemorySpace::generic);
}

// T: an unsigned type of the element's width. S: what the operation computes in.
template <class T, class F, class S = T>
struct Atomic {
    static constexpr bool kCas = std::is_same_v<F, Cas<S>>;

    // The operand as the operation sees it.
    static S operand(const Warp &w, uint32_t slot, unsigned lane) {
        return slot == kNoSlot ? S(0) : std::bit_cast<S>(get<T>(w, slot, lane));
    }

    // Carries out b's update, also for other host threads.
    static void apply(std::byte *at, uint64_t b) {
        if constexpr (sizeof(T) < 16) {
            std::atomic_ref<T> place(*reinterpret_cast<T *>(at));
            T old = place.load();
            while (!place.compare_exchange_weak(
                old, std::bit_cast<T>(F::of(std::bit_cast<S>(old), std::bit_cast<S>(T(b)), S(0), true)))) {
            }
        }
    }

    static Outcome later(const Warp &w, const Op &op, uint32_t exec, const uint64_t *host) {
        if constexpr (sizeof(T) < 16) {
            const auto both = [](T a, T b) {
                return std::bit_cast<T>(F::of(std::bit_cast<S>(a), std::bit_cast<S>(b), S(0), true));
            };
            for (uint32_t rest = exec; rest; rest &= rest - 1) {
                const unsigned lane = unsigned(std::countr_zero(rest));
                w.block->pending->add(host_pointer(host[lane]), get<T>(w, op.b, lane), apply, both);
            }
        }
        return {exec, 0};
    }

    // One lane's update; returns the old value.
    static T of_lane(const Warp &w, const Op &op, unsigned lane, std::byte *at, bool global) {
        const S b = operand(w, op.b, lane), c = operand(w, op.c, lane);
        T &place = *reinterpret_cast<T *>(at);
        std::unique_lock<std::mutex> lock(wide_mutex, std::defer_lock);
        if (sizeof(T) == 16 && global) lock.lock();
        if (!global || sizeof(T) == 16) {  // one host thread runs the whole block
            const T old = place;
            place = std::bit_cast<T>(F::of(std::bit_cast<S>(old), b, c, global));
            return old;
        }
        if constexpr (sizeof(T) < 16) {
            std::atomic_ref<T> shared_place(place);
            T old = shared_place.load();
            while (
                !shared_place.compare_exchange_weak(old, std::bit_cast<T>(F::of(std::bit_cast<S>(old), b, c, true)))) {
            }
            return old;
        }
    }

    static Outcome now(Warp &w, const Op &op, uint32_t exec, bool global, const uint64_t *host) {
        Outcome outcome;
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = unsigned(std::countr_zero(rest));
            const T old = of_lane(w, op, lane, host_pointer(host[lane]), global);
            if constexpr (kCas) {
                outcome.stored |= uint32_t(old == get<T>(w, op.b, lane)) << lane;
                outcome.zero |= uint32_t(get<T>(w, op.c, lane) == 0) << lane;
            } else {
                outcome.stored |= 1u << lane;
            }
            if (op.dst != kNoSlot) set<T>(w, op.dst, lane, old);
        }
        return outcome;
    }

    static constexpr Update kUpdate{sizeof(T),
                                    kCas                         ? Exchange::compared
                                    : std::is_same_v<F, Exch<S>> ? Exchange::always
                                                                 : Exchange::never,
                                    now, later};

    static void run(Warp &w, const Op &op) { run_atomic(w, op, kUpdate); }
};

template <class T, template <class> class F, class S = T>
constexpr Handler form = Atomic<T, F<S>, S>::run;

struct Form {
    std::string_view operation, type;
    Handler handler;
};

constexpr Form kForms[] = {
    {"add", "u32", form<uint32_t, Add>},
    {"add", "s32", form<uint32_t, Add>},
    {"add", "u64", form<uint64_t, Add>},
    {"add", "f32", Atomic<uint32_t, AddF32>::run},
    {"add", "f64", Atomic<uint64_t, AddF64>::run},
    {"add", "f16", Atomic<uint16_t, AddHalf<false>>::run},
    {"add", "bf16", Atomic<uint16_t, AddHalf<true>>::run},
    {"add", "f16x2", Atomic<uint32_t, Both<AddHalf<false>>>::run},
    {"add", "bf16x2", Atomic<uint32_t, Both<AddHalf<true>>>::run},
    {"min", "f16", Atomic<uint16_t, PickHalf<false, false>>::run},
    {"min", "bf16", Atomic<uint16_t, PickHalf<true, false>>::run},
    {"min", "f16x2", Atomic<uint32_t, Both<PickHalf<false, false>>>::run},
    {"min", "bf16x2", Atomic<uint32_t, Both<PickHalf<true, false>>>::run},
    {"max", "f16", Atomic<uint16_t, PickHalf<false, true>>::run},
    {"max", "bf16", Atomic<uint16_t, PickHalf<true, true>>::run},
    {"max", "f16x2", Atomic<uint32_t, Both<PickHalf<false, true>>>::run},
    {"max", "bf16x2", Atomic<uint32_t, Both<PickHalf<true, true>>>::run},
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
    {"exch", "b128", form<Wide, Exch>},
    {"cas", "b128", form<Wide, Cas>},
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

namespace {

using ptx::Instruction;
using ptx::Type;

constexpr const char *kOperations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};

MemorySpace atomic_space(const Instruction &in) {
    if (in.has("global")) return MemorySpace::global;
    if (in.has("shared") || in.has("shared::cta") || in.has("shared::cluster")) return MemorySpace::shared;
    return MemorySpace::generic;
}

uint32_t order_bits(const Instruction &in) {
    const bool both = in.has("acq_rel");
    uint32_t bits = kStrong;
    if (both || in.has("acquire")) bits |= kAcquire | kOwnOrder;
    if (both || in.has("release")) bits |= kRelease | kOwnOrder;
    if (in.has("relaxed")) bits |= kOwnOrder;
    if (in.has("cta") || in.has("cluster")) bits |= kTeamScope;
    if (in.has("sys")) bits |= kSystemScope;
    return bits;
}

struct Parts {
    Handler handler;
    Type type;
    Lowering::Address address;
    uint32_t extra;
};

Op &emit(Lowering &l, const Instruction &in, const Parts &parts, int64_t offset, uint32_t dst, uint32_t b, uint32_t c) {
    Op &op = l.emit(in, parts.handler, OpClass::atomic);
    if (l.program().communicates && MemorySpace(parts.extra >> kSpaceShift & 0xf) != MemorySpace::shared) {
        op.flow = Flow::ordered;
    } else if (dst != kNoSlot) {
        op.flow = Flow::yield;  // who looks at the old value may be waiting for somebody
    }
    op.a = parts.address.slot;
    op.imm = parts.address.offset + offset;
    op.b = b;
    op.c = c;
    op.dst = dst;
    op.extra = parts.extra;
    return op;
}

// atom.global.v4.f32.add {old}, [a], {b}: each element is an atomic of its own; only the address is aligned as a whole.
void lower_vector(Lowering &l, const Instruction &in, Parts parts, bool returns, size_t count) {
    const ptx::Operand *old = returns ? &in.operands[0] : nullptr, &values = in.operands[returns ? 2 : 1];
    const unsigned bytes = ptx::type_bytes(parts.type);
    const bool known = bytes * count <= 16;
    if (!known || atomic_space(in) == MemorySpace::shared || !ptx::is_float(parts.type) || parts.type == Type::f64)
        l.unsupported(in, "no such vector of atomics");
    if (values.kind != ptx::Operand::Kind::vector || values.elements.size() != count ||
        (old && (old->kind != ptx::Operand::Kind::vector || old->elements.size() != count))) {
        l.unsupported(in, "the vector has another number of elements");
    }
    std::vector<uint32_t> from, to;
    for (const ptx::Operand &value : values.elements) from.push_back(l.source(value, parts.type));
    for (size_t i = 0; i < count; ++i) to.push_back(returns ? l.scratch(parts.type) : kNoSlot);
    const unsigned element_alignment = unsigned(std::countr_zero(bytes)),
                   whole = unsigned(std::countr_zero(bytes * count));
    for (size_t i = 0; i < count; ++i) {
        Parts element = parts;
        element.extra |= (i ? element_alignment : whole) << kAlignmentShift;
        emit(l, in, element, int64_t(i) * bytes, to[i], from[i], kNoSlot);
        if (i) l.program().debug.back().counted = false;
    }
    for (size_t i = 0; returns && i < count; ++i) {
        const uint32_t slot = l.destination(old->elements[i], parts.type);
        Op &move = l.emit(in, move_handler(bytes), OpClass::atomic);
        move.dst = slot;
        move.a = to[i];
        l.program().debug.back().counted = false;
    }
}

void lower(Lowering &l, const Instruction &in, bool returns) {
    const char *operation = nullptr;
    for (const char *name : kOperations)
        if (in.has(name)) operation = name;
    const size_t first = returns ? 1 : 0;  // the address's place among the operands
    const bool cas = std::string_view(operation) == "cas";
    const std::string &name = in.modifiers.back();
    const Type type = ptx::type_from_name(name);
    const Handler handler = atomic_handler(operation, name);
    if (!handler) l.unsupported(in, "no such combination of operation and type");
    const bool half = ptx::is_float(type) && type != Type::f32 && type != Type::f64;
    if (half != in.has("noftz")) l.unsupported(in, half ? "it needs .noftz" : "only 16-bit floats have .noftz");
    if (in.has("L2::cache_hint") != (in.operands.size() == first + (cas ? 4 : 3)))
        l.unsupported(in, "a cache policy is what .L2::cache_hint takes");
    if (in.has("L2::cache_hint") && (atomic_space(in) == MemorySpace::shared || in.has("exch") || cas))
        l.unsupported(in, "no cache policy goes with this operation");
    const Lowering::Address address = l.address(in.operands[first]);
    const uint32_t extra =
        order_bits(in) | (address.slot_bytes == 4 ? kBase32 : 0) | uint32_t(atomic_space(in)) << kSpaceShift;
    const Parts parts{handler, type, address, extra};
    const size_t count = in.has("v2") ? 2 : in.has("v4") ? 4 : in.has("v8") ? 8 : 1;
    if (count > 1) return lower_vector(l, in, parts, returns, count);
    if (half && !in.has("add")) l.unsupported(in, "only vectors have it");
    const uint32_t b = l.source(in.operands[first + 1], type);
    const uint32_t c = cas ? l.source(in.operands[first + 2], type) : kNoSlot;
    const uint32_t dst = returns ? l.destination(in.operands[0], type) : kNoSlot;
    const bool generic = atomic_space(in) == MemorySpace::generic, remote = may_be_remote(l, in, generic);
    const uint32_t scratch = remote ? l.scratch(Type::b64) : kNoSlot;
    Op &op = emit(l, in, parts, 0, dst, b, c);
    op.extra |= uint32_t(std::countr_zero(ptx::type_bytes(type))) << kAlignmentShift;
    if (remote) make_remote(l, op, scratch, generic);
    if (atomic_space(in) == MemorySpace::shared && !remote) op.target = l.shared_variable(in.operands[first]);
}

void lower_atom(Lowering &l, const Instruction &in) {
    lower(l, in, true);
}
void lower_red(Lowering &l, const Instruction &in) {
    lower(l, in, false);
}

#define ATOMIC_ORDER "{.relaxed,.acquire,.release,.acq_rel}"
#define ATOMIC_TYPE ".{b16,b32,b64,b128,u32,u64,s32,s64,f16,f16x2,bf16,bf16x2,f32,f64}"

constexpr InstructionRow kRows[] = {
    {"atom" ATOMIC_ORDER SCOPE "{.global," SHARED
     "}.{add,min,max,and,or,xor,inc,dec,exch}{.noftz}{.L2::cache_hint}" VECTOR ATOMIC_TYPE,
     "d, [a], b{, c}", OpClass::atomic, Flow::yield, nullptr, lower_atom, passes_atomic},
    {"atom" ATOMIC_ORDER SCOPE "{.global," SHARED "}.cas{.L2::cache_hint}" ATOMIC_TYPE, "d, [a], b, c{, e}",
     OpClass::atomic, Flow::yield, nullptr, lower_atom, passes_atomic},
    {"red{.relaxed,.release}" SCOPE "{.global," SHARED
     "}.{add,min,max,and,or,xor,inc,dec}{.noftz}{.L2::cache_hint}" VECTOR ATOMIC_TYPE,
     "[a], b{, c}", OpClass::atomic, Flow::straight, nullptr, lower_red, passes_atomic},
};

}  // namespace

std::span<const InstructionRow> atomics_rows() {
    return kRows;
}

}  // namespace warpsim
