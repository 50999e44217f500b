// mbarrier, cp.async.mbarrier.arrive and cp.async.bulk.
#include "exec/mbarrier.h"

#include <algorithm>

#include "exec/bulk_cluster.h"
#include "exec/bulk_copy.h"
#include "lower/families.h"
#include "lower/lowering.h"

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

}  // namespace

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

}  // namespace warpsim
