// mapa, getctarank, barrier.cluster, st.async, red.async, and what other instructions need to reach peers' memory.
#include "exec/cluster.h"

#include <algorithm>
#include <string_view>

#include "exec/async_store.h"
#include "exec/bulk_copy.h"
#include "exec/sync_ops.h"
#include "lower/families.h"
#include "lower/lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

uint32_t base_bits(const Lowering::Address &address) {
    return address.slot != kNoSlot && address.slot_bytes == 4 ? kBase32 : 0;
}

// The address that mapa and getctarank take: no [brackets]. In .shared::cluster an offset, else a generic address.
Lowering::Address plain_address(Lowering &l, const Instruction &in, const Operand &operand, Type type) {
    if (operand.kind == Operand::Kind::symbol) {
        Lowering::Address address = l.address(operand);
        if (address.space_of_symbol != ptx::Space::shared) l.unsupported(in, "a variable that is not in shared memory");
        if (!in.has("shared::cluster")) address.offset += int64_t(kSharedWindow);
        return address;
    }
    const unsigned bytes = ptx::type_bytes(type);
    return {l.source(operand, type), bytes, 0, ptx::Space::generic, false};
}

}  // namespace

bool may_be_remote(Lowering &l, const Instruction &in, bool generic) {
    return l.program().maps_addresses && (generic || in.has("shared::cluster"));
}

void make_remote(Lowering &l, Op &op, uint32_t scratch, bool generic) {
    if (op.flow == Flow::straight) op.flow = Flow::yield;
    Op there = op;
    there.a = scratch;
    there.imm = 0;
    there.extra = (op.extra & ~kBase32) | (generic ? 0 : kBase32);
    op.target = uint32_t(l.program().remote_ops.size());
    l.program().remote_ops.push_back(there);
    op.fn = exec_remote;
    if (generic) op.extra |= kRemoteGeneric;
}

void add_remote_op(Lowering &l, Op &op, Handler handler, uint32_t to, uint32_t list, uint32_t extra) {
    Op there = op;
    there.fn = handler;
    there.a = to;
    there.imm = 0;
    there.list = list;
    there.extra = extra;
    op.target = uint32_t(l.program().remote_ops.size());
    l.program().remote_ops.push_back(there);
}

// mapa{.shared::cluster}.type d, a, rank
void lower_mapa(Lowering &l, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers.back());
    const bool generic = !in.has("shared::cluster");
    if (generic && type == Type::u32) l.unsupported(in, "a generic address is 64 bits wide");
    const Lowering::Address address = plain_address(l, in, in.operands[1], type);
    const uint32_t rank = l.source(in.operands[2], Type::u32), dst = l.destination(in.operands[0], type);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = address.slot;
    op.imm = address.offset;
    op.b = rank;
    op.c = ptx::type_bytes(type);
    op.extra = base_bits(address) | (generic ? kRemoteGeneric : 0);
}

// getctarank{.shared::cluster}.type d, a: the type is the address's
void lower_getctarank(Lowering &l, const Instruction &in) {
    const Type type = ptx::type_from_name(in.modifiers.back());
    const bool generic = !in.has("shared::cluster");
    if (generic && type == Type::u32) l.unsupported(in, "a generic address is 64 bits wide");
    const Lowering::Address address = plain_address(l, in, in.operands[1], type);
    const uint32_t dst = l.destination(in.operands[0], Type::u32);
    Op &op = l.emit_row(in);
    op.dst = dst;
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = base_bits(address) | (generic ? kRemoteGeneric : 0);
}

void lower_cluster_barrier(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    op.extra = (in.has("aligned") ? kClusterAligned : 0) | (in.has("relaxed") ? kClusterRelaxed : 0);
}

// fence and membar: the scope says who sees of them.
void lower_fence(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    if (in.has("cluster")) op.fn = exec_cluster_fence;
    if (in.has("gpu") || in.has("gl") || in.has("sys")) op.fn = exec_device_fence;
    if (in.has("sys")) op.extra = kSystemScope;
}

// st.async{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]; red.async.op.type [a], b, [mbar]
void lower_async_store(Lowering &l, const Instruction &in) {
    const bool reduces = in.opcode == "red";
    const Type type = ptx::type_from_name(in.modifiers.back());
    AsyncStoreForm form;
    form.generic = !in.has("shared") && !in.has("shared::cta") && !in.has("shared::cluster");
    form.bytes = uint8_t(ptx::type_bytes(type));
    const Operand &value = in.operands[1];
    const size_t count = in.has("v2") ? 2 : in.has("v4") ? 4 : 1;
    const std::vector<Operand> values =
        value.kind == Operand::Kind::vector ? value.elements : std::vector<Operand>{value};
    if (values.size() != count || (count == 1) != (value.kind != Operand::Kind::vector))
        l.unsupported(in, "the vector has another number of elements");
    form.count = uint8_t(count);
    if (form.bytes * count > 16) l.unsupported(in, "a lane moves at most 16 bytes");
    if (reduces) {
        form.operation = bulk_operation(in);
        form.type = type;
        if (!reduces_shared(form.operation, type) && type != Type::s64)
            l.unsupported(in, "the operation is not one of that type");
        if (type == Type::s64 && form.operation != BulkOperation::add)
            l.unsupported(in, "the operation is not one of that type");
    }
    const Lowering::Address to = l.address(in.operands[0]), mbarrier = l.address(in.operands[2]);
    form.base32 = base_bits(to) != 0;
    form.mbarrier_base32 = base_bits(mbarrier) != 0;
    std::vector<uint32_t> slots{mbarrier.slot, uint32_t(mbarrier.offset), uint32_t(uint64_t(mbarrier.offset) >> 32)};
    for (const Operand &one : values) {
        const unsigned width = l.register_bytes(one);
        if (width && width != form.bytes) l.unsupported(in, "a register must be as wide as the type");
        slots.push_back(l.source(one, type));
    }
    const uint32_t list = l.list(slots);
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.list = list;
    op.list_count = uint16_t(slots.size());
    op.extra = pack<uint32_t>(form);
}

// cp{.reduce}.async.bulk.shared::cluster.shared::cta [to], [from], size, [mbarrier]
void lower_bulk_to_peer(Lowering &l, const Instruction &in) {
    BulkForm form;
    form.kind = BulkKind::peer;
    if (in.has("reduce")) {
        form.operation = bulk_operation(in);
        form.type = ptx::type_from_name(in.modifiers.back());
        if (!reduces_shared(form.operation, form.type)) l.unsupported(in, "the operation is not one of that type");
    }
    const Operand &bytes = in.operands[2];
    if (bytes.kind == Operand::Kind::integer && bytes.integer % 16) l.unsupported(in, "the size is a multiple of 16");
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]),
                            mbarrier = l.address(in.operands[3]);
    form.shared_base32 = base_bits(to);
    form.global_base32 = base_bits(from);
    form.mbarrier_base32 = base_bits(mbarrier);
    const uint32_t size = l.source(bytes, Type::b32);
    const uint64_t offset = uint64_t(from.offset);
    const uint32_t list =
        l.list({from.slot, uint32_t(offset), uint32_t(offset >> 32), mbarrier.slot, uint32_t(mbarrier.offset)});
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.b = size;
    op.list = list;
    op.list_count = kBulkListLength;
    op.extra = pack<uint32_t>(form);
}

bool reduces_shared(BulkOperation operation, Type type) {
    switch (operation) {
        case BulkOperation::add:
            return type == Type::u32 || type == Type::s32 || type == Type::u64;
        case BulkOperation::min:
        case BulkOperation::max:
            return type == Type::u32 || type == Type::s32;
        case BulkOperation::inc:
        case BulkOperation::dec:
            return type == Type::u32;
        default:
            return type == Type::b32;
    }
}

}  // namespace warpsim
