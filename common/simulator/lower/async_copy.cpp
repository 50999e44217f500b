// cp.async (the kind without .bulk) and its groups.
#include "exec/async_copy.h"

#include <algorithm>
#include <string_view>

#include "exec/memory.h"
#include "lower/lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

void lower_copy(Lowering &l, const Instruction &in) {
    // cp.async.{ca,cg}.shared.global{hints} [to], [from], cp-size{, src-size | ignore-src}{, cache-policy}
    if (in.operands.size() < 3 || in.operands[2].kind != Operand::Kind::integer) l.unsupported(in);
    for (const std::string &m : in.modifiers) {
        static constexpr std::string_view kKnown[] = {"async",           "ca",    "cg", "shared", "shared::cta",
                                                      "shared::cluster", "global"};
        if (std::find(std::begin(kKnown), std::end(kKnown), m) == std::end(kKnown) && !m.starts_with("L2::")) {
            l.unsupported(in, "." + m);
        }
    }
    if (!in.has("global") || in.has("ca") == in.has("cg")) l.unsupported(in);
    const int64_t bytes = in.operands[2].integer;
    const bool cg = in.has("cg");
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8))) {
        l.unsupported(in, "cp-size is 4, 8 or 16 for .ca and 16 for .cg");
    }
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]);
    uint32_t size = kNoSlot, ignore = kNoSlot;
    if (in.operands.size() > 3 && !(in.operands.size() == 4 && in.has("L2::cache_hint"))) {
        const Operand &operand = in.operands[3];
        const bool predicate = operand.kind == Operand::Kind::reg && operand.type == Type::pred;
        (predicate ? ignore : size) = l.source(operand, predicate ? Type::pred : Type::b32);
    }
    const uint64_t offset = uint64_t(from.offset);
    const uint32_t list = l.list({from.slot, uint32_t(offset), uint32_t(offset >> 32), size, ignore});
    Op &op = l.emit(in, exec_async_copy, OpClass::async_copy);
    op.a = to.slot;
    op.imm = to.offset;
    op.b = uint32_t(bytes);
    op.list = list;
    op.list_count = kCopyListLength;
    op.extra = (to.slot_bytes == 4 ? kBase32 : 0) | (from.slot_bytes == 4 ? kSourceBase32 : 0);
}

void lower_cp(Lowering &l, const Instruction &in) {
    if (!in.has("async") || in.has("bulk"))
        l.unsupported(in, "of the cp instructions, cp.async without .bulk is known");
    if (in.has("mbarrier")) l.unsupported(in, "mbarrier objects are not known to warpsim");
    if (in.has("commit_group")) {
        l.emit(in, exec_async_commit, OpClass::async_copy);
    } else if (in.has("wait_group")) {
        if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::integer) l.unsupported(in);
        Op &op = l.emit(in, exec_async_wait, OpClass::async_copy);
        op.imm = in.operands[0].integer;
        op.b = 0;
    } else if (in.has("wait_all")) {
        l.emit(in, exec_async_wait, OpClass::async_copy).b = 1;
    } else {
        lower_copy(l, in);
    }
}

}  // namespace

void register_async_copy(FamilyTable &table) {
    table["cp"] = lower_cp;
}

}  // namespace warpsim
