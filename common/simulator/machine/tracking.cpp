#include "machine/tracking.h"

#include <algorithm>
#include <bit>

#include "definedness/linear.h"
#include "definedness/rules.h"

namespace warpsim {

namespace {

// Tracked instructions between two looks at whether all registers are defined again.
constexpr uint32_t kPatience = 256;

const DataFlow &flow_of(const Warp &w, const Op &op) {
    return w.block->program->flows[op.index];
}

// Something beside registers depends on whether the op is executed.
bool has_effect(const Op &op, const DataFlow &flow) {
    return !flow.writes || op.flow == Flow::warp_sync || op.cls == OpClass::atomic || op.cls == OpClass::barrier ||
           op.cls == OpClass::control;
}

void distrust(Warp &w, const Op &op, const DataFlow &flow) {
    const Operands operands(w, flow);
    LaneOrigins origins{};
    for (unsigned lane = 0; lane < kLanes; ++lane)
        origins[lane] = w.block->definedness->origin(Definedness::Source::variable, w, op, lane, 0);
    for (unsigned i = 0; i < flow.writes; ++i) {
        w.undefined->undefine(operands.writes[i], w.exec);
        set_origins(*w.undefined, operands.writes[i], w.exec, origins);
    }
}

// The rule of an op for the lanes of w.exec.
void pass_undefined(Warp &w, const Op &op) {
    const DataFlow &flow = flow_of(w, op);
    if (!flow.rule) return;
    const uint32_t lanes = undefined_reads(w, flow) & w.exec;
    if (lanes) {
        flow.rule(w, op, flow, lanes);
    } else {
        passes_nothing(w, op, flow, lanes);
        if (flow.gives_carry) w.undefined->carry &= ~w.exec;
    }
    if ((op.cls == OpClass::load_global || op.cls == OpClass::load_generic) && w.block->definedness->distrusts_memory())
        distrust(w, op, flow);
}

}  // namespace

RegisterShadow &begin_tracking(WarpContext &w) {
    Frame &frame = *w.frame;
    const uint32_t bytes = frame.function->frame_bytes;
    if (!frame.shadow || frame.shadow->bytes() != bytes) frame.shadow = std::make_unique<RegisterShadow>(bytes);
    frame.tracked = true;
    frame.tracked_ops = 0;
    return *(w.undefined = frame.shadow.get());
}

void prepare_shadow(WarpContext &w, Frame &frame) {
    if (frame.tracked) frame.shadow->clear();  // what an earlier block left
    frame.tracked = false;
    if (!w.block->definedness) return;
    if (frame.function->unwritten.empty() && !w.block->definedness->distrusts_memory()) return;
    Frame *const current = w.frame;
    RegisterShadow *const undefined = w.undefined;
    w.frame = &frame;
    RegisterShadow &shadow = begin_tracking(w);
    for (const OperandSlot &slot : frame.function->unwritten) {
        shadow.undefine(slot, kAllLanes);
        set_origins(shadow, slot, kAllLanes, LaneOrigins{});
    }
    w.frame = current;
    w.undefined = undefined;
}

void run_tracked(WarpContext &w, const Op &op, uint32_t mask) {
    const DataFlow &flow = flow_of(w, op);
    uint32_t lanes = mask, doubtful = 0;
    const OperandSlot guard{op.guard, 0};
    if (op.guard != kNoSlot) {
        lanes &= w.predicate(op.guard) ^ op.guard_xor;
        doubtful = w.undefined->undefined(guard) & mask;
        if (doubtful && has_effect(op, flow)) {
            operand_matters(w, op, guard, doubtful, Use::guard);
            doubtful = 0;
        }
        if (lanes) ++w.stats[op.index].issued;
    }
    LaneOrigins origins;
    if (doubtful) std::copy_n(w.undefined->origins(op.guard), kLanes, origins.begin());
    if (lanes) {
        w.exec = lanes;
        pass_undefined(w, op);
        op.fn(w, op);
        w.exec = mask;
    }
    if (doubtful) {  // whether the lane has the old value or the new one
        const Operands operands(w, flow);
        for (unsigned i = 0; i < flow.writes; ++i) {
            w.undefined->undefine(operands.writes[i], doubtful);
            set_origins(*w.undefined, operands.writes[i], doubtful, origins);
        }
    }
    ++w.frame->tracked_ops;
}

void check_tracked(WarpContext &w, const Op &op, uint32_t mask) {
    const DataFlow &flow = flow_of(w, op);
    if (op.guard != kNoSlot && (op.flow == Flow::branch || has_effect(op, flow)))
        operand_matters(w, op, {op.guard, 0}, mask, op.flow == Flow::branch ? Use::branch : Use::guard);
    if (op.guard != kNoSlot) mask &= w.predicate(op.guard) ^ op.guard_xor;
    if (op.flow == Flow::indirect || op.flow == Flow::call || op.flow == Flow::block_sync ||
        op.flow == Flow::mbarrier_wait) {
        const Operands operands(w, flow);
        for (unsigned i = 0; i < flow.reads; ++i)
            operand_matters(w, op, operands.reads[i], mask,
                            op.flow == Flow::indirect || op.flow == Flow::call ? Use::branch : Use::barrier);
        for (unsigned i = 0; i < flow.writes; ++i) w.undefined->define(operands.writes[i], mask);
    }
    if (w.frame->tracked_ops < kPatience) return;
    w.frame->tracked_ops = 0;
    if (!w.undefined->all_defined() || w.block->definedness->distrusts_memory()) return;
    w.frame->tracked = false;
    w.undefined = nullptr;
}

namespace {

constexpr unsigned kMostBytes = 32;  // that a lane moves at once

template <class F>
void for_each_lane(uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(std::countr_zero(lanes)));
}

// A piece of memory and what is undefined in it.
struct SharedBits {
    SharedShadow &shadow;
    static constexpr Definedness::Source kSource = Definedness::Source::shared;
    void get(size_t at, unsigned bytes, uint8_t *bits) const { shadow.undefined_bits(uint32_t(at), bytes, bits); }
    uint32_t origin(size_t at) const { return shadow.stored().origin(at); }
    void set(size_t at, unsigned bytes, const uint8_t *bits, uint32_t origin) {
        shadow.stored().set(at, bytes, bits, origin);
    }
    void define(size_t at, unsigned bytes) { shadow.stored().define(at, bytes); }
};
struct LocalBits {
    UndefinedBytes &bytes_;
    static constexpr Definedness::Source kSource = Definedness::Source::local;
    void get(size_t at, unsigned bytes, uint8_t *bits) const { bytes_.get(at, bytes, bits); }
    uint32_t origin(size_t at) const { return bytes_.origin(at); }
    void set(size_t at, unsigned bytes, const uint8_t *bits, uint32_t origin) { bytes_.set(at, bytes, bits, origin); }
    void define(size_t at, unsigned bytes) { bytes_.define(at, bytes); }
};

bool all_zero(const uint8_t *bits, unsigned bytes) {
    return std::all_of(bits, bits + bytes, [](uint8_t b) { return b == 0; });
}

// Of the first undefined one of these bytes: where the value that was stored there came from, else this read. `whole`:
// the bytes are one number, and so may be an unknown.
template <class Memory>
uint32_t origin_of(Warp &w, const Op &op, unsigned lane, const Memory &memory, size_t at, const uint8_t *bits,
                   unsigned bytes, bool whole) {
    const size_t first = at + size_t(std::find_if(bits, bits + bytes, [](uint8_t b) { return b; }) - bits);
    const uint32_t stored = memory.origin(first);
    whole = whole && std::all_of(bits, bits + bytes, [](uint8_t b) { return b == 0xff; }) &&
            memory.origin(at + bytes - 1) == stored;
    if (stored) return whole ? stored : origin_id(stored);
    const uint32_t id = w.block->definedness->origin(Memory::kSource, w, op, lane, first);
    return whole ? unknown(id, first) : id;
}

// Values that memory holds as registers do: as unknown there as here.
bool is_whole(const AccessShape &shape) {
    return shape.bytes == shape.register_bytes && (shape.bytes == 4 || shape.bytes == 8);
}

template <class Memory, class Place>
void note_load(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, uint32_t exec, Memory memory,
               Place place, uint32_t used = ~0u) {
    const unsigned bytes = shape.bytes * shape.count;
    for_each_lane(exec, [&](unsigned lane) {
        uint8_t bits[kMostBytes] = {};
        const size_t at = place(lane);
        memory.get(at, bytes, bits);
        for (unsigned i = 0; i < bytes; ++i) bits[i] &= used >> i & 1 ? 0xff : 0;
        if (all_zero(bits, bytes)) return;  // the op's rule has defined the registers
        if (!w.undefined) {
            begin_tracking(context_of(w));
            w.tracking_began = op.flow == Flow::straight || op.flow == Flow::guarded;
        }
        for (unsigned c = 0; c < shape.count; ++c) {
            const OperandSlot to{slots[c], shape.register_bytes};
            const uint8_t *own = bits + c * shape.bytes;
            const uint32_t origin = all_zero(own, shape.bytes) ? Definedness::kNoOrigin
                                                               : origin_of(w, op, lane, memory, at + c * shape.bytes,
                                                                           own, shape.bytes, is_whole(shape));
            uint64_t value = 0;
            std::memcpy(&value, bits + c * shape.bytes, shape.bytes);
            const unsigned width = 8 * shape.bytes;
            if (shape.sign && width < 64 && (value >> (width - 1) & 1)) value |= ~uint64_t{0} << width;
            RegisterShadow::put(w.undefined->bits(), to, lane, value);
            w.undefined->origins(to.slot)[lane] = origin;
        }
    });
}

template <class Memory, class Place>
void note_store(Warp &w, const uint32_t *slots, const AccessShape &shape, uint32_t exec, Memory memory, Place place) {
    for_each_lane(exec, [&](unsigned lane) {
        const size_t at = place(lane);
        memory.define(at, shape.bytes * shape.count);
        for (unsigned c = 0; c < shape.count && w.undefined; ++c) {
            const uint64_t value = RegisterShadow::get(w.undefined->bits(), {slots[c], shape.register_bytes}, lane) &
                                   lane_ones(shape.bytes);
            if (!value) continue;
            uint8_t bits[sizeof value];
            std::memcpy(bits, &value, sizeof bits);
            const uint32_t origin = w.undefined->origins(slots[c])[lane];
            memory.set(at + c * shape.bytes, shape.bytes, bits, is_whole(shape) ? origin : origin_id(origin));
        }
    });
}

// A register that nothing wrote is read where it is stored.
void name_variables(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, uint32_t exec) {
    for (unsigned c = 0; c < shape.count && w.undefined; ++c) {
        const uint32_t lanes = w.undefined->undefined({slots[c], shape.register_bytes}) & exec;
        uint32_t *const origins = w.undefined->origins(slots[c]);
        for_each_lane(lanes, [&](unsigned lane) {
            if (origins[lane] == Definedness::kNoOrigin)
                origins[lane] =
                    unknown(w.block->definedness->origin(Definedness::Source::variable, w, op, lane, 0), slots[c]);
        });
    }
}

}  // namespace

void leave_untracked(Warp &w) {
    w.tracking_began = false;
    throw TrackingBegan{};
}

void note_shared_load(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, const uint32_t *offset,
                      uint32_t exec, uint32_t used) {
    note_load(
        w, op, slots, shape, exec, SharedBits{*w.block->shadow}, [=](unsigned lane) { return offset[lane]; }, used);
}

void note_shared_store(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, const uint32_t *offset,
                       uint32_t exec) {
    name_variables(w, op, slots, shape, exec);
    note_store(w, slots, shape, exec, SharedBits{*w.block->shadow}, [=](unsigned lane) { return offset[lane]; });
}

void note_loaded_fragment(Warp &w, const Op &op, OperandSlot to, const void *bits, const uint32_t *from) {
    const OperandSlot gathered{0, to.bytes};
    for_each_lane(w.exec, [&](unsigned lane) {
        const uint64_t value = RegisterShadow::get(static_cast<const std::byte *>(bits), gathered, lane);
        if (!value) return;
        if (!w.undefined) begin_tracking(context_of(w));
        RegisterShadow::put(w.undefined->bits(), to, lane, value);
        const uint32_t stored = w.block->shadow->stored().origin(from[lane]);
        w.undefined->origins(to.slot)[lane] =
            stored ? origin_id(stored)
                   : w.block->definedness->origin(Definedness::Source::shared, w, op, lane, from[lane]);
    });
}

uint32_t first_origin(Warp &w, const Op &op) {
    const DataFlow &flow = w.block->program->flows[op.index];
    const uint32_t lanes = undefined_reads(w, flow) & w.exec;
    return lanes ? read_origins(w, op, flow, lanes)[size_t(std::countr_zero(lanes))] : Definedness::kNoOrigin;
}

void note_local_load(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, const uint64_t *host,
                     uint32_t exec) {
    const uint64_t base = reinterpret_cast<uint64_t>(w.local);
    note_load(w, op, slots, shape, exec, LocalBits{*w.undefined_local},
              [=](unsigned lane) { return host[lane] - base; });
}

void note_local_store(Warp &w, const Op &op, const uint32_t *slots, const AccessShape &shape, const uint64_t *host,
                      uint32_t exec) {
    const uint64_t base = reinterpret_cast<uint64_t>(w.local);
    name_variables(w, op, slots, shape, exec);
    note_store(w, slots, shape, exec, LocalBits{*w.undefined_local}, [=](unsigned lane) { return host[lane] - base; });
}

void note_shared_atomic(Warp &w, const Op &op, unsigned bytes, const uint32_t *offset, uint32_t exec, Exchange kind,
                        uint32_t stored) {
    SharedBits memory{*w.block->shadow};
    const auto operand = [&](uint32_t slot, unsigned lane, uint8_t *bits) {
        for (unsigned half = 0; half < (bytes + 7) / 8 && slot != kNoSlot && w.undefined; ++half) {
            const uint64_t value = RegisterShadow::get(w.undefined->bits(), {slot, bytes}, lane, half);
            std::memcpy(bits + 8 * half, &value, std::min(bytes, 8u));
        }
        return !all_zero(bits, bytes);
    };
    for_each_lane(exec, [&](unsigned lane) {
        uint8_t old[kMostBytes] = {}, b[kMostBytes] = {}, c[kMostBytes] = {};
        memory.get(offset[lane], bytes, old);
        const bool from_memory = !all_zero(old, bytes), from_b = operand(op.b, lane, b),
                   from_c = operand(op.c, lane, c);
        uint32_t origin = Definedness::kNoOrigin;
        if (from_memory)
            origin = origin_of(w, op, lane, memory, offset[lane], old, bytes, false);
        else if (from_b || from_c)
            origin = origin_id(w.undefined->origins(from_b ? op.b : op.c)[lane]);
        if (op.dst != kNoSlot && (w.undefined || from_memory)) {
            if (!w.undefined) begin_tracking(context_of(w));
            for (unsigned half = 0; half < (bytes + 7) / 8; ++half) {
                uint64_t value = 0;
                std::memcpy(&value, old + 8 * half, std::min(bytes, 8u));
                RegisterShadow::put(w.undefined->bits(), {op.dst, bytes}, lane, value, half);
            }
            w.undefined->origins(op.dst)[lane] = origin;
        }
        if (kind == Exchange::always) {
            for (unsigned i = 0; i < bytes; ++i) w.block->shadow->initialise(offset[lane] + i);
            memory.set(offset[lane], bytes, b, origin);
        } else if (from_memory || from_b || (from_c && (stored >> lane & 1))) {
            const bool all = kind == Exchange::never || from_memory || from_b;
            if (all) std::fill(c, c + bytes, uint8_t{0xff});
            memory.set(offset[lane], bytes, c, origin);
        }
    });
}

bool undefined_generic(Warp &w, unsigned lane, uint64_t address, size_t bytes, uint32_t &origin) {
    const uint64_t at = address & ~kWindowMask;
    uint8_t bits;
    for (size_t i = 0; i < bytes; ++i) {
        if ((address & kWindowMask) == kLocalWindow && w.undefined_local) {
            const size_t place = lane * w.local_bytes + at + i;
            w.undefined_local->get(place, 1, &bits);
            if (bits) return origin = w.undefined_local->origin(place), true;
        } else if ((address & kWindowMask) == kSharedWindow && w.block->shadow) {
            w.block->shadow->undefined_bits(uint32_t(at + i), 1, &bits);
            if (bits) return origin = w.block->shadow->stored().origin(at + i), true;
        }
    }
    return false;
}

namespace {

// Lanes of exec that reach global memory.
uint32_t global_lanes(const Warp &w, const Op &op, MemorySpace space) {
    if (space == MemorySpace::global) return w.exec;
    if (space != MemorySpace::generic) return 0;
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    return split_generic(address, w.exec).global;
}

MemorySpace space_of_class(OpClass cls) {
    return cls == OpClass::store_global    ? MemorySpace::global
           : cls == OpClass::store_generic ? MemorySpace::generic
                                           : MemorySpace::shared;
}

void address_matters(Warp &w, const Op &op, const DataFlow &flow) {
    const Operands operands(w, flow);
    const bool rows = op.cls == OpClass::ldmatrix || op.cls == OpClass::stmatrix;  // eight lanes' addresses a matrix
    const uint32_t lanes = rows && op.list_count < 4 ? w.exec & ((1u << 8 * op.list_count) - 1) : w.exec;
    for (unsigned i = 0; i < flow.reads; ++i)
        if (operands.reads[i].slot == op.a) return operand_matters(w, op, operands.reads[i], lanes, Use::address);
}

void values_matter(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes, Use use) {
    const Operands operands(w, flow);
    for (unsigned i = 0; i < flow.reads; ++i)
        if (operands.reads[i].slot != op.a) operand_matters(w, op, operands.reads[i], lanes, use);
}

}  // namespace

void passes_load(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    if (op.cls == OpClass::move) return passes_copies(w, op, flow, lanes);  // widens what came before
    address_matters(w, op, flow);
    passes_nothing(w, op, flow, lanes);
}

void passes_store(Warp &w, const Op &op, const DataFlow &flow, uint32_t) {
    address_matters(w, op, flow);
    values_matter(w, op, flow, global_lanes(w, op, space_of_class(op.cls)), Use::global_store);
}

void passes_atomic(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    if (flow.writes && op.flow == Flow::straight)
        return passes_copies(w, op, flow, lanes);  // an element of a vector's old values
    address_matters(w, op, flow);
    values_matter(w, op, flow, global_lanes(w, op, space_of(op)), Use::atomic);
    const Operands operands(w, flow);  // what comes from shared memory is noted there
    for (unsigned i = 0; i < flow.writes; ++i)
        w.undefined->define(operands.writes[i], global_lanes(w, op, space_of(op)));
}

void passes_call(Warp &w, const Op &op, const DataFlow &flow, uint32_t lanes) {
    if (op.cls == OpClass::control) values_matter(w, op, flow, lanes, Use::branch);
    passes_nothing(w, op, flow, lanes);
}

}  // namespace warpsim
