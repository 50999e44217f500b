// cp.async.bulk.tensor and its kin.
#include "exec/tensor_copy.h"

#include <algorithm>

#include "core/tensor_map.h"
#include "exec/bulk_cluster.h"
#include "lower/families.h"
#include "lower/lowering.h"

namespace warpsim {
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

}  // namespace warpsim
