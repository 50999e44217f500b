#include "lower/atomics.h"

#include "exec/atomics.h"
#include "exec/memory.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Type;

constexpr const char *kOperations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};

MemorySpace atomic_space(Lowering &l, const Instruction &in) {
    if (in.has("global")) return MemorySpace::global;
    if (in.has("shared") || in.has("shared::cta")) return MemorySpace::shared;
    if (in.has("shared::cluster")) l.unsupported(in, "clusters are not known to warpsim");
    return MemorySpace::generic;
}

uint32_t order_bits(const Instruction &in) {
    const bool both = in.has("acq_rel");
    uint32_t bits = kStrong;
    if (both || in.has("acquire")) bits |= kAcquire | kOwnOrder;
    if (both || in.has("release")) bits |= kRelease | kOwnOrder;
    return bits;
}

void lower(Lowering &l, const Instruction &in, bool returns) {
    const char *operation = nullptr;
    for (const char *name : kOperations)
        if (in.has(name)) operation = name;
    const size_t first = returns ? 1 : 0;  // the address's place among the operands
    const bool cas = operation && std::string_view(operation) == "cas";
    if (!operation || in.modifiers.empty() || in.operands.size() < first + (cas ? 3 : 2)) l.unsupported(in);
    const Handler handler = atomic_handler(operation, in.modifiers.back());
    if (!handler) l.unsupported(in, "no such combination of operation and type");
    const Type type = ptx::type_from_name(in.modifiers.back());
    const Lowering::Address address = l.address(in.operands[first]);
    const uint32_t b = l.source(in.operands[first + 1], type);
    const uint32_t c = cas ? l.source(in.operands[first + 2], type) : kNoSlot;
    // A cas must know afterwards whether it stored, also where nobody wants the old value.
    const uint32_t dst = returns ? l.destination(in.operands[0], type) : cas ? l.scratch(type) : kNoSlot;
    Op &op = l.emit(in, handler, OpClass::atomic);
    op.flow = Flow::yield;
    op.a = address.slot;
    op.imm = address.offset;
    op.b = b;
    op.c = c;
    op.dst = dst;
    op.extra = order_bits(in) | (address.slot_bytes == 4 ? kBase32 : 0) | uint32_t(atomic_space(l, in)) << kSpaceShift;
}

}  // namespace

void lower_atom(Lowering &l, const Instruction &in) { lower(l, in, true); }
void lower_red(Lowering &l, const Instruction &in) { lower(l, in, false); }

}  // namespace warpsim
