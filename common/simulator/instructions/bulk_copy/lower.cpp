// cp.async.bulk, cp.reduce.async.bulk and cp.async.bulk.tensor.
#include <algorithm>

#include "core/op_formats.h"
#include "core/tensor_map.h"
#include "instructions/bulk_copy/bulk_copy.h"
#include "instructions/rows.h"
#include "lower/lowering.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

uint32_t base_bits(const Lowering::Address &address) {
    return address.slot != kNoSlot && address.slot_bytes == 4 ? kBase32 : 0;
}

}  // namespace

BulkOperation bulk_operation(const Instruction &in) {
    static constexpr std::pair<const char *, BulkOperation> kOperations[] = {
        {"add", BulkOperation::add}, {"min", BulkOperation::min},  {"max", BulkOperation::max},
        {"inc", BulkOperation::inc}, {"dec", BulkOperation::dec},  {"and", BulkOperation::and_},
        {"or", BulkOperation::or_},  {"xor", BulkOperation::xor_},
    };
    for (const auto &[name, operation] : kOperations)
        if (in.has(name)) return operation;
    return BulkOperation::none;
}

namespace {

// Which operations there are on which types.
void check_operation(Lowering &l, const Instruction &in, BulkOperation operation, Type type) {
    const auto one_of = [&](std::initializer_list<Type> types) {
        return std::find(types.begin(), types.end(), type) != types.end();
    };
    bool good = false;
    switch (operation) {
        case BulkOperation::add:
            good = one_of({Type::u32, Type::s32, Type::u64, Type::f32, Type::f64, Type::f16, Type::bf16});
            break;
        case BulkOperation::min:
        case BulkOperation::max:
            good = one_of({Type::u32, Type::s32, Type::u64, Type::s64, Type::f16, Type::bf16});
            break;
        case BulkOperation::inc:
        case BulkOperation::dec:
            good = one_of({Type::u32});
            break;
        default:
            good = one_of({Type::b32, Type::b64});
    }
    if (!good) l.unsupported(in, "the operation is not one of that type");
    const bool needs = operation == BulkOperation::add && (type == Type::f16 || type == Type::bf16);
    if (needs != in.has("noftz"))
        l.unsupported(in, needs ? "it needs .noftz" : "only .add of 16-bit floats has .noftz");
}

}  // namespace

// cp.async.bulk.shared.global [to], [from], size, [mbarrier]{, policy}; .global.shared [to], [from], size{, policy};
// .prefetch.L2.global [from], size{, policy}
void lower_bulk_copy(Lowering &l, const Instruction &in) {
    BulkForm form;
    const bool reduces = in.opcode == "cp" && in.has("reduce");
    const bool loads = in.has("mbarrier::complete_tx::bytes"), prefetches = in.has("prefetch");
    form.kind = reduces ? BulkKind::reduce : loads ? BulkKind::load : prefetches ? BulkKind::prefetch : BulkKind::store;
    const size_t sizes_at = prefetches ? 1 : 2, least = loads ? 4 : sizes_at + 1;
    const bool policy = in.has("L2::cache_hint"), multicast = in.has("multicast::cluster");
    if (in.operands.size() != least + multicast + policy)
        l.unsupported(in, "a cache policy is what .L2::cache_hint takes");
    if (policy) l.source(in.operands.back(), Type::b64);
    const Operand &bytes = in.operands[sizes_at];
    if (bytes.kind == Operand::Kind::integer && bytes.integer % 16) l.unsupported(in, "the size is a multiple of 16");
    if (reduces) {
        form.operation = bulk_operation(in);
        form.type = ptx::type_from_name(in.modifiers.back());
        check_operation(l, in, form.operation, form.type);
    }
    const size_t global_at = loads ? 1 : 0, shared_at = loads ? 0 : 1;
    const Lowering::Address global = l.address(in.operands[global_at]);
    Lowering::Address shared{kNoSlot, 4, 0, {}, false}, mbarrier{kNoSlot, 4, 0, {}, false};
    if (!prefetches) shared = l.address(in.operands[shared_at]);
    if (loads) mbarrier = l.address(in.operands[3]);
    form.shared_base32 = shared.slot != kNoSlot && shared.slot_bytes == 4;
    form.global_base32 = global.slot != kNoSlot && global.slot_bytes == 4;
    form.mbarrier_base32 = mbarrier.slot != kNoSlot && mbarrier.slot_bytes == 4;
    const uint32_t size = l.source(bytes, Type::b32);
    const uint64_t offset = uint64_t(global.offset);
    std::vector<uint32_t> slots{global.slot, uint32_t(offset), uint32_t(offset >> 32), mbarrier.slot,
                                uint32_t(mbarrier.offset)};
    if (multicast) slots.push_back(l.source(in.operands[4], Type::b16));
    const uint32_t list = l.list(slots);
    const bool remote = loads && !multicast && may_be_remote(l, in, false);
    uint32_t there = 0, to = kNoSlot;
    if (remote) {
        to = l.scratch(Type::b32);
        slots[kBulkMbarrier] = l.scratch(Type::b32);
        slots[kBulkMbarrierOffset] = 0;
        there = l.list(slots);
    }
    Op &op = l.emit_row(in, remote ? exec_bulk_load_remote : nullptr);
    op.a = shared.slot;
    op.imm = shared.offset;
    op.b = size;
    op.list = list;
    op.list_count = kBulkListLength;
    op.extra = pack<uint32_t>(form);
    if (!remote) return;
    form.shared_base32 = form.mbarrier_base32 = true;
    add_remote_op(l, op, exec_bulk_load, to, there, pack<uint32_t>(form));
}

void lower_bulk_wait(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    op.imm = in.operands[0].integer;
    op.b = in.has("read");
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

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

// [map, {c0, c1, ...}] into the list.
void lower_map(Lowering &l, const Instruction &in, const Operand &operand, TensorForm &form,
               std::vector<uint32_t> &list) {
    const bool vector = operand.elements.size() == 2 && operand.elements[1].kind == Operand::Kind::vector;
    const size_t count = vector ? operand.elements[1].elements.size() : 0;
    if (count != form.dimensions)
        l.unsupported(in, "its tensor is [map, {coordinates}] with as many coordinates as it has dimensions");
    for (unsigned d = 0; d < count; ++d)
        list[kTensorCoordinates + d] = l.source(operand.elements[1].elements[d], Type::b32);
    const Lowering::Address map = l.address(operand);
    form.map_base32 = map.slot != kNoSlot && map.slot_bytes == 4;
    const bool symbol = operand.elements[0].kind == Operand::Kind::symbol;
    if (symbol && map.space_of_symbol != ptx::Space::global)
        l.unsupported(in, "a tensor map has a generic address: of a variable that is not .global, cvta makes it");
    const uint64_t offset = uint64_t(map.offset);
    list[kTensorMap] = map.slot;
    list[kTensorMapLow] = uint32_t(offset);
    list[kTensorMapHigh] = uint32_t(offset >> 32);
}

}  // namespace

// cp.async.bulk.tensor.Nd.shared.global [to], [map, {...}], [mbarrier]{, policy}; .global.shared [map, {...}], [from]
// {, policy}; cp.async.bulk.prefetch.tensor.Nd [map, {...}]{, policy}
void lower_tensor_copy(Lowering &l, const Instruction &in) {
    TensorForm form;
    const bool loads = in.has("mbarrier::complete_tx::bytes"), prefetches = in.has("prefetch");
    form.kind = loads ? BulkKind::load : prefetches ? BulkKind::prefetch : BulkKind::store;
    for (unsigned d = 1; d <= kMostDimensions; ++d)
        if (in.has(std::to_string(d) + "d")) form.dimensions = uint8_t(d);
    if (in.has("reduce")) {
        form.kind = BulkKind::reduce;
        form.operation = bulk_operation(in);
    }
    const size_t needed = loads ? 3 : prefetches ? 1 : 2;
    const bool policy = in.has("L2::cache_hint"), multicast = in.has("multicast::cluster");
    if (in.operands.size() != needed + multicast + policy)
        l.unsupported(in, "a cache policy is what .L2::cache_hint takes");
    if (policy) l.source(in.operands.back(), Type::b64);
    std::vector<uint32_t> list(kTensorListLength, kNoSlot);
    Lowering::Address shared{kNoSlot, 4, 0, {}, false}, mbarrier = shared;
    if (!prefetches) shared = l.address(in.operands[loads ? 0 : 1]);
    lower_map(l, in, in.operands[loads ? 1 : 0], form, list);
    if (loads) mbarrier = l.address(in.operands[2]);
    form.shared_base32 = shared.slot != kNoSlot && shared.slot_bytes == 4;
    form.mbarrier_base32 = mbarrier.slot != kNoSlot && mbarrier.slot_bytes == 4;
    list[kTensorMbarrier] = mbarrier.slot;
    list[kTensorMbarrierOffset] = uint32_t(mbarrier.offset);
    if (multicast) list.push_back(l.source(in.operands[3], Type::b16));
    const uint32_t first = l.list(list);
    const bool remote = loads && !multicast && may_be_remote(l, in, false);
    const uint32_t to = remote ? l.scratch(Type::b32) : kNoSlot, at = remote ? l.scratch(Type::b32) : kNoSlot;
    Op &op = l.emit_row(in, remote ? exec_tensor_load_remote : nullptr);
    op.a = shared.slot;
    op.imm = shared.offset;
    op.list = first;
    op.list_count = kTensorListLength;
    op.extra = pack<uint32_t>(form);
    if (!remote) return;
    form.shared_base32 = form.mbarrier_base32 = true;
    list[kTensorMbarrier] = at;
    list[kTensorMbarrierOffset] = 0;
    add_remote_op(l, op, exec_tensor_load, to, l.list(list), pack<uint32_t>(form));
}

void lower_tensor_refused(Lowering &l, const Instruction &in) {
    const auto begins = [&](const char *start) {
        return std::any_of(in.modifiers.begin(), in.modifiers.end(),
                           [&](const std::string &modifier) { return modifier.starts_with(start); });
    };
    if (begins("im2col")) l.unsupported(in, "im2col maps are not simulated: only tiled ones are");
    l.unsupported(in, "rows gathered from several places are not simulated: only boxes are");
}

namespace {

#define BULK_TYPE ".{b32,b64,u32,u64,s32,s64,f32,f64}"
#define DIMENSIONS ".{1d,2d,3d,4d,5d}"
#define TENSOR_COPY(SYNTAX, OPERANDS, FLOW, HANDLER) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, FLOW, HANDLER, lower_tensor_copy}
#define REFUSED(SYNTAX, OPERANDS) \
    {SYNTAX, OPERANDS, OpClass::tensor_copy, Flow::straight, nullptr, lower_tensor_refused}

constexpr InstructionRow kRows[] = {
    {"cp.async.bulk!.{shared::cta,shared::cluster}.global.mbarrier::complete_tx::bytes{.L2::cache_hint}",
     "[a], [b], c, [e]{, f}", OpClass::bulk_copy, Flow::straight, exec_bulk_load, lower_bulk_copy},
    {"cp.async.bulk!.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}",
     "[a], [b], c, [e], f{, g}", OpClass::bulk_copy, Flow::straight, exec_bulk_multicast, lower_bulk_copy},
    {"cp.async.bulk!.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "[a], [b], c, [e]", OpClass::bulk_copy,
     Flow::straight, exec_bulk_to_peer, lower_bulk_to_peer},
    {"cp.async.bulk!.global.shared::cta.bulk_group{.L2::cache_hint}", "[a], [b], c{, e}", OpClass::bulk_copy,
     Flow::straight, exec_bulk_store, lower_bulk_copy},
    {"cp.async.bulk.prefetch!.L2.global{.L2::cache_hint}", "[a], b{, c}", OpClass::bulk_copy, Flow::straight,
     exec_bulk_prefetch, lower_bulk_copy},
    {"cp.async.bulk.commit_group!", "", OpClass::bulk_copy, Flow::straight, exec_bulk_commit, lower_plain},
    {"cp.async.bulk.wait_group!{.read}", "i", OpClass::bulk_copy, Flow::straight, exec_bulk_wait, lower_bulk_wait},
    {"cp.reduce.async.bulk!.global.shared::cta.bulk_group{.L2::cache_hint}.{add,min,max,inc,dec,and,or,xor}{.noftz}"
     ".{b32,b64,u32,u64,s32,s64,f16,bf16,f32,f64}",
     "[a], [b], c{, e}", OpClass::bulk_copy, Flow::ordered, exec_bulk_reduce, lower_bulk_copy},
    {"cp.reduce.async.bulk!.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,min,max,inc,dec,and,or,"
     "xor}" BULK_TYPE,
     "[a], [b], c, [e]", OpClass::bulk_copy, Flow::straight, exec_bulk_to_peer, lower_bulk_to_peer},
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS
                "!.{shared::cta,shared::cluster}.global{.tile}.mbarrier::complete_tx::bytes{.L2::cache_hint}",
                "[a], [b], [c]{, e}", Flow::straight, exec_tensor_load),
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS "!.global.shared::cta{.tile}.bulk_group{.L2::cache_hint}",
                "[a], [b]{, c}", Flow::straight, exec_tensor_store),
    TENSOR_COPY("cp.async.bulk.prefetch.tensor" DIMENSIONS "!.L2.global{.tile}{.L2::cache_hint}", "[a]{, b}",
                Flow::straight, exec_tensor_prefetch),
    TENSOR_COPY("cp.reduce.async.bulk.tensor" DIMENSIONS
                "!.global.shared::cta.{add,min,max,inc,dec,and,or,xor}{.tile}.bulk_group{.L2::cache_hint}",
                "[a], [b]{, c}", Flow::ordered, exec_tensor_reduce),
    TENSOR_COPY("cp.async.bulk.tensor" DIMENSIONS
                "!.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}",
                "[a], [b], [c], e{, f}", Flow::straight, exec_tensor_multicast),
    REFUSED("cp.async.bulk.tensor.{3d,4d,5d}!.{shared::cta,shared::cluster}.global.{im2col,im2col::w,im2col::w::128}"
            ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
            "[a], [b], [c], e{, f}{, g}"),
    REFUSED("cp.async.bulk.tensor.{3d,4d,5d}!.global.shared::cta.im2col_no_offs.bulk_group{.L2::cache_hint}",
            "[a], [b]{, c}"),
    REFUSED("cp.reduce.async.bulk.tensor.{3d,4d,5d}!.global.shared::cta.{add,min,max,inc,dec,and,or,xor}"
            ".im2col_no_offs.bulk_group{.L2::cache_hint}",
            "[a], [b]{, c}"),
    REFUSED("cp.async.bulk.prefetch.tensor.{3d,4d,5d}!.L2.global.{im2col,im2col::w,im2col::w::128}{.L2::cache_hint}",
            "[a], b{, c}"),
    REFUSED("cp.async.bulk.tensor.2d!.{shared::cta,shared::cluster}.global.tile::gather4"
            ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
            "[a], [b], [c]{, e}{, f}"),
    REFUSED("cp.async.bulk.tensor.2d!.global.shared::cta.tile::scatter4.bulk_group{.L2::cache_hint}", "[a], [b]{, c}"),
    REFUSED("cp.async.bulk.prefetch.tensor.2d!.L2.global.tile::gather4{.L2::cache_hint}", "[a]{, b}"),
};

}  // namespace

std::span<const InstructionRow> bulk_copy_rows() {
    return kRows;
}

}  // namespace warpsim
