// ld, ldu, st, prefetch and the like. atom and red: lower/atomics.cpp.
#include "exec/memory.h"

#include <algorithm>

#include "lower/atomics.h"
#include "lower/lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

struct SpaceName {
    const char *modifier;
    MemorySpace space;
};
constexpr SpaceName kSpaces[] = {
    {"global", MemorySpace::global},      {"shared", MemorySpace::shared},
    {"shared::cta", MemorySpace::shared}, {"local", MemorySpace::local},
    {"const", MemorySpace::constant},     {"param", MemorySpace::param},
    {"param::entry", MemorySpace::param}, {"param::func", MemorySpace::param},
};

MemorySpace named_space(Lowering &l, const Instruction &in) {
    for (const SpaceName &name : kSpaces)
        if (in.has(name.modifier)) return name.space;
    if (in.has("shared::cluster")) l.unsupported(in, "clusters are not known to warpsim");
    return MemorySpace::generic;
}

uint32_t order_bits(const Instruction &in) {
    uint32_t bits = 0;
    for (const char *strong : {"volatile", "relaxed", "acquire", "release", "mmio"})
        if (in.has(strong)) bits |= kStrong;
    if (in.has("acquire")) bits |= kAcquire;
    if (in.has("release")) bits |= kRelease;
    return bits;
}

OpClass load_class(MemorySpace space) {
    switch (space) {
        case MemorySpace::global:
            return OpClass::load_global;
        case MemorySpace::shared:
            return OpClass::load_shared;
        case MemorySpace::local:
            return OpClass::load_local;
        case MemorySpace::constant:
            return OpClass::load_constant;
        case MemorySpace::param:
            return OpClass::load_param;
        default:
            return OpClass::load_generic;
    }
}

OpClass store_class(MemorySpace space) {
    switch (space) {
        case MemorySpace::global:
            return OpClass::store_global;
        case MemorySpace::shared:
            return OpClass::store_shared;
        case MemorySpace::local:
            return OpClass::store_local;
        case MemorySpace::param:
            return OpClass::store_param;
        default:
            return OpClass::store_generic;
    }
}

Type element_type(Lowering &l, const Instruction &in) {
    const Type type = in.modifiers.empty() ? Type::none : ptx::type_from_name(in.modifiers.back());
    const unsigned bytes = ptx::type_bytes(type);
    if (bytes == 0 || bytes > 8) l.unsupported(in, "elements of 1, 2, 4 or 8 bytes are known");
    return type;
}

Type bits_type(unsigned bytes) {
    return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : bytes == 2 ? Type::b16 : Type::b8;
}

std::vector<Operand> elements_of(const Operand &operand) {
    return operand.kind == Operand::Kind::vector ? operand.elements : std::vector<Operand>{operand};
}

// Where .param leads: the kernel's own parameters, or a place in the frame's local memory.
MemorySpace resolve_param_space(MemorySpace space, const Lowering::Address &address) {
    return space == MemorySpace::param && !address.kernel_parameter ? MemorySpace::local : space;
}

void set_address(Op &op, const Lowering::Address &address, uint32_t bits) {
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = bits | (address.slot_bytes == 4 ? kBase32 : 0);
}

void lower_load(Lowering &l, const Instruction &in) {
    if (in.operands.size() < 2) l.unsupported(in);
    const Type type = element_type(l, in);
    const std::vector<Operand> to = elements_of(in.operands[0]);
    const Lowering::Address address = l.address(in.operands[1]);
    const MemorySpace named = named_space(l, in), space = resolve_param_space(named, address);

    AccessShape shape{ptx::type_bytes(type), 0, static_cast<unsigned>(to.size()), ptx::is_signed(type)};
    bool mixed = false;  // registers of different widths
    for (const Operand &operand : to) {
        const unsigned bytes = operand.kind == Operand::Kind::sink ? 0 : l.register_bytes(operand);
        if (bytes && bytes < shape.bytes) l.unsupported(in, "the register is narrower than the element");
        mixed |= bytes && shape.register_bytes && bytes != shape.register_bytes;
        if (bytes) shape.register_bytes = bytes;
    }
    if (mixed || !shape.register_bytes) shape.register_bytes = shape.bytes;

    std::vector<uint32_t> slots;
    for (const Operand &operand : to) {
        slots.push_back(mixed ? l.scratch(bits_type(shape.bytes)) : l.destination(operand, bits_type(shape.register_bytes)));
    }
    const bool known = space == MemorySpace::param && address.slot == kNoSlot && address.offset >= 0 &&
                       address.offset + shape.bytes * shape.count <= l.program().parameter_bytes &&
                       address.offset % shape.bytes == 0;
    const Handler handler = known ? load_known_param_handler(shape) : load_handler(space, shape);
    if (!handler) l.unsupported(in, "no such combination of width and vector");
    const uint32_t list = slots.size() > 1 ? l.list(slots) : 0;
    Op &op = l.emit(in, handler, load_class(named));
    set_address(op, address, order_bits(in));
    if (op.extra & kStrong) op.flow = Flow::yield;
    op.dst = slots[0];
    op.list = list;
    op.list_count = slots.size() > 1 ? static_cast<uint16_t>(slots.size()) : 0;

    for (size_t i = 0; mixed && i < to.size(); ++i) {
        if (to[i].kind == Operand::Kind::sink) continue;
        const unsigned bytes = l.register_bytes(to[i]);
        const uint32_t slot = l.destination(to[i], bits_type(bytes));
        Op &widen = l.emit(in, widen_handler({shape.bytes, bytes, 1, shape.sign}), OpClass::move);
        widen.dst = slot;
        widen.a = slots[i];
    }
}

void lower_store(Lowering &l, const Instruction &in) {
    if (in.operands.size() < 2) l.unsupported(in);
    const Type type = element_type(l, in);
    const std::vector<Operand> from = elements_of(in.operands[1]);
    const Lowering::Address address = l.address(in.operands[0]);
    const MemorySpace named = named_space(l, in), space = resolve_param_space(named, address);
    const AccessShape shape{ptx::type_bytes(type), std::max(2u, ptx::type_bytes(type)), unsigned(from.size()), false};

    // source() brings every element to the memory's width; bytes lie in 16-bit lanes.
    std::vector<uint32_t> slots;
    for (const Operand &operand : from) slots.push_back(l.source(operand, bits_type(shape.register_bytes)));
    const Handler handler = store_handler(space, shape);
    if (!handler) l.unsupported(in, "no such combination of state space, width and vector");
    const uint32_t list = slots.size() > 1 ? l.list(slots) : 0;
    Op &op = l.emit(in, handler, store_class(named));
    set_address(op, address, order_bits(in));
    op.b = slots[0];
    op.list = list;
    op.list_count = slots.size() > 1 ? static_cast<uint16_t>(slots.size()) : 0;
}

void exec_nothing(Warp &, const Op &) {}

// prefetch and prefetchu are hints, and may name any address.
void lower_prefetch(Lowering &l, const Instruction &in) { l.emit(in, exec_nothing, OpClass::other); }

// discard.global.L2 [a], 128 and applypriority: hints as well, but of memory that must be there.
void lower_hint(Lowering &l, const Instruction &in) {
    if (in.operands.size() != 2 || in.operands[1].kind != Operand::Kind::integer) l.unsupported(in);
    const Lowering::Address address = l.address(in.operands[0]);
    Op &op = l.emit(in, exec_check_address, OpClass::other);
    set_address(op, address, 0);
    op.b = static_cast<uint32_t>(in.operands[1].integer);
}

}  // namespace

void register_memory(FamilyTable &table) {
    table["ld"] = lower_load;
    table["ldu"] = lower_load;
    table["st"] = lower_store;
    table["prefetch"] = lower_prefetch;
    table["prefetchu"] = lower_prefetch;
    table["discard"] = lower_hint;
    table["applypriority"] = lower_hint;
    table["atom"] = lower_atom;
    table["red"] = lower_red;
}

}  // namespace warpsim
