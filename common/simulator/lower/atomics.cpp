#include <bit>
#include <string_view>

#include "exec/atomics.h"
#include "exec/convert_move.h"
#include "exec/memory.h"
#include "lower/families.h"

namespace warpsim {
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
    }
    for (size_t i = 0; returns && i < count; ++i) {
        const uint32_t slot = l.destination(old->elements[i], parts.type);
        Op &move = l.emit(in, move_handler(bytes), OpClass::atomic);
        move.dst = slot;
        move.a = to[i];
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
}

}  // namespace

void lower_atom(Lowering &l, const Instruction &in) {
    lower(l, in, true);
}
void lower_red(Lowering &l, const Instruction &in) {
    lower(l, in, false);
}

}  // namespace warpsim
