// mbarrier and cp.async.mbarrier.arrive.
#include <algorithm>

#include "instructions/mbarrier/mbarrier.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/core_ops.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

bool any_of(const Instruction &in, std::initializer_list<const char *> names) {
    return std::any_of(names.begin(), names.end(), [&](const char *name) { return in.has(name); });
}

bool names_shared(const Instruction &in) {
    return any_of(in, {"shared", "shared::cta", "shared::cluster"});
}

uint32_t address_bits(const Lowering::Address &address, bool named) {
    return (address.slot != kNoSlot && address.slot_bytes == 4 ? kBase32 : 0) | (named ? 0 : kMbarrierGeneric);
}

void check_order(Lowering &l, const Instruction &in) {
    const bool ordered = any_of(in, {"release", "relaxed", "acquire"}), scoped = any_of(in, {"cta", "cluster"});
    if (ordered != scoped) l.unsupported(in, ordered ? "it needs .cta or .cluster" : "a scope goes with an order");
}

void lower_mbarrier(Lowering &l, const Instruction &in) {
    static constexpr std::pair<const char *, MbarrierForm> kForms[] = {
        {"init", MbarrierForm::init},        {"inval", MbarrierForm::inval},          {"arrive", MbarrierForm::arrive},
        {"arrive_drop", MbarrierForm::drop}, {"test_wait", MbarrierForm::test},       {"try_wait", MbarrierForm::test},
        {"expect_tx", MbarrierForm::expect}, {"complete_tx", MbarrierForm::complete},
    };
    MbarrierForm form = MbarrierForm::init;
    for (const auto &[name, meant] : kForms) {
        if (!in.has(name)) continue;
        form = meant;
        break;
    }
    check_order(l, in);
    const bool arrives = form == MbarrierForm::arrive || form == MbarrierForm::drop, waits = form == MbarrierForm::test;
    const size_t first = arrives || waits ? 1 : 0;  // the address
    if (arrives && in.has("shared::cluster") && in.operands[0].kind != Operand::Kind::sink)
        l.unsupported(in, "an arrival in .shared::cluster has no state: its destination is _");
    if (in.has("noComplete") && any_of(in, {"relaxed", "cluster"}))
        l.unsupported(in, ".noComplete is .release and .cta");
    const Lowering::Address address = l.address(in.operands[first]);
    uint32_t bits = address_bits(address, names_shared(in)) | uint32_t(form) << kMbarrierShift;
    if (arrives && in.has("expect_tx")) bits |= kMbarrierExpects;
    if (in.has("noComplete")) bits |= kMbarrierNoComplete;
    if (in.has("relaxed")) bits |= kMbarrierRelaxed;
    if (in.has("parity")) bits |= kMbarrierParity;
    if (in.has("try_wait")) bits |= kMbarrierMaySuspend;
    if (waits && !l.is_read(in.operands[0])) bits |= kMbarrierUnchecked;
    uint32_t operand = kNoSlot, dst = kNoSlot;
    if (waits && in.has("parity") && l.register_bytes(in.operands[first + 1]) == 8)
        l.unsupported(in, "a parity is 32 bits wide");
    if (in.operands.size() > first + 1)
        operand = l.source(in.operands[first + 1], waits && !in.has("parity") ? Type::b64 : Type::b32);
    if (in.operands.size() > first + 2) l.source(in.operands[first + 2], Type::b32);  // how long it may suspend
    if (waits) dst = l.destination(in.operands[0], Type::pred);
    if (arrives && in.operands[0].kind != Operand::Kind::sink) dst = l.destination(in.operands[0], Type::b64);
    const bool others = arrives || form == MbarrierForm::expect || form == MbarrierForm::complete;
    const bool generic = !names_shared(in), remote = others && may_be_remote(l, in, generic);
    const uint32_t scratch = remote ? l.scratch(Type::b64) : kNoSlot;
    Op &op = l.emit_row(in);
    op.a = address.slot;
    op.imm = address.offset;
    op.b = operand;
    op.dst = dst;
    op.extra = bits;
    if (remote) make_remote(l, op, scratch, generic);
}

void lower_mbarrier_copies(Lowering &l, const Instruction &in) {
    const Lowering::Address address = l.address(in.operands[0]);
    Op &op = l.emit_row(in);
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = address_bits(address, names_shared(in)) | uint32_t(MbarrierForm::copies_arrive) << kMbarrierShift |
               (in.has("noinc") ? kMbarrierNoIncrement : 0);
}

void lower_mbarrier_pending_count(Lowering &l, const Instruction &in) {
    const uint32_t state = l.source(in.operands[1], Type::b64);
    const uint32_t dst = l.destination(in.operands[0], Type::b32);
    Op &op = l.emit_row(in);
    op.a = state;
    op.dst = dst;
}

#define SHARED_CTA "{.shared,.shared::cta}"
#define MBARRIER(SYNTAX, OPERANDS) \
    {"mbarrier." SYNTAX ".b64", OPERANDS, OpClass::mbarrier, Flow::straight, exec_mbarrier, lower_mbarrier}
#define MBARRIER_WAIT(SYNTAX, OPERANDS)                                         \
    {"mbarrier." SYNTAX "{.acquire,.relaxed}{.cta,.cluster}" SHARED_CTA ".b64", \
     OPERANDS,                                                                  \
     OpClass::mbarrier,                                                         \
     Flow::mbarrier_wait,                                                       \
     exec_nothing,                                                              \
     lower_mbarrier}

constexpr InstructionRow kRows[] = {
    {"cp.async.mbarrier.arrive!{.noinc}" SHARED_CTA ".b64", "[a]", OpClass::mbarrier, Flow::straight,
     exec_mbarrier_copies_arrive, lower_mbarrier_copies},
    MBARRIER("init!" SHARED_CTA, "[a], b"),
    MBARRIER("inval!" SHARED_CTA, "[a]"),
    MBARRIER("{arrive,arrive_drop}!{.release,.relaxed}{.cta,.cluster}{.shared,.shared::cta,.shared::cluster}",
             "d, [a]{, b}"),
    MBARRIER("{arrive,arrive_drop}.expect_tx!{.release,.relaxed}{.cta,.cluster}{" SHARED "}", "d, [a], b"),
    MBARRIER("{arrive,arrive_drop}.noComplete!{.release}{.cta}" SHARED_CTA, "d, [a], b"),
    MBARRIER("{expect_tx,complete_tx}!{.relaxed}{.cta,.cluster}{" SHARED "}", "[a], b"),
    MBARRIER_WAIT("test_wait!", "d, [a], b"),
    MBARRIER_WAIT("test_wait.parity!", "d, [a], b"),
    MBARRIER_WAIT("try_wait!", "d, [a], b{, c}"),
    MBARRIER_WAIT("try_wait.parity!", "d, [a], b{, c}"),
    {"mbarrier.pending_count!.b64", "d, a", OpClass::mbarrier, Flow::straight, exec_mbarrier_pending_count,
     lower_mbarrier_pending_count},
};

}  // namespace

std::span<const InstructionRow> mbarrier_rows() {
    return kRows;
}

}  // namespace warpsim
