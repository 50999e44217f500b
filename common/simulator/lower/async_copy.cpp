// cp.async (the kind without .bulk) and its groups.
#include "exec/async_copy.h"

#include "exec/memory.h"
#include "lower/families.h"
#include "lower/lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

}  // namespace

void lower_cp_async(Lowering &l, const Instruction &in) {
    // cp.async.{ca,cg}.shared.global{hints} [to], [from], cp-size{, src-size | ignore-src}{, cache-policy}
    const int64_t bytes = in.operands[2].integer;
    const bool cg = in.has("cg");
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8))) {
        l.unsupported(in, "cp-size is 4, 8 or 16 for .ca and 16 for .cg");
    }
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]);
    uint32_t size = kNoSlot, ignore = kNoSlot;
    const bool policy = in.has("L2::cache_hint");
    if (policy ? in.operands.size() < 4 : in.operands.size() > 4)
        l.unsupported(in, "a cache policy is what .L2::cache_hint takes");
    if (policy) l.source(in.operands.back(), Type::b64);
    if (in.operands.size() > (policy ? 4u : 3u)) {
        const Operand &operand = in.operands[3];
        const bool predicate = operand.kind == Operand::Kind::reg && operand.type == Type::pred;
        (predicate ? ignore : size) = l.source(operand, predicate ? Type::pred : Type::b32);
    }
    const uint64_t offset = uint64_t(from.offset);
    const uint32_t list = l.list({from.slot, uint32_t(offset), uint32_t(offset >> 32), size, ignore});
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.b = uint32_t(bytes);
    op.list = list;
    op.list_count = kCopyListLength;
    op.extra = (to.slot_bytes == 4 ? kBase32 : 0) | (from.slot_bytes == 4 ? kSourceBase32 : 0);
}

void lower_wait_group(Lowering &l, const Instruction &in) {
    Op &op = l.emit_row(in);
    op.imm = in.operands.empty() ? 0 : in.operands[0].integer;
    op.b = in.has("wait_all");
}

}  // namespace warpsim
