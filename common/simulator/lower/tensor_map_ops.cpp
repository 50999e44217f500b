// tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap::generic.acquire.
#include "exec/tensor_map_ops.h"

#include <array>

#include "core/tensor_map.h"
#include "lower/families.h"
#include "lower/lowering.h"

namespace warpsim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

constexpr uint8_t kMissing = 0xff;

struct Field {
    const char *name;
    MapField field;
    bool wide = false, ordered = false, constant = false;  // 64 bits; one for each dimension; the value is a constant
    std::array<uint8_t, 16> of{};                          // of constants, by the manual's number: ours, kMissing
};

constexpr std::array<uint8_t, 16> numbers(std::initializer_list<uint8_t> list) {
    std::array<uint8_t, 16> all{};
    all.fill(kMissing);
    size_t at = 0;
    for (uint8_t number : list) all[at++] = number;
    return all;
}

constexpr uint8_t type_number(TensorType type) {
    return uint8_t(type);
}

// The manual's types from 13 on are newer than Hopper.
constexpr Field kFields[] = {
    {"global_address", MapField::address, true},
    {"rank", MapField::dimensions},
    {"box_dim", MapField::box, false, true},
    {"global_dim", MapField::size, false, true},
    {"global_stride", MapField::stride, true, true},
    {"element_stride", MapField::step, false, true},
    {"elemtype", MapField::type, false, false, true,
     numbers({0, 1, 2, 3, 4, 5, 6, 7, type_number(TensorType::f32_ftz), type_number(TensorType::f64),
              type_number(TensorType::bf16), type_number(TensorType::tf32), type_number(TensorType::tf32_ftz)})},
    {"swizzle_mode", MapField::swizzle, false, false, true, numbers({0, 1, 2, 3})},
    {"fill_mode", MapField::fill, false, false, true, numbers({0, 1})},
    {"interleave_layout", MapField::interleave, false, false, true, numbers({0, 1, 2})},
};

const Field &field_of(Lowering &l, const Instruction &in) {
    for (const Field &field : kFields)
        if (in.has(field.name)) return field;
    l.unsupported(in);
}

bool is_base32(const Lowering::Address &address) {
    return address.slot != kNoSlot && address.slot_bytes == 4;
}

// A symbol in shared memory is an offset there: with generic addressing its window comes on top.
int64_t generic_offset(const Lowering::Address &address, bool is_symbol, bool generic) {
    const bool shared = is_symbol && generic && address.space_of_symbol == ptx::Space::shared;
    return address.offset + (shared ? int64_t(kSharedWindow) : 0);
}

}  // namespace

// tensormap.replace.tile.field{.ss}.b1024.type [map]{, ordinal}, value
void lower_map_replace(Lowering &l, const Instruction &in) {
    const Field &field = field_of(l, in);
    MapForm form;
    form.field = field.field;
    form.space = in.has("global")        ? MemorySpace::global
                 : in.has("shared::cta") ? MemorySpace::shared
                                         : MemorySpace::generic;
    const Operand &value = in.operands.back();
    if (field.ordered) {
        const int64_t ordinal = in.operands[1].integer, first = field.field == MapField::stride;
        if (ordinal < 0 || ordinal + first >= int64_t(kMostDimensions))
            l.unsupported(in, "the ordinal is 0 to 4, and 0 to 3 for global_stride, which dimension 0 has not");
        form.dimension = uint8_t(ordinal + first);
    }
    const Lowering::Address map = l.address(in.operands[0]);
    form.base32 = is_base32(map);
    uint32_t slot = kNoSlot;
    if (field.constant) {
        const uint64_t number = uint64_t(value.integer);
        form.value = number < field.of.size() ? field.of[number] : kMissing;
        if (form.value == kMissing) l.unsupported(in, "no map here can have that: it is newer than sm_90");
    } else {
        slot = l.source(value, field.wide ? Type::b64 : Type::b32);
    }
    Op &op = l.emit_row(in);
    op.a = map.slot;
    op.b = slot;
    op.imm = generic_offset(map, in.operands[0].elements[0].kind == Operand::Kind::symbol,
                            form.space == MemorySpace::generic);
    op.extra = pack<uint32_t>(form);
}

// tensormap.cp_fenceproxy.global.shared::cta... [to], [from], 128
void lower_map_copy(Lowering &l, const Instruction &in) {
    if (in.operands[2].integer != kTensorMapBytes) l.unsupported(in, "the size is 128");
    const Lowering::Address to = l.address(in.operands[0]), from = l.address(in.operands[1]);
    const uint32_t list = l.list({from.slot, uint32_t(from.offset), uint32_t(is_base32(from))});
    Op &op = l.emit_row(in);
    op.a = to.slot;
    op.imm = to.offset;
    op.list = list;
    op.list_count = kMapCopyListLength;
    op.extra = is_base32(to) ? kBase32 : 0;
}

void lower_map_acquire(Lowering &l, const Instruction &in) {
    if (in.operands[1].integer != kTensorMapBytes) l.unsupported(in, "the size is 128");
    const Lowering::Address map = l.address(in.operands[0]);
    Op &op = l.emit_row(in);
    op.a = map.slot;
    op.imm = map.offset;
    op.extra = is_base32(map) ? kBase32 : 0;
}

}  // namespace warpsim
